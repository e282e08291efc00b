#!/usr/bin/env python3
"""Runs an example: it must end without error, and its output must match the regular expression.

    run.py program expression

(ctest's own PASS_REGULAR_EXPRESSION would forgive a crash after the last line.)
"""
import re
import subprocess
import sys

program, expected = sys.argv[1:]
result = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(result.stdout, end="")
if result.returncode != 0:
    sys.exit(f"exit code {result.returncode}")
if not re.search(expected, result.stdout, re.DOTALL):
    sys.exit(f"the output does not match /{expected}/")
