#!/usr/bin/env python3
"""Runs the simulation with each seeded defect, and fails if one is not found.

    mutants.py PROGRAM [--seeds 60] [--jobs 2] [--only describe]

These are defects of what surrounds the code: disks that lie, clients that believe too long. Those
of the code itself are seeded by tests/mutants/run.py.
"""
import argparse
import concurrent.futures
import re
import subprocess
import sys

MUTANTS = (
    "ack_before_durable", "vote_not_durable", "vote_one_copy", "log_end_ignored",
    "storage_unfenced", "belief_too_long", "belief_after_loss", "new_request_id",
    "release_forgotten", "grant_doubled", "event_dropped", "event_doubled", "clock_too_fast",
    "snapshot_stale", "read_unconfirmed",
)


def first_failure(program, mutant, seeds):
    """(seed, why) of the first seed that fails, or None."""
    ran = subprocess.run([program, "--mutant", mutant, "--seeds", str(seeds), "--jobs", "1",
                          "--batch", "5", "--failures", "1"],
                         capture_output=True, text=True, timeout=280, check=False)
    failure = re.search(r"^FAILED seed=(\d+).*\n  (.*)", ran.stdout, re.MULTILINE)
    return (int(failure[1]), failure[2]) if failure else None


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=200, help="how many a defect may survive")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    mutants = [mutant for mutant in MUTANTS if options.only in mutant]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda mutant: first_failure(options.program, mutant, options.seeds),
                              mutants))
    for mutant, failure in zip(mutants, found):
        if failure is None:
            print(f"MISSED  {mutant}: {options.seeds} seeds found nothing")
        else:
            print(f"found   {mutant}: seed {failure[0]}: {failure[1][:160]}")
    return 0 if mutants and all(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
