#!/usr/bin/env python3
"""Counts the test cases of a ctest run from its JUnit file; the last line is for people and CI.

    count_tests.py build/dev/tests.xml [build/dev/again.xml]

The second file is of a run of those that failed, one after the other: a test of real servers that
fails beside another one and passes alone counts as passed, and is named, since somebody has to look
at it. One that found a promise broken has failed, whatever came later. Exits 1 if a test failed or
if none ran at all.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree

BROKEN_PROMISE = re.compile(r"^violations .*\b[A-Z] [1-9]", re.MULTILINE)


def outcome(case):
    skipped = case.find("skipped")
    if case.get("status") == "run":
        return "passed"
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"  # also a test whose program is not there


def cases_of(path):
    return xml.etree.ElementTree.parse(path).getroot().findall("testcase")


def main(path, again):
    if not path.exists():
        print("ctest left no results: see above", file=sys.stderr)
        print("0 passed, 1 failed")
        return 1
    passed_alone = {case.get("name") for case in cases_of(again) if outcome(case) == "passed"} \
        if again.is_file() else set()
    names = {"passed": [], "failed": [], "skipped": [], "unsteady": []}
    for case in cases_of(path):
        kind = outcome(case)
        if kind == "failed" and case.get("name") in passed_alone and \
                not BROKEN_PROMISE.search(case.findtext("system-out") or ""):
            kind = "unsteady"
        names[kind].append(case.get("name"))
    print()
    for kind in ("skipped", "unsteady", "failed"):
        for name in sorted(names[kind]):
            print(f"{kind}: {name}")
    print(f"{len(names['passed']) + len(names['unsteady'])} passed, {len(names['failed'])} failed")
    return 0 if names["passed"] and not names["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(*[pathlib.Path(word) for word in (*sys.argv[1:], "")[:2]]))
