#!/usr/bin/env python3
"""Does what an operator would do with docs/operating.md: runs its ```sh blocks that have
`<!-- run -->` above, from top to bottom in one shell, with tenured in the path. A ```text block
right after one is what it prints; `...` in it is anything.

    operating.py docs/operating.md --tenured build/dev/tenured
"""
import argparse
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile

from readme import blocks_of

MARK = "=== end of block"
SECONDS_MAX = int(os.environ.get("SECONDS_MAX", "120"))
PORTS = "127.0.0.1:74"  # the page's; others are put in their place, so that nobody is disturbed


def free_prefix():
    """Two digits that are not the beginning of any port in use."""
    for prefix in random.sample(range(20, 32), 12):
        try:
            for port in range(prefix * 100, prefix * 100 + 100):
                socket.create_server(("127.0.0.1", port)).close()
            return prefix
        except OSError:
            continue
    sys.exit("no free ports")


def script_of(blocks):
    parts = ["set -euo pipefail"]
    for number, block in enumerate(blocks):
        parts.append(f'{block.text}\necho "{MARK} {number}"')
    return "\n".join(parts)


def matches(expected, printed):
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("markdown", type=pathlib.Path)
    parser.add_argument("--tenured", type=pathlib.Path, required=True)
    options = parser.parse_args()

    home = options.markdown.resolve().parent.parent
    found = blocks_of(options.markdown.read_text(encoding="utf-8"))
    run = [block for block in found if block.language == "sh" and block.note == "run"]
    prefix = f"127.0.0.1:{free_prefix()}"
    with tempfile.TemporaryDirectory(prefix="tenure_operating.") as folder:
        paths = [str(options.tenured.resolve().parent), str(home / "examples/python")]
        environment = os.environ | {"PATH": ":".join([*paths, os.environ["PATH"]])}
        # To a file: what the shell leaves behind in the background would keep a pipe open.
        printed = pathlib.Path(folder) / "printed"
        with open(printed, "w", encoding="utf-8") as file:
            shell = subprocess.Popen(
                ["bash", "-c", script_of(run).replace(PORTS, prefix)], cwd=folder,
                env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            shell.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            pass
        finally:
            output = printed.read_text(encoding="utf-8")
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    return complain(options.markdown, found, run, output.replace(prefix, PORTS))


def complain(markdown, found, run, output):
    # What bash says of jobs that a block kills on purpose.
    output = re.sub(r"^\S+: line \d+: +\d+ Killed .*\n", "", output, flags=re.MULTILINE)
    parts = re.split(re.escape(MARK) + r" \d+\n", output)
    errors = 0
    for number, block in enumerate(run):
        if number >= len(parts) - 1:
            print(f"{markdown}:{block.line}: this block fails or hangs:\n{parts[-1]}")
            return 1
        after = found.index(block) + 1
        expected = found[after] if after < len(found) else None
        if expected and expected.language == "text" and expected.follows and \
                not matches(expected.text, parts[number]):
            print(f"{markdown}:{block.line}: prints\n{parts[number]}instead of\n{expected.text}")
            errors += 1
    print(f"{len(run)} blocks were run, {errors} print something else")
    return 1 if errors or not run else 0


if __name__ == "__main__":
    sys.exit(main())
