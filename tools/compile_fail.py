#!/usr/bin/env python3
"""Compiles a file of tests/compile_fail/ and checks that the compiler refuses what it must refuse.

    compile_fail.py refused|accepted file.cpp -- compiler flags...

The format of such a file:

    // expect: <regular expression>
    // What mistake this is, in a sentence.
    #include <tenure/tenure.hpp>

    #ifndef TENURE_CONTROL
    ... the misuse ...
    #else
    ... the same thing done right ...
    #endif

`refused`: it does not compile, and a line of the compiler's output matches the expression of the
first line. `accepted`: with -DTENURE_CONTROL it compiles, so the misuse is the only thing wrong.
"""
import re
import subprocess
import sys

MARK = "// expect:"


def compile_alone(path, command):
    return subprocess.run([*command, "-fsyntax-only", "-fdiagnostics-color=never", path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check_refused(path, command):
    with open(path, encoding="utf-8") as file:
        first = file.readline().strip()
    if not first.startswith(MARK):
        return f"the first line must be '{MARK} <regular expression>'"
    wanted = first.removeprefix(MARK).strip()
    if not wanted:
        return "the expression after 'expect:' is empty: it would match anything"
    result = compile_alone(path, command)
    if result.returncode == 0:
        return "it compiles, but must not"
    if not re.search(wanted, result.stdout):
        return f"it is refused for another reason than /{wanted}/:\n{result.stdout}"
    return None


def check_accepted(path, command):
    result = compile_alone(path, [*command, "-DTENURE_CONTROL"])
    if result.returncode != 0:
        return f"with -DTENURE_CONTROL it must compile:\n{result.stdout}"
    return None


def main(arguments):
    expectation, path, dashes, *command = arguments
    if dashes != "--" or expectation not in ("refused", "accepted"):
        sys.exit(__doc__)
    why = (check_refused if expectation == "refused" else check_accepted)(path, command)
    if why:
        print(f"{path}: {why}")
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
