#!/usr/bin/env python3
"""Compiles every source alone with clang++-19, for warnings: thread safety, missing includes.

    clang_syntax.py build/clang [--jobs 2] [folder ...]

Needs a configured build without batches, whose generated headers exist. Neither code nor objects
are written, so it takes a fraction of the time of a build. Folders limit it, for example to src.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def sources(build, folders):
    """(source, command) of each C++ source below the folders, without those that a build makes."""
    wanted = [ROOT / folder for folder in folders]
    seen = set()
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        file = pathlib.Path(entry["file"])
        if file.suffix == ".cpp" and file not in seen \
                and any(file.is_relative_to(folder) for folder in wanted):
            seen.add(file)
            yield file, entry


def check(source, entry):
    """Output of the compiler; empty if it reports nothing."""
    words = shlex.split(re.sub(r" -o \S+", "", entry["command"]))
    while "clang++" not in words[0]:
        words.pop(0)  # ccache and its environment: there is no object to keep.
    ran = subprocess.run([*words, "-fsyntax-only"], cwd=entry["directory"], capture_output=True,
                         text=True, check=False)
    return "" if ran.returncode == 0 else ran.stderr or f"{source}: exit code {ran.returncode}\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folders", nargs="*", default=["src", "tests", "examples"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    # Python before 3.12 rejects folders after an option unless the arguments are intermixed.
    options = parser.parse_intermixed_args(arguments)
    todo = list(sources(options.build.resolve(), options.folders))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done, output in enumerate(pool.map(lambda one: check(*one), todo), 1):
            if output:
                failed += 1
                print(output, end="", flush=True)
            if done % 50 == 0 or done == len(todo):
                print(f"  {done} of {len(todo)} sources", flush=True)
    print(f"clang++-19: {len(todo)} sources, {failed} with warnings or errors")
    return 1 if failed or not todo else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
