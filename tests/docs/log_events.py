#!/usr/bin/env python3
"""Checks that docs/reference/log_events.md documents every log event of tenured with its fields,
and no other event.

    log_events.py [root]
"""
import re
import sys

from check_main import report

PAGE = "docs/reference/log_events.md"
EVENT = re.compile(r'(?:\blog::(?:debug|info|warning|error)|\breport_?|\bformat)\(\s*'
                   r'(?:(?:log::)?Level::\w+,\s*)?"(?P<event>[a-z_]+)"(?P<rest>[^;]*);')
FIELD = re.compile(r'\{"(\w+)",')
ROW = re.compile(r"^\| (`[a-z_`, ]+`) \| (?:info|warning|error)[a-z, ]* \|([^|]*)\|", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")


def events_of(root):
    """Returns event -> fields of all log calls in the sources."""
    events = {}
    for file in [*(root / "src/server").rglob("*.cpp"), root / "src/sys/log.cpp"]:
        for found in EVENT.finditer(file.read_text(encoding="utf-8")):
            events.setdefault(found["event"], set()).update(FIELD.findall(found["rest"]))
    return events


def documented(root):
    """Returns event -> fields of all rows of the page."""
    rows = {}
    for names, fields in ROW.findall((root / PAGE).read_text(encoding="utf-8")):
        for name in NAME.findall(names):
            rows[name] = set(NAME.findall(fields))
    return rows


def errors(root):
    events, rows = events_of(root), documented(root)
    for event, fields in sorted(events.items()):
        if event not in rows:
            yield f"{PAGE}: the event {event} is missing"
        elif missing := fields - rows[event]:
            yield f"{PAGE}: {event} lacks the fields {', '.join(sorted(missing))}"
    for event in sorted(rows.keys() - events.keys()):
        yield f"{PAGE}: no source logs the event {event}"


if __name__ == "__main__":
    sys.exit(report(errors, "every log event is documented"))
