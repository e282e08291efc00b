"""Writes docs/benchmarks.md, which has one section per run_….py script."""

import re

HEAD = """# Benchmarks

Written by `make bench`; do not edit. How to read it, and what stands in for what:
[bench/README.md](../bench/README.md).
"""
SECTIONS = ("bench-service", "bench-cluster", "bench-redis", "bench-backends", "bench-local")


def replace_section(path, author, text):
    """Replaces the section of `author`, a target of make, by `text`."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = dict(re.findall(r"<!-- (\S+) begins -->\n(.*?)<!-- \1 ends -->\n", old, re.S))
    parts[author] = text.strip() + "\n"
    page = HEAD
    for name in SECTIONS:
        if name in parts:
            page += f"\n<!-- {name} begins -->\n{parts[name]}<!-- {name} ends -->\n"
    path.write_text(page, encoding="utf-8")
