#!/usr/bin/env python3
"""Compares tenured, etcd and ZooKeeper, each durable, under the same load; prints all ratios.

  bench/run_service.py                              about six minutes
  bench/run_service.py --quick                      a smoke run: numbers are rough
  bench/run_service.py --only takeover              one part; may be repeated
  bench/run_service.py --write docs/benchmarks.md   puts the tables into the page, too

The parts: cycles of lock + unlock, with the library (bench/service/library_load.cpp), over unary
gRPC calls (service_load: load.cpp), and by ZooKeeper's recipe (zookeeper_load.cpp); hand-over
between waiters; leases; a million locks; takeover from a killed holder; in-process. The contenders
take turns; the figure is the median. All files lie in one folder of one disk. Exit code 0 also if
targets are missed, unless --strict.
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from document import replace_section  # noqa: E402
from service_parts import PARTS  # noqa: E402
from service_report import markdown, report, targets  # noqa: E402

HOME = pathlib.Path(__file__).resolve().parent.parent


def main():
    """Measures, and prints the report."""
    options = arguments()
    results = {}
    with tempfile.TemporaryDirectory(dir=options.build, prefix="bench_service.") as folder:
        for part in options.only or PARTS:
            results[part] = PARTS[part](pathlib.Path(folder), options)
    text = report(results, options)
    print(text)
    if options.write:
        replace_section(options.write, "bench-service", markdown(text, options))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    missed = [what for what, *_, met in targets(results) if not met]
    return 1 if options.strict and missed else 0


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HOME / "build/release")
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART",
                        help="one of " + ", ".join(PARTS) + "; may be repeated")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a target is missed")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE",
                        help="replace this script's section of a page")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures")
    parser.add_argument("--locks", type=int, help="how many the part million takes")
    options = parser.parse_args()
    if options.only and options.write:
        parser.error("--write wants all parts")
    for program in ("tenured", "bench/library_load", "bench/service_load", "bench/zookeeper_load",
                    "bench/bench_client"):
        if not (options.build / program).exists():
            sys.exit(f"{options.build / program} is not there: run `make bench-service`")
    options.seconds, options.rounds = (1, 1) if options.quick else (3, 3)
    if options.locks is None:
        options.locks = 20_000 if options.quick else 1_000_000
    return options


if __name__ == "__main__":
    sys.exit(main())
