"""Randomised fault run: a cluster, clients, faults from a seed, and the check of the history.

    /usr/bin/python3 tests/fault/run.py --seed 7 --seconds 60 --size 3
    /usr/bin/python3 tests/fault/run.py --rounds 10 --seconds 60      # each with the next seed

Prints the injected faults, the violations (tests/README.md explains the letters) and the command
that repeats the run. The folder of a failed run is kept."""

import argparse
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import time

# First: it adds tests/daemon to the path.
from harness import BUILD, ClusterHarness, remove_folder, temporary_folder
import faults
from daemon import HOME, TIMEOUT, eventually
from clients import RangeClient, Reader, Recorder, Workload, create_ledger, now, writes

TTL = 3.0       # seconds: every lease of the clients
BOUND = 20.0    # seconds after the last fault until every wait must be served, on a busy machine
PROPERTIES = "MTSFREXWQL"
WORKERS = 7     # in each workload process: one of every role
RANGE_CLIENTS = 2


class Tail:
    """Reads the new lines of a growing file, starting near its end."""

    BEGIN_BYTES = 64 * 1024

    def __init__(self, path):
        self.file = open(path, "rb")
        self.rest = b""
        if self.file.seek(max(0, path.stat().st_size - self.BEGIN_BYTES)):
            self.file.readline()


    def more(self):
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        return [json.loads(line) for line in lines]


class Failed(AssertionError):
    """The run found a violation; the text is the report."""


