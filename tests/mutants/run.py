#!/usr/bin/env python3
"""Plants defects in src/core, one at a time, and fails if the model tests do not find one.

    run.py --build build/mutants [--only words] [--jobs 2]

Needs a built tenure_model. A defect is a line of a source file changed in a copy; the copy is
compiled as the original was and linked in front of it, so nothing in the tree or the build changes.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORE = ROOT / "src" / "core"
TESTS = "CoreModel.*:CoreSnapshotModel.*"

# (defect, file, source text, replacement)
DEFECTS = (
    ("a token that does not grow", "step_acquire.cpp",
     "const FencingToken token{state_.revision.get()};",
     "const FencingToken token{(state_.revision.get() + 1) / 2};"),
    ("a waiter is overtaken", "admission.cpp",
     "return load_before(*lock, resource, wanted.turn()).admits(mode);",
     "return true;"),
    ("a waiter for a range is overtaken", "admission.cpp",
     "return !(other.turn < wanted.turn()) ||",
     "return true ||"),
    ("more permits than there are", "admission.cpp",
     "held.permits + ahead.permits + some->wanted <= lock->capacity();",
     "held.permits + ahead.permits + some->wanted <= lock->capacity() + 1;"),
    ("two holders of one range", "admission.cpp",
     "return held.token == wanted.upgrades || compatible_with",
     "return held.token != wanted.upgrades || compatible_with"),
    ("a lease expires early", "lease_table.cpp",
     "it->first <= now;",
     "it->first <= now + ClusterTime{20'000};"),
    ("a lease expires late", "lease_table.cpp",
     "it->first <= now;",
     "it->first < now;"),
    ("a renewal that is not kept", "step_leases.cpp",
     "state_.leases.set_deadline(*lease, state_.now + lease->ttl);",
     ";"),
    ("time that goes back", "step.cpp",
     "std::clamp(stamp.time, state_.now, std::max(state_.now, last_time));",
     "std::min(stamp.time, last_time);"),
    ("a release that grants to no waiter", "step_release.cpp",
     "touch(ended.items);",
     ";"),
    ("an abandoned wait that grants to no waiter", "step_release.cpp",
     "  touch(wait.items);",
     "  ;"),
    ("a waiter of a dead lease is let in", "step_leases.cpp",
     "end_waits_of(leases, why);\n  end_holds_of(leases, why);",
     "end_holds_of(leases, why);\n  process_touched();\n  end_waits_of(leases, why);"),
    ("a release that is retried counts down twice", "step_release.cpp",
     "find_answer(*lease, command.request, Kind::release)",
     "find_answer(*lease, RequestId{}, Kind::release)"),
    ("an acquisition that is retried is done twice", "step_acquire.cpp",
     "find_answer(*lease, command.request, Kind::acquire)",
     "find_answer(*lease, RequestId{}, Kind::acquire)"),
    ("a hold that is entered again and not counted", "step_acquire.cpp",
     "state_.locks.set_count(hold.token, granted.count);",
     ";"),
    ("an upgrade that is not counted", "lock_table.cpp",
     "++hold.count;",
     ";"),
    ("a lock released by another lease", "step_release.cpp",
     "hold == nullptr || hold->lease != lease.id",
     "hold == nullptr"),
    ("a forced release takes all holds for one", "step_release.cpp",
     "command.token && *command.token != token",
     "command.token && *command.token == FencingToken{}"),
    ("a loss that is not reported", "step_leases.cpp",
     "for (const auto& hold : holds) {",
     "for (const auto& hold : std::vector<Hold>{}) {"),
    ("a deadlock over permits that is not seen", "deadlock.cpp",
     "cycle = Search(table, start, budget, &*deadlocked).run();",
     "cycle.clear();"),
    ("a deadlock that is none", "deadlock.cpp",
     "cycle.empty() || !search.has_met_permits()",
     "cycle.empty() || !cycle.empty()"),
    ("a queue that is no reason for a deadlock", "deadlock.cpp",
     "reach_if_blocking(other.lease, other.items, wanted);",
     "(void)other;"),
    ("a range that stays in the index", "lock.cpp",
     "full.ranges.held.erase(keys->range, {.token = held.token, .mode = keys->mode});",
     ";"),
    ("a count that the snapshot forgets", "snapshot_write.cpp",
     "number(hold.count);",
     "number(1);"),
)


def mutated(file, right, wrong):
    text = (CORE / file).read_text(encoding="utf-8")
    if text.count(right) != 1:
        raise LookupError(f"{file} has {text.count(right)} times, not once: {right}")
    return text.replace(right, wrong)


def compile_command(build, file, source, output):
    """Compiler command of `file`, with another source and without optimisation."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    words = next(entry["command"] for entry in commands
                 if entry["file"] == str(CORE / file)).split()
    words[words.index("-o") + 1] = str(output)
    words[words.index("-c") + 1] = str(source)
    return [*words, "-O0", "-w"]


def link_command(build, object_file, program):
    """Linker command of tenure_model, with this object before the library that it replaces."""
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", "tests/tenure_model"],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    line = next(line for line in reversed(lines) if "-o tests/tenure_model " in line)
    line = re.sub(r"^: && | && :$", "", line)
    return line.replace("-o tests/tenure_model ", f"{object_file} -o {program} ").split(" && ")[0]


def passes(program):
    ran = subprocess.run([program, f"--gtest_filter={TESTS}", "--gtest_fail_fast"],
                         env={**os.environ, "RC_PARAMS": "noshrink=1 seed=7"},
                         capture_output=True, timeout=300, check=False)
    return ran.returncode == 0


def is_found(build, defect):
    """True if the tests fail with the defect; raises if it cannot be planted."""
    _, file, right, wrong = defect
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / file
        source.write_text(mutated(file, right, wrong), encoding="utf-8")
        object_file = source.with_suffix(".o")
        program = source.with_suffix("")
        subprocess.run(compile_command(build, file, source, object_file), cwd=build, check=True)
        subprocess.run(link_command(build, object_file, program), cwd=build, shell=True, check=True)
        return not passes(program)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--only", default="", help="defects whose name has these words")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    build = options.build.resolve()
    if not passes(build / "tests" / "tenure_model"):
        print("the tests fail without a planted defect")
        return 1
    defects = [defect for defect in DEFECTS if options.only in defect[0]]
    for defect in defects:
        mutated(*defect[1:])  # Before anything is compiled.
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda defect: is_found(build, defect), defects))
    for defect, is_seen in zip(defects, found):
        print(f"{'found ' if is_seen else 'MISSED'}  {defect[0]} ({defect[1]})")
    print(f"{sum(found)} of {len(found)} planted defects are found")
    return 0 if defects and all(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
