#!/usr/bin/env python3
"""Checks that every path of this repository that a document or a comment cites exists.

    cited_paths.py [root]

A citation is a path that begins with a top-level folder: in documents between backticks, in sources
anywhere in a comment. Paths with a placeholder (`*`, `<name>`, `NNNN`, `…`) are not checked.
"""
import pathlib
import re
import sys

from check_main import report

TOP = ("bench", "cmake", "docs", "examples", "include", "packaging", "proto", "src", "tests",
       "tools", "web")
PATH = rf"(?:{'|'.join(TOP)})/[\w./*<>{{}},…-]*[\w*>}}/]"
IN_DOCUMENT = re.compile(rf"`({PATH})`")
IN_COMMENT = re.compile(rf"(?<![\w./:-])({PATH})")
COMMENT = {".cpp": "//", ".hpp": "//", ".c": "//", ".proto": "//", ".ts": "//", ".tsx": "//",
           ".py": "#", ".sh": "#", ".cmake": "#", ".lua": "--"}
PLACEHOLDER = re.compile(r"[*<>{}…]|NNNN|\b[A-Z]\b")
# Folders that are built or installed, and files of other programs' trees.
NOT_OURS = ("node_modules", "build", "__pycache__", "dist")


def citations(path, text):
    """(line number, cited path) in one file."""
    for number, line in enumerate(text.splitlines(), 1):
        if path.suffix == ".md":
            found = IN_DOCUMENT.findall(line)
        else:
            comment = line.partition(COMMENT[path.suffix])[2]
            found = IN_COMMENT.findall(comment)
        yield from ((number, name) for name in found if not PLACEHOLDER.search(name))


def files_of(root):
    yield from root.glob("*.md")
    for folder in TOP:
        for path in (root / folder).rglob("*"):
            parts = path.relative_to(root).parts
            if path.is_file() and path.suffix in (".md", *COMMENT) \
                    and not any(part in NOT_OURS for part in parts):
                yield path


def exists(root, path, name):
    """Whether `name` is a path of the repository. A suffix, or the title of a decision, may be
    left out."""
    target = root / name
    return target.exists() or (path.parent / name).exists() \
        or (not target.suffix and any(target.parent.glob(target.name + "[.-]*")))


def errors(root):
    for path in sorted(files_of(root)):
        for number, name in citations(path, path.read_text(encoding="utf-8")):
            if not exists(root, path, name.rstrip("/.")):
                yield f"{path.relative_to(root)}:{number}: {name} does not exist"


if __name__ == "__main__":
    sys.exit(report(errors, "every cited path exists"))
