#!/usr/bin/env python3
"""Every link from one document to another file of this repository, and to a heading in it, leads
somewhere.

    links.py [root]
"""
import pathlib
import re
import sys

from verdict import tell

LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
FENCED = re.compile(r"^(```+)[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def anchors_of(text):
    """As GitHub makes them of headings."""
    for title in re.findall(r"^#+ +(.*?)\s*(?:\{#\w+\})?$", FENCED.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        yield re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def complaints(root):
    documents = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), root / "src/README.md",
                 root / "tests/README.md", root / "examples/README.md"]
    for document in sorted(filter(pathlib.Path.exists, documents)):
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
    sys.exit(tell(complaints, "every link leads somewhere"))
