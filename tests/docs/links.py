#!/usr/bin/env python3
"""Checks that every link of a document to a file of this repository, or to a heading in it, has an
existing target.

    links.py [root]
"""
import pathlib
import re
import sys

from check_main import report

LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
FENCED = re.compile(r"^(```+)[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
FOLDERS = ("docs", "src", "include", "tests", "examples", "bench", "packaging")
CODE = re.compile(r"`[^`\n]*`")


def anchors_of(text):
    """Yields the anchors of all headings, as GitHub forms them."""
    for title in re.findall(r"^#+ +(.*?)\s*(?:\{#\w+\})?$", FENCED.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        yield re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def documents_of(root):
    yield from root.glob("*.md")
    for folder in FOLDERS:
        for path in (root / folder).rglob("*.md"):
            if "node_modules" not in path.parts:
                yield path


def errors(root):
    for document in sorted(documents_of(root)):
        text = CODE.sub("", FENCED.sub("", document.read_text(encoding="utf-8")))
        for found in LINK.finditer(text):
            target, _, anchor = (found[1] or found[2]).partition("#")
            if re.match(r"\w+:", target):
                continue
            file = (document.parent / target) if target else document
            name = document.relative_to(root)
            if not file.exists():
                yield f"{name}: {target} does not exist"
            elif anchor and file.suffix == ".md" and \
                    anchor not in anchors_of(file.read_text(encoding="utf-8")):
                yield f"{name}: {target or name} has no heading #{anchor}"


if __name__ == "__main__":
    sys.exit(report(errors, "every link has a target"))
