#!/usr/bin/env python3
"""Compiles and runs the programs of a page and compares their output with the page.

    compile_page.py docs/explanation/fencing.md --build build/dev --compiler g++

  ```cpp            a complete program: compiled against the installed library, and run.
  ```text           right after a program: its exact output.
  <!-- file: x.cpp -->  above a program: file name for later shell blocks.
  <!-- from: examples/x.cpp -->
                    above a cpp block: not a program; its lines must occur in that file.
  <!-- run -->      above a ```sh block: run by bash in the folder of the programs; a ```text block
                    right after it is the expected output. Other shell blocks are not run.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass

BLOCK = re.compile(r"(?:<!-- *(?P<note>[^\n]*?) *-->\n+)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)


@dataclass
class Block:
    line: int
    language: str
    note: str
    text: str
    follows: bool  # only blank lines separate it from the previous block


def blocks_of(markdown):
    found, last_end = [], 0
    for match in BLOCK.finditer(markdown):
        found.append(Block(line=markdown.count("\n", 0, match.start("language")) + 1,
                           language=match["language"], note=match["note"] or "",
                           text=match["text"],
                           follows=bool(found) and not markdown[last_end:match.start()].strip()))
        last_end = match.end()
    return found


def occurs_in(fragment, text):
    wanted = textwrap.dedent(fragment).rstrip("\n").split("\n")
    lines = text.split("\n")
    windows = ("\n".join(lines[at:at + len(wanted)]) for at in range(len(lines)))
    return any(textwrap.dedent(window) == "\n".join(wanted) for window in windows)


class Reader:
    """Executes the blocks of one page in a directory of its own."""

    def __init__(self, root, compiler, directory, environment):
        self.root, self.compiler = root, compiler
        self.directory, self.environment = directory, environment

    def run(self, command, **more):
        return subprocess.run(command, cwd=self.directory, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, **more)

    def errors(self, blocks):
        for number, block in enumerate(blocks):
            after = blocks[number + 1] if number + 1 < len(blocks) else None
            expected = after.text if after and after.language == "text" and after.follows else None
            why = self.execute(block, expected)
            if why:
                yield f"line {block.line}: {why}"

    def execute(self, block, expected):
        kind, _, name = block.note.partition(": ")
        if block.language == "cpp" and kind == "from":
            source = self.root / name
            if not source.exists() or not occurs_in(block.text, source.read_text()):
                return f"these lines do not occur in {name}"
        elif block.language == "cpp":
            return self.compile_and_run(block, name if kind == "file" else "program.cpp", expected)
        elif block.language == "sh" and kind == "run":
            return self.compare(self.run(["bash", "-euo", "pipefail", "-c", block.text]), expected)
        return None

    def compile_and_run(self, block, name, expected):
        (self.directory / name).write_text(block.text)
        flags = self.run(["pkg-config", "--cflags", "--libs", "tenure"])
        if flags.returncode != 0:
            return f"pkg-config: {flags.stdout}"
        built = self.run([self.compiler, "-Wall", "-Wextra", "-Werror", name,
                          *shlex.split(flags.stdout), "-o", "program"])
        if built.returncode != 0:
            return f"does not compile:\n{built.stdout}"
        return self.compare(self.run(["./program"]), expected)

    @staticmethod
    def compare(result, expected):
        if result.returncode != 0:
            return f"exit code {result.returncode}:\n{result.stdout}"
        if expected is not None and result.stdout != expected:
            return f"prints\n{result.stdout}instead of\n{expected}"
        return None


def install(build, prefix):
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    packages = next(prefix.rglob("tenure.pc")).parent
    return {**os.environ, "PKG_CONFIG_PATH": str(packages), "CMAKE_PREFIX_PATH": str(prefix)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("markdown", type=pathlib.Path)
    parser.add_argument("--build", required=True)
    parser.add_argument("--compiler", default="g++")
    options = parser.parse_args()

    blocks = blocks_of(options.markdown.read_text())
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        environment = install(options.build, work / "prefix")
        reader = Reader(options.markdown.resolve().parent, options.compiler, work, environment)
        errors = list(reader.errors(blocks))
    for error in errors:
        print(f"{options.markdown}: {error}")
    if not any(block.language == "cpp" for block in blocks):
        errors.append("no program")
        print(f"{options.markdown}: has no C++ block")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