class Run:
    """
        with Run(seed=7) as run:
            run.inject("kill_leader", seconds=1)
            report = run.finish()

    A cluster with clients, under fault injection. finish() repairs the cluster, stops the clients
    and checks their history.
    """

    def __init__(self, seed=1, size=3, flags=(), net="proxy", properties=PROPERTIES, processes=2,
                 rate_ppm=None, steer_ppm=0, has_small_disk=False, command=None, hold_ms=10,
                 keeps_folder=True):
        self.seed, self.random = seed, random.Random(seed)
        self.ttl, self.properties, self.processes = TTL, properties, processes
        self.hold_ms, self.keeps_folder = hold_ms, keeps_folder
        self.folder = temporary_folder()
        self.recorder = Recorder(self.folder / "driver.jsonl")
        self.command = command or f"{' '.join(sys.argv)}"
        self.cluster = ClusterHarness(self.folder, size, *flags, net=net)
        self.workloads, self.others, self.gone = [], [], []
        self.counts, self.notes, self.stopped_members = {}, [], {}
        self.small_disk = 0
        for member, ppm in (rate_ppm or {}).items():
            self.cluster.nodes[member].faults.set(rate_ppm=ppm)
        for node in self.cluster.nodes.values():
            node.faults.set(steer_ppm=steer_ppm)
        if has_small_disk:
            member = self.random.choice(list(self.cluster.nodes))
            if self.cluster.use_small_disk(member, 8):
                self.small_disk = member
            else:
                print("no full_disk fault in this run: mounting a tmpfs requires root", flush=True)

    def __enter__(self):
        try:
            self.cluster.start()
            self.cluster.wait_until_healthy()
            self.start_clients()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, kind, _, __):
        self.end()
        if kind is None or not self.keeps_folder:
            remove_folder(self.folder)
        else:
            self.keep_logs()
            print(f"kept: {self.folder}\nrepeat: {self.command}", flush=True)

    def end(self):
        for workload in self.workloads:
            if workload.process.poll() is None:
                workload.process.kill()
                workload.process.wait()
        for other in self.others:
            other.stop_event.set()
        self.cluster.end()
        self.recorder.close()

    def keep_logs(self):
        for node in [*self.cluster.nodes.values(), *self.gone]:
            lines = (json.dumps(line) + "\n" for line in node.lines)
            (self.folder / f"{node.member}.log").write_text("".join(lines), encoding="utf-8")

    def start_clients(self):
        url = self.cluster.url()
        create_ledger(self.folder)
        for number in range(self.processes):
            self.workloads.append(Workload(self.folder, f"workload{number}", url,
                                           seed=self.seed * 10 + number, workers=WORKERS,
                                           ttl_ms=int(TTL * 1000), hold_ms=self.hold_ms))
        for number in range(RANGE_CLIENTS):
            self.others.append(RangeClient(self.folder, self.cluster, number, self.seed + number,
                                      int(TTL * 1000)))
        self.others.append(Reader(self.folder, self.cluster, self.seed))
        self.wait_for_progress(now())

    # Faults

    def inject(self, name, seconds=1.0):
        """Injects one fault for this duration, then repairs it."""
        self.counts[name] = self.counts.get(name, 0) + 1
        self.recorder.record("fault", why=name)
        steps = faults.ALL[name](self)
        next(steps)
        self.pause(seconds)
        for _ in steps:
            raise RuntimeError(f"{name} yields more than once")

    def pause(self, seconds):
        time.sleep(seconds)

    def note(self, what):
        self.notes.append(what)

    def expect_stop(self, member, code, word):
        """Expects that the member exits with this code and logs an error that contains `word`."""
        node = self.cluster.nodes[member]
        faults.wait_for_end(node)
        node.reap()
        errors = [line for line in node.lines if line.get("lvl") == "error" and word in str(line)]
        if node.process.returncode != code or not errors:
            raise Failed(f"member {member} exited with {node.process.returncode}, expected {code}; "
                         f"last log lines: {node.lines[-3:]}")

    # Check

    def finish(self):
        """Waits until the repaired cluster serves every client, stops them and checks their
        history."""
        self.cluster.wait_until_healthy()
        healed = now()
        self.recorder.record("healed", at=healed)
        self.wait_for_progress(healed)
        end = now()
        for client in (*self.workloads, *self.others):
            client.stop()
        self.cluster.wait_until_equal()
        self.recorder.record("end", at=end)
        history = self.collect()
        return self.check(history)

    def wait_for_progress(self, since):
        """Waits until every worker of every process was granted a lock after `since`."""
        if not self.workloads:
            return

        wanted = len(self.workloads) * WORKERS + RANGE_CLIENTS
        seen, tails = set(), {}

        def all_served():
            for path in self.folder.glob("*.jsonl"):
                if path not in tails:
                    tails[path] = Tail(path)
                seen.update(event["request"].split("-")[0] for event in tails[path].more()
                            if event["kind"] == "granted" and event["at"] > since)
            return len(seen) == wanted

        try:
            eventually(all_served, "all clients are served")
        except AssertionError:
            raise Failed(f"only {len(seen)} of {wanted} workers were served within {TIMEOUT} s "
                         f"after the repair: {sorted(seen)}") from None
        finally:
            for tail in tails.values():
                tail.file.close()

    def wait_for_grants(self, count):
        """Waits until the clients were granted this many locks, on a machine of any speed."""
        granted = re.compile(rb'"kind": ?"granted"')
        eventually(lambda: sum(len(granted.findall(path.read_bytes()))
                               for path in self.folder.glob("*.jsonl")) >= count,
                   f"{count} locks are granted")

    def collect(self):
        """Merges all history files in the order of time."""
        events = [json.loads(line) for path in sorted(self.folder.glob("*.jsonl"))
                  for line in path.read_text(encoding="utf-8").splitlines()]
        events = self.without_abandoned_requests(events) + writes(self.folder)
        events.sort(key=lambda event: event["at"])
        first = {"at": 0, "kind": "history", "properties": self.properties,
                 "bound": int(BOUND * 1e6), "ttl_max": int(TTL * 1e6)}
        path = self.folder / "history.json"
        with open(path, "w", encoding="utf-8") as file:
            for event in [first, *events]:
                file.write(json.dumps(event) + "\n")
        return path

    def without_abandoned_requests(self, events):
        """Removes abandoned waits and grants. A client without replies for the length of its lease
        abandons the lease by its own clock, with its position in the queue or a grant that it did
        not observe. The library retries without notice, so the history shows one request: its
        earlier queue position and that grant do not count. A lease that the service lets expire
        while its client gets replies is not excused."""
        silences = self.silences(events)
        abandoned, grants = {}, set()
        for path in self.folder.glob("*.ended"):
            for line in path.read_text(encoding="utf-8").splitlines():
                at, how, request, token = line.split(" ")
                is_excused = how == "revoked" or any(
                    end - TTL * 1e6 <= int(at) <= end + 2 * TTL * 1e6
                    for end in silences.get(request.split(".")[0], ()))
                if is_excused:
                    abandoned[request] = max(abandoned.get(request, 0), int(at))
                    grants.add((request, int(token)))
        seen = {(event["request"], event["token"]) for event in events
                if event["kind"] == "granted"}

        def counts(event):
            if event["kind"] == "queued":
                return event["at"] > abandoned.get(event["request"], 0)
            grant = (event.get("request"), event.get("token"))
            return event["kind"] != "watch" or grant in seen or grant not in grants

        unobserved = {token for request, token in grants if (request, token) not in seen}
        for event in events:
            if event["kind"] == "read":  # a read may show an unobserved grant
                event["holders"] = [token for token in event["holders"] if token not in unobserved]
        return [event for event in events if counts(event)]

    @staticmethod
    def silences(events):
        """End times of the intervals in which a process got no reply for 0.6 TTL or longer, by
        process. A client renews every third of the TTL, so such a gap may end its lease."""
        last, found = {}, {}
        for event in sorted(events, key=lambda event: event["at"]):
            if event["kind"] in ("granted", "released"):
                process = event["request"].split(".")[0]
                if event["at"] - last.get(process, event["at"]) > TTL * 0.6 * 1e6:
                    found.setdefault(process, []).append(event["at"])
                last[process] = event["at"]
        return found

    def check(self, path):
        checked = subprocess.run([str(BUILD / "tests/tenure_history"), "check", str(path)],
                                capture_output=True, text=True, check=False)
        report = Report(self, path, checked)
        if checked.returncode != 0:
            raise Failed(report.text() + checked.stdout + checked.stderr)
        return report


