#!/usr/bin/env python3
"""Plants defects in src/core and src/server/raft, one at a time, and fails if the simulation does
not find one within a bounded number of seeds.

    simulate.py --build build/mutants [--only words] [--jobs 2] [--seeds 300] [--rare | --rules]

Needs a built tenure_simulation; --rules: a built tenure_unit. As run.py: a changed copy of one
source is compiled and linked in front of the original, so nothing in the tree or the build changes.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"

# (defect, file, source text, replacement)
DEFECTS = (
    # The state machine.
    ("a token that does not grow", "core/step_acquire.cpp",
     "const FencingToken token{state_.revision.get()};",
     "const FencingToken token{(state_.revision.get() + 1) / 2};"),
    ("double grant: holders and earlier waiters are ignored", "core/admission.cpp",
     "if (!held.admits(mode)) {",
     "if (wanted.items.empty()) {"),
    ("FIFO broken: a waiter is overtaken", "core/admission.cpp",
     "return load_before(*lock, resource, wanted.turn()).admits(mode);",
     "return true;"),
    ("permits beyond the capacity", "core/admission.cpp",
     "held.permits + ahead.permits + some->wanted <= lock->capacity();",
     "held.permits + ahead.permits + some->wanted <= lock->capacity() + 1;"),
    ("early expiry", "core/lease_table.cpp",
     "it->first <= now;",
     "it->first <= now + ClusterTime{50'000};"),
    ("a renewal that has no effect", "core/step_leases.cpp",
     "state_.leases.set_deadline(*lease, state_.now + lease->ttl);",
     ";"),
    ("lost release: no waiter is granted", "core/step_release.cpp",
     "touch(ended.items);",
     ";"),
    ("a retried acquire is executed twice", "core/step_acquire.cpp",
     "if (auto known = find_answer(*lease, command.request, Kind::acquire)) {",
     "if (auto known = find_answer(*lease, RequestId{}, Kind::acquire)) {"),
    ("a deadlock that is not detected", "core/deadlock.cpp",
     "if (!is_waited_for(table, start, budget)) {",
     "if (!table.holds().empty()) {"),
    ("a hold count missing from the snapshot", "core/snapshot_write.cpp",
     "number(hold.count);",
     "number(1);"),
    # Proposals and time.
    ("a stamp from the local clock", "server/raft/raft_store.cpp",
     "entry.batch.stamp.time = state_.time_at(entry.proposed);",
     "entry.batch.stamp.time = std::chrono::duration_cast<core::ClusterTime>("
     "entry.proposed.time_since_epoch());"),
    ("watchers are not notified of a snapshot", "server/raft/replicated_state.cpp",
     "listener_.restored(machine_.state());",
     ";"),
    # Reads.
    ("a read without a quorum", "server/raft/read_index.cpp",
     "newest[newest.size() / 2]",
     "newest[0]"),
    ("a new leader serves before it has applied earlier entries", "server/raft/raft_store.cpp",
     "if (!is_ready_ && term_start_.has_value() && replica().applied() >= *term_start_) {",
     "if (!is_ready_ && term_start_.has_value()) {"),
    # Members.
    ("the newest member cannot be replaced", "server/raft/membership_change.cpp",
     "if (std::holds_alternative<AddMember>(change_->what) || !fresh_voter.has_value() ||",
     "if (!fresh_voter.has_value() ||"),
    # The guards around libraft.
    ("a vote that is not saved", "server/raft/replica.cpp",
     "act(SaveVote{.term = term(), .voted_for = MemberId{shim_voted_for(core_.get())}});",
     ";"),
    ("a replaced write is reported as durable", "server/raft/replica.cpp",
     "operation.is_void |= operation.first >= first;",
     ";"),
)

# These defects show in one of hundreds or thousands of runs (docs/explanation/raft_rules.md). They
# run only with --rare, which needs many seeds.
RARE = (
    ("R1 off: a change is not the first of its message", "server/raft/replica.cpp",
     "while (end < entries.size() && entries[end].type != EntryType::change) {",
     "while (end < entries.size()) {"),
    ("R3 off: a refused pre-vote hides the term", "server/raft/replica.cpp",
     "const bool hides_term = flat.is_pre_vote && !flat.is_granted;",
     "const bool hides_term = false;"),
    ("R4 off: a rejection that is late counts", "server/raft/replica.cpp",
     "if (result != nullptr && is_stale(sender, *result)) {",
     "if (result != nullptr && is_stale(MemberId{}, *result)) {"),
    ("R5 off: entries below the snapshot are passed on", "server/raft/replica.cpp",
     "if (message.term >= term() && message.previous < snapshot_.index &&",
     "if (message.term >= term() && message.previous < Index{} &&"),
    ("R7 off: a snapshot superseded by an install is reported", "server/raft/replica.cpp",
     "if (shim_is_installing(core_.get()) || taken_->index <= snapshot_.index) {",
     "if (taken_->index < Index{}) {"),
    ("R10 off: a successor that still writes is asked to take over",
     "server/raft/replica.cpp",
     "} else if (match(take_over_->to) >= take_over_->message.last) {",
     "} else {"),
    ("R11 off: a snapshot of an earlier term is confirmed", "server/raft/replica.cpp",
     "if (shim_is_installing(core_.get()) || install->term < term()) {",
     "if (shim_is_installing(core_.get())) {"),
    ("R8 off: a learner does not vote", "server/raft/shim.c",
     "    *role = RAFT_VOTER;",
     "    *role = own_role;"),
    ("R8 off: a change does not wait for the last one's voter",
     "server/raft/membership_change.cpp",
     "group.fresh_voter_match >= fresh_voter->index;",
     "true;"),
)

# Rules that the simulation cannot violate, because its clusters have at least three voters.
# These are found by the unit tests that each rule has (RaftRules), as are all of R1 to R8 of RARE.
RULES = (
    ("R2 off: a sole voter leads in the term that it finds", "server/raft/replica.cpp",
     "recovered.term = Term{recovered.term.get() + 1};",
     ";"),
    *(defect for defect in RARE if defect[0].startswith("R")),
)


def mutated(file, right, wrong):
    text = (SOURCES / file).read_text(encoding="utf-8")
    if text.count(right) != 1:
        raise LookupError(f"{file} has {text.count(right)} times, not once: {right}")
    return text.replace(right, wrong)


def compile_command(build, file, source, output, program):
    """Compiler command of `file` for this program, with another source."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    is_simulated = program == "tenure_simulation"
    words = next(entry["command"] for entry in commands if entry["file"] == str(SOURCES / file)
                 and ("tenure_simulated.dir" in entry["command"]) == is_simulated).split()
    words[words.index("-o") + 1] = str(output)
    words[words.index("-c") + 1] = str(source)
    return [*words, "-w"]


