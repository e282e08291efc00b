#!/usr/bin/env python3
"""Counts the test cases of a ctest run from its JUnit file; the last line is the summary.

    count_tests.py build/dev/tests.xml

Exits 1 if a test failed or if none ran at all.
"""
import pathlib
import sys
import xml.etree.ElementTree


def outcome(case):
    skipped = case.find("skipped")
    if case.get("status") == "run":
        return "passed"
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"  # also a test whose program is not there


def main(path):
    if not path.exists():
        print("ctest left no results: see above", file=sys.stderr)
        print("0 passed, 1 failed")
        return 1
    cases = xml.etree.ElementTree.parse(path).getroot().findall("testcase")
    names = {"passed": [], "failed": [], "skipped": []}
    for case in cases:
        names[outcome(case)].append(case.get("name"))
    print()
    for kind in ("skipped", "failed"):
        for name in sorted(names[kind]):
            print(f"{kind}: {name}")
    print(f"{len(names['passed'])} passed, {len(names['failed'])} failed")
    return 0 if names["passed"] and not names["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