class Report:
    """Statistics of a run."""

    def __init__(self, run, path, checked):
        self.run = run
        self.events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.kinds = {}
        for event in self.events:
            self.kinds[event["kind"]] = self.kinds.get(event["kind"], 0) + 1
        self.violations = dict(re.findall(r"violations of (.) (\d+)", checked.stdout))
        self.stale = int((re.findall(r"stale writes rejected (\d+)", checked.stdout) or [0])[0])
        self.failures = {}
        for event in self.events:
            if event["kind"] == "failed":
                self.failures[event["why"]] = self.failures.get(event["why"], 0) + 1
        self.gaps = self.unavailable()

    def unavailable(self):
        """For each fault, the longest time without a reply until the next fault."""
        answered = [event["at"] for event in self.events
                    if event["kind"] in ("granted", "released")]
        marks = [event["at"] for event in self.events if event["kind"] == "fault"]
        gaps = []
        for begin, end in zip(marks, [*marks[1:], max(answered, default=0)]):
            inside = [begin, *(at for at in answered if begin < at < end), end]
            gaps.append(max((after - before) / 1e6 for before, after in zip(inside, inside[1:])))
        return sorted(gaps)

    def percentile(self, share):
        return self.gaps[max(0, math.ceil(len(self.gaps) * share) - 1)] if self.gaps else 0.0

    def text(self):
        operations = self.kinds.get("invoke", 0)
        lines = [
            f"seed {self.run.seed}, {len(self.run.cluster.nodes)} members, {self.run.cluster.net}",
            f"operations {operations}, granted {self.kinds.get('granted', 0)}, released "
            f"{self.kinds.get('released', 0)}, reads {self.kinds.get('read', 0)}, writes "
            f"{self.kinds.get('write', 0)} ({self.stale} stale ones rejected), watch events "
            f"{self.kinds.get('watch', 0)}",
            "not granted " + (", ".join(f"{why} {count}" for why, count in
                                        sorted(self.failures.items())) or "0"),
            "faults " + (", ".join(f"{name} {count}" for name, count in
                                   sorted(self.run.counts.items())) or "0"),
            f"unavailable seconds p50 {self.percentile(0.5):.2f}, p99 {self.percentile(0.99):.2f}",
            "violations " + (", ".join(f"{letter} {count}" for letter, count in
                                       self.violations.items()) or "not checked"),
        ]
        return "\n".join(lines) + "\n"


def commit():
    answer = subprocess.run(["git", "-C", str(HOME), "rev-parse", "--short", "HEAD"],
                            capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


def names_for(options, run):
    names = options.faults.split(",") if options.faults else sorted(faults.ALL)
    if run.small_disk not in run.cluster.nodes:  # no small disk, or its member was removed
        names = [name for name in names if name != "full_disk"]
    return names


def one(options, seed):
    """Executes the run of one seed and returns its report."""
    command = (f"TENURE_BUILD={BUILD} /usr/bin/python3 {pathlib.Path(__file__)} --seed {seed} "
               f"--seconds {options.seconds:g} --size {options.size} --net {options.net}"
               + (f" --faults {options.faults}" if options.faults else ""))
    print(f"seed {seed}: {command}", flush=True)
    with Run(seed, options.size, net=options.net, has_small_disk=not options.faults,
             command=command) as run:
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            run.inject(run.random.choice(names_for(options, run)), run.random.uniform(0.1, 2.5))
            if run.random.random() < 0.7:
                run.cluster.wait_for_leader()
                run.pause(run.random.uniform(0.0, 1.0))
        return run.finish()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--size", type=int, default=3, choices=(3, 5))
    parser.add_argument("--net", default="proxy", choices=("proxy", "netns", "plain"))
    parser.add_argument("--faults", default="", help="comma-separated names; all if empty")
    options = parser.parse_args()

    print(f"commit {commit()}", flush=True)
    failed = 0
    for seed in range(options.seed, options.seed + options.rounds):
        began = time.monotonic()
        try:
            report = one(options, seed)
            print(f"{report.text()}wall {time.monotonic() - began:.0f} s\n", flush=True)
        except Exception as error:  # a run that fails is a result; the others still run
            failed += 1
            print(f"{type(error).__name__}: {error}\n", flush=True)
    print(f"{options.rounds} runs, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
