#!/usr/bin/env python3
"""Writes the tables of settings in docs/reference/settings.md and limits.md from the program.

    tools/settings_reference.py build/dev/tenured

ReferenceDocs.every_setting_is_documented_with_its_default fails while a table is outdated.
"""
import pathlib
import re
import subprocess
import sys

PAGES = [pathlib.Path(__file__).resolve().parent.parent / "docs/reference" / name
         for name in ("settings.md", "limits.md")]
TABLE = re.compile(r"(### `\[(\w+)\]`[^\n]*\n\n)(?:\|.*\n)+")
HEAD = "| key | default | meaning |\n|---|---|---|\n"


def sections_of(config):
    """Returns section -> rows of `tenured --print-config`: a comment line above each setting."""
    sections, section, meaning = {}, None, ""
    for line in config.splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), [])
        elif line.startswith("# "):
            meaning = line[2:]
        elif " = " in line:
            key, value = line.split(" = ", 1)
            value = value.strip('"')
            section.append(f"| `{key}` | {f'`{value}`' if value else ''} | {meaning} |\n")
    return sections


def main():
    # Without variables that would change the printed defaults.
    config = subprocess.run([sys.argv[1], "--print-config"], check=True, text=True, env={},
                            stdout=subprocess.PIPE).stdout
    sections = sections_of(config)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(TABLE.sub(lambda found: found[1] + HEAD + "".join(sections[found[2]]),
                                  text), encoding="utf-8")


if __name__ == "__main__":
    main()
