#!/usr/bin/env python3
"""Checks that the tests named in docs/guarantees.md exist and that its table of capabilities agrees
with docs/reference/backends.md; another test compares that page with the code.

    guarantees.py [root]
"""
import re
import sys

from check_main import report

PAGE, BACKENDS = "docs/guarantees.md", "docs/reference/backends.md"
NAMED = re.compile(r"`([A-Z]\w+)\.([a-z]\w+)`")
CPP_TEST = re.compile(r"^TEST(?:_[PF])?\((\w+),\s*(\w+)\)", re.MULTILINE)
# Names with a dot that are not tests.
NOT_TESTS = {"Client", "Errc", "LockOptions"}


def tests_of(root):
    """Returns (class, name) of all C++ and Python tests."""
    found = set()
    for file in (root / "tests").rglob("*_test.cpp"):
        found |= set(CPP_TEST.findall(file.read_text(encoding="utf-8")))
    for file in (root / "tests").rglob("*_test.py"):
        owner = None
        for line in file.read_text(encoding="utf-8").splitlines():
            if named := re.match(r"class (\w+)", line):
                owner = named[1]
            elif named := re.match(r"    def test_(\w+)", line):
                found.add((owner, named[1]))
    return found


def table_of(text):
    """capability -> scheme -> yes or no, of the table that begins with `capability`"""
    rows = {}
    head = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "capability":
            head = cells
        elif head and not line.startswith("|"):
            break
        elif head and not cells[0].startswith("-"):
            rows[cells[0]] = {scheme: re.match(r"\w*", cell)[0]
                              for scheme, cell in zip(head[1:], cells[1:]) if "://" in scheme}
    return rows


def sections_without_tests(text):
    """Yields the headings of fault tables without any named test."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        if "| shown by |" in section and not NAMED.search(section):
            yield section.splitlines()[0]


def errors(root):
    text = (root / PAGE).read_text(encoding="utf-8")
    known = tests_of(root)
    for owner, name in NAMED.findall(text):
        if owner not in NOT_TESTS and (owner, name) not in known:
            yield f"{PAGE}: there is no test {owner}.{name}"
    ours = table_of(text)
    theirs = table_of((root / BACKENDS).read_text(encoding="utf-8"))
    if not ours:
        yield f"{PAGE}: there is no table of capabilities"
    for capability, row in ours.items():
        for scheme, word in row.items():
            other = theirs.get(capability, {}).get(scheme)
            if word != other:
                yield f"{PAGE}: {capability} of {scheme} is \"{word}\" here, and \"{other}\" in " \
                      f"{BACKENDS}"
    for heading in sections_without_tests(text):
        yield f"{PAGE}: no row of \"{heading}\" names a test"


if __name__ == "__main__":
    sys.exit(report(errors, "all named tests exist, and the table agrees with backends.md"))
