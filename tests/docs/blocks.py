#!/usr/bin/env python3
"""Checks that every block of shell, C++ or TOML in a document is executed by a test, or states why
not.

    blocks.py [root]

A block is tested if a test runs its document (a script of tests/docs, registered with the path of
the document in tests/cmake/*.cmake or tests/CMakeLists.txt) and the line above the block is

  <!-- run -->             shell: run, from top to bottom
  <!-- run in a terminal -->     the same, for a long-running command
  <!-- run on: HOST -->    shell: run on a host of the page (hosts.py)
  <!-- start on: HOST, HOST -->  TOML: tenured is started with it on these hosts
  <!-- file: NAME -->      written to that file, for later blocks
  <!-- from: FILE -->      the lines occur in that file, which is compiled
  no mark                  C++ in a document of compile_page.py: a complete program

Any other block needs <!-- fragment: reason why it is not tested --> above it. The output of a
command is ```text. A fence without a language is an error.
"""
import pathlib
import re
import sys
from dataclasses import dataclass

from check_main import report

CODE = {"sh": "shell", "bash": "shell", "shell": "shell", "console": "shell", "zsh": "shell",
        "cpp": "C++", "c++": "C++", "cc": "C++", "cxx": "C++", "hpp": "C++", "c": "C++",
        "toml": "TOML"}
FENCE = re.compile(r"^ {0,3}(```+|~~~+)\s*(\S*)")
NOTE = re.compile(r"<!-- *(.*?) *-->\s*$")
REASON_MIN = 8  # letters
REGISTERED = re.compile(r"tests/docs/(\w+)\.py\s+(\S+\.md)")


@dataclass
class Block:
    line: int
    language: str
    note: str


def blocks_of(text):
    """Yields all fenced blocks, in every form of fence that Markdown knows."""
    fence, note = None, ""
    for number, line in enumerate(text.split("\n"), 1):
        found = FENCE.match(line)
        if fence:
            if found and not found[2] and found[1].startswith(fence):
                fence, note = None, ""
        elif found:
            fence = found[1]
            yield Block(number, found[2].lower(), note)
        elif line.strip():
            note = (NOTE.search(line) or ("", ""))[1]


def runners(root):
    """Returns document -> names of the scripts that tests run it with."""
    found = {}
    for file in (root / "tests/CMakeLists.txt", *sorted((root / "tests/cmake").glob("*.cmake"))):
        if file.exists():
            for script, document in REGISTERED.findall(file.read_text(encoding="utf-8")):
                found.setdefault(document, set()).add(script)
    return found


def error_of(block, scripts):
    """Returns the error of this block, or None. `scripts` run its document."""
    if not block.language:
        return "a fence without a language; use ```text for output"
    if block.language not in CODE:
        return None
    kind, _, reason = block.note.partition(":")
    if kind == "fragment":
        if len(re.sub(r"\W", "", reason)) < REASON_MIN:
            return "a fragment without a reason why it is not tested"
        return None
    what = CODE[block.language]
    by_mark = kind in ("file", "from") or (what == "TOML" and kind == "start on") or \
        (what == "shell" and (kind == "run on" or block.note in ("run", "run in a terminal")))
    by_itself = what == "C++" and "compile_page" in scripts and not block.note
    if not by_mark and not by_itself:
        return f"{what} that no test executes; see {pathlib.Path(__file__).name}"
    if not scripts:
        return f"marked as \"{block.note}\", but no test runs this document"
    return None


def check(root):
    registered = runners(root)
    documents = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    for document in sorted(documents):
        name = document.relative_to(root).as_posix()
        for block in blocks_of(document.read_text(encoding="utf-8")):
            if why := error_of(block, registered.get(name, set())):
                yield f"{name}:{block.line}: {why}"
    for name in sorted(registered):
        if "$" not in name and not (root / name).exists():
            yield f"{name}: a test runs it, but it does not exist"


if __name__ == "__main__":
    sys.exit(report(check, "every block is tested or states why not"))
