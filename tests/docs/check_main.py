"""Entry point shared by the document checks: prints errors, exits 1 if there are any."""
import pathlib
import sys


def report(check, success):
    """Prints the errors of `check(root)` and returns the exit code. The root is the first argument
    of the program, or the current folder."""
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(check(root))
    print("\n".join(found) if found else success)
    return 1 if found else 0
