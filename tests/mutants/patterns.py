#!/usr/bin/env python3
"""Checks that every planted defect of run.py and simulate.py still matches the source: its pattern
occurs exactly once in its file, and its replacement differs. Compiles nothing.

    patterns.py
"""
import sys

import run
import simulate

LISTS = ((run, run.CORE, run.DEFECTS), (simulate, simulate.SOURCES, simulate.DEFECTS),
         (simulate, simulate.SOURCES, simulate.RARE), (simulate, simulate.SOURCES, simulate.RULES))


def findings():
    for script, folder, defects in LISTS:
        for name, file, right, wrong in defects:
            text = (folder / file).read_text(encoding="utf-8") if (folder / file).exists() else ""
            if text.count(right) != 1:
                yield f"{script.__name__}.py, {name}: {file} has {text.count(right)} times, not " \
                      f"once: {right}"
            if right == wrong:
                yield f"{script.__name__}.py, {name}: the replacement changes nothing"


def main():
    found = list(dict.fromkeys(findings()))
    print("\n".join(found) or f"{sum(len(defects) for *_, defects in LISTS)} patterns occur once")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
