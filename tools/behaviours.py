#!/usr/bin/env python3
"""Lists which behaviours of docs/behaviours_*.txt are named by a test; exits 1 if one is not.

    behaviours.py [--list] [root]

A test names what it proves in a comment line above it, in tests/ or bench/:

    // 004.016                    one
    // 004.016, 004.017           several
    // 004.064-069                a range
    # 004.085                     the same in CMake and Python

--list also prints where each behaviour is named.
"""
import pathlib
import re
import sys

FOLDERS = ("tests", "bench")
SUFFIXES = (".cpp", ".hpp", ".py", ".txt", ".cmake")
COMMENT = re.compile(r"^\s*(?://+|#)\s(.*)")
NAMED = re.compile(r"\b(\d{3})\.(\d{3})(?:\s*[-–]\s*(?:\1\.)?(\d{3}))?\b")


def ids_in(comment):
    """Every id that a comment names; ranges are spelled out."""
    for document, first, last in NAMED.findall(comment):
        for number in range(int(first), int(last or first) + 1):
            yield f"{document}.{number:03}"


def behaviours(root):
    """id -> text, of all documents."""
    wanted = {}
    for path in sorted((root / "docs").glob("behaviours_*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                name, _, text = line.partition(" ")
                wanted[name] = text
    return wanted


def named_in_tests(root):
    """id -> the places that name it."""
    named = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, 1):
                if comment := COMMENT.match(line):
                    for name in ids_in(comment[1]):
                        named.setdefault(name, []).append(f"{path.relative_to(root)}:{number}")
    return named


def main(arguments):
    listing = "--list" in arguments
    places = [argument for argument in arguments if argument != "--list"]
    root = pathlib.Path(places[0] if places else ".").resolve()
    wanted, named = behaviours(root), named_in_tests(root)

    if listing:
        for name, text in wanted.items():
            print(f"{name}  {text}: {', '.join(named.get(name, ['-']))}")
    missing = [name for name in wanted if name not in named]
    # A document whose part is still being built has no list yet; its tests may name it already.
    listed = {name.partition(".")[0] for name in wanted}
    unknown = [name for name in named
               if name not in wanted and name.partition(".")[0] in listed]
    for name in missing:
        print(f"no test names {name}: {wanted[name]}")
    for name in unknown:
        print(f"{named[name][0]}: names {name}, which no document has")
    print(f"{len(wanted) - len(missing)} of {len(wanted)} behaviours are named by a test")
    return 1 if missing or unknown or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