def link_command(build, object_file, program, output):
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", f"tests/{program}"],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    line = next(line for line in reversed(lines) if f"-o tests/{program} " in line)
    line = re.sub(r"^: && | && :$", "", line)
    return line.replace(f"-o tests/{program} ", f"{object_file} -o {output} ").split(" && ")[0]


def first_failure(program, seeds):
    ran = subprocess.run([program, "--seeds", str(seeds), "--jobs", "1", "--batch", "5",
                          "--failures", "1"],
                         capture_output=True, text=True, timeout=900, check=False)
    failure = re.search(r"^FAILED seed=(\d+).*\n  (.*)", ran.stdout, re.MULTILINE)
    return (int(failure[1]), failure[2]) if failure else None


def failing_rule(program):
    """(number, names) of the failed rule tests, or None."""
    ran = subprocess.run([program, "--gtest_filter=RaftRules.*"], capture_output=True, text=True,
                         timeout=300, check=False)
    failed = sorted(set(re.findall(r"^\[  FAILED  \] (RaftRules\.\w+)", ran.stdout, re.MULTILINE)))
    died = ran.returncode < 0
    if not failed and not died:
        return None
    return len(failed), ", ".join(failed) or f"signal {-ran.returncode}"


def found_by(build, defect, options):
    _, file, right, wrong = defect
    program = "tenure_unit" if options.rules else "tenure_simulation"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / pathlib.Path(file).name
        source.write_text(mutated(file, right, wrong), encoding="utf-8")
        object_file = source.with_suffix(".o")
        output = source.with_suffix("")
        subprocess.run(compile_command(build, file, source, object_file, program), cwd=build,
                       check=True)
        subprocess.run(link_command(build, object_file, program, output), cwd=build, shell=True,
                       check=True)
        return failing_rule(output) if options.rules else first_failure(output, options.seeds)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--only", default="", help="defects whose name has these words")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=300, help="how many a defect may survive")
    parser.add_argument("--rare", action="store_true", help="those that hardly ever show")
    parser.add_argument("--rules", action="store_true",
                        help="the guards around libraft, against the unit tests of each")
    options = parser.parse_args(arguments)
    build = options.build.resolve()
    chosen = RULES if options.rules else RARE if options.rare else DEFECTS
    defects = [defect for defect in chosen if options.only in defect[0]]
    for defect in defects:
        mutated(*defect[1:])  # Before anything is compiled.
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = []
        for defect, failure in zip(defects, pool.map(
                lambda defect: found_by(build, defect, options), defects)):
            found.append(failure)
            which = "" if options.rules else "seed "
            detail = f": {which}{failure[0]}: {failure[1][:120]}" if failure else ""
            print(f"{'found ' if failure else 'MISSED'}  {defect[0]} ({defect[1]}){detail}",
                  flush=True)
    print(f"{sum(map(bool, found))} of {len(found)} planted defects are found")
    return 0 if defects and all(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
