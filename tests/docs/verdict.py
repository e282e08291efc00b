"""What the checks of documents share: they look at a tree, complain, and end with 1 then."""
import pathlib
import sys


def tell(check, all_is_well):
    """Prints what `check(root)` complains of, and returns the exit code. The root is the first
    argument of the program, or where it was started."""
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(check(root))
    print("\n".join(found) if found else all_is_well)
    return 1 if found else 0
