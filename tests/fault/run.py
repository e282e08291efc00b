"""One run: a cluster, people who use it, mishaps from a seed, and the judgement.

    /usr/bin/python3 tests/fault/run.py --seed 7 --seconds 60 --size 3
    /usr/bin/python3 tests/fault/run.py --rounds 10 --seconds 60      # each with the next seed

Prints what was broken and what was found (tests/README.md has the letters), and how to repeat it.
The folder of a run that found something is kept."""

import argparse
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import time

from fleet import BUILD, Fleet, remove_folder, temporary_folder  # first: it knows where daemon is
import mishaps
from daemon import HOME, TIMEOUT, eventually
from people import Ranger, Reader, Recorder, Workload, begin_ledger, now, writes

TTL = 3.0       # seconds: every lease of the people
BOUND = 20.0    # seconds: how soon after the last mishap everything must go on, on a busy machine
PROPERTIES = "MTSFREXWQL"
WORKERS = 7     # in each process of people: one of every role
RANGERS = 2


class Tail:
    """The lines of a file that grows, each once; begins near its end."""

    BEGIN_BYTES = 64 * 1024

    def __init__(self, path):
        self.file = open(path, "rb")
        self.file.seek(max(0, path.stat().st_size - self.BEGIN_BYTES))
        self.rest = b""
        if self.file.tell():
            self.file.readline()

    def more(self):
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        return [json.loads(line) for line in lines]


class Failed(AssertionError):
    """The run found something; the text is the report."""


class Run:
    """
        with Run(seed=7) as run:
            run.suffer("kill_leader", seconds=1)
            report = run.judge()
    """

    def __init__(self, seed=1, size=3, flags=(), net="proxy", properties=PROPERTIES, people=2,
                 rate_ppm=None, steer_ppm=0, has_small_disk=False, command=None, hold_ms=10,
                 keeps_folder=True):
        self.seed, self.chance = seed, random.Random(seed)
        self.ttl, self.properties, self.people = TTL, properties, people
        self.hold_ms, self.keeps_folder = hold_ms, keeps_folder
        self.folder = temporary_folder()
        self.recorder = Recorder(self.folder / "driver.jsonl")
        self.command = command or f"{' '.join(sys.argv)}"
        self.fleet = Fleet(self.folder, size, *flags, net=net)
        self.workloads, self.others, self.gone = [], [], []
        self.counts, self.notes, self.stopped_members = {}, [], {}
        self.small_disk = 0
        for member, ppm in (rate_ppm or {}).items():
            self.fleet.nodes[member].faults.set(rate_ppm=ppm)
        for node in self.fleet.nodes.values():
            node.faults.set(steer_ppm=steer_ppm)
        if has_small_disk:
            member = self.chance.choice(list(self.fleet.nodes))
            if self.fleet.use_small_disk(member, 8):
                self.small_disk = member
            else:
                print("no full disk in this run: mounting a tmpfs needs root", flush=True)

    def __enter__(self):
        try:
            self.fleet.start()
            self.fleet.wait_until_whole()
            self.begin_people()
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
        self.fleet.end()
        self.recorder.close()

    def keep_logs(self):
        for node in [*self.fleet.nodes.values(), *self.gone]:
            lines = (json.dumps(line) + "\n" for line in node.lines)
            (self.folder / f"{node.member}.log").write_text("".join(lines), encoding="utf-8")

    def begin_people(self):
        url = self.fleet.url()
        begin_ledger(self.folder)
        for number in range(self.people):
            self.workloads.append(Workload(self.folder, f"people{number}", url,
                                           seed=self.seed * 10 + number, workers=WORKERS,
                                           ttl_ms=int(TTL * 1000), hold_ms=self.hold_ms))
        for number in range(RANGERS):
            self.others.append(Ranger(self.folder, self.fleet, number, self.seed + number,
                                      int(TTL * 1000)))
        self.others.append(Reader(self.folder, self.fleet, self.seed))
        self.wait_for_progress(now())

    # What happens

    def suffer(self, name, seconds=1.0):
        """One mishap, for as long."""
        self.counts[name] = self.counts.get(name, 0) + 1
        self.recorder.say("fault", why=name)
        broken = mishaps.ALL[name](self)
        next(broken)
        self.rest(seconds)
        for _ in broken:
            raise RuntimeError(f"{name} yields more than once")

    def rest(self, seconds):
        time.sleep(seconds)

    def note(self, what):
        self.notes.append(what)

    def expect_stop(self, member, code, word):
        """The member ends by itself, with this code, and says why."""
        node = self.fleet.nodes[member]
        mishaps.wait_for_end(node)
        node.reap()
        said = [line for line in node.lines if line.get("lvl") == "error" and word in str(line)]
        if node.process.returncode != code or not said:
            raise Failed(f"member {member} ended with {node.process.returncode} instead of {code}, "
                         f"and its last words are {node.lines[-3:]}")

    # The end

    def judge(self):
        """Everything works again: waits until it does, stops the people and reads what they saw."""
        self.fleet.wait_until_whole()
        healed = now()
        self.recorder.say("healed", at=healed)
        self.wait_for_progress(healed)
        end = now()
        for person in (*self.workloads, *self.others):
            person.stop()
        self.fleet.wait_until_equal()
        self.recorder.say("end", at=end)
        history = self.collect()
        return self.check(history)

    def wait_for_progress(self, since):
        """Every worker of every process was served after that."""
        if not self.workloads:
            return

        wanted = len(self.workloads) * WORKERS + RANGERS
        seen, tails = set(), {}

        def all_served():
            for path in self.folder.glob("*.jsonl"):
                if path not in tails:
                    tails[path] = Tail(path)
                seen.update(event["request"].split("-")[0] for event in tails[path].more()
                            if event["kind"] == "granted" and event["at"] > since)
            return len(seen) == wanted

        try:
            eventually(all_served, "all are served")
        except AssertionError:
            raise Failed(f"{len(seen)} of {wanted} were served within {TIMEOUT} s after all was "
                         f"well again: {sorted(seen)}") from None
        finally:
            for tail in tails.values():
                tail.file.close()

    def collect(self):
        """One history of all files, in the order of time."""
        events = [json.loads(line) for path in sorted(self.folder.glob("*.jsonl"))
                  for line in path.read_text(encoding="utf-8").splitlines()]
        events = self.without_lost_places(events) + writes(self.folder)
        events.sort(key=lambda event: event["at"])
        first = {"at": 0, "kind": "history", "properties": self.properties,
                 "bound": int(BOUND * 1e6), "ttl_max": int(TTL * 1e6)}
        path = self.folder / "history.json"
        with open(path, "w", encoding="utf-8") as file:
            for event in [first, *events]:
                file.write(json.dumps(event) + "\n")
        return path

    def without_lost_places(self, events):
        """A client that hears nothing for as long as its lease lives gives it up, by its own clock,
        and with it its place in the queue or a grant that it never heard of. The library asks again
        without a word, so for the history it is the same request: it was not queued before, and not
        granted that. A lease that the service lets expire while its client is answered is not
        excused."""
        silences = self.silences(events)
        places, grants = {}, set()
        for path in self.folder.glob("*.ended"):
            for line in path.read_text(encoding="utf-8").splitlines():
                at, how, request, token = line.split(" ")
                is_excused = how == "revoked" or any(
                    end - TTL * 1e6 <= int(at) <= end + 2 * TTL * 1e6
                    for end in silences.get(request.split(".")[0], ()))
                if is_excused:
                    places[request] = max(places.get(request, 0), int(at))
                    grants.add((request, int(token)))
        seen = {(event["request"], event["token"]) for event in events
                if event["kind"] == "granted"}

        def counts(event):
            if event["kind"] == "queued":
                return event["at"] > places.get(event["request"], 0)
            grant = (event.get("request"), event.get("token"))
            return event["kind"] != "watch" or grant in seen or grant not in grants

        unheard = {token for request, token in grants if (request, token) not in seen}
        for event in events:
            if event["kind"] == "read":  # it may have seen one of those
                event["holders"] = [token for token in event["holders"] if token not in unheard]
        return [event for event in events if counts(event)]

    @staticmethod
    def silences(events):
        """For each process the ends of times in which it got no answer, nearly as long as a lease:
        between two renewals a third of it passes."""
        last, found = {}, {}
        for event in sorted(events, key=lambda event: event["at"]):
            if event["kind"] in ("granted", "released"):
                process = event["request"].split(".")[0]
                if event["at"] - last.get(process, event["at"]) > TTL * 0.6 * 1e6:
                    found.setdefault(process, []).append(event["at"])
                last[process] = event["at"]
        return found

    def check(self, path):
        judged = subprocess.run([str(BUILD / "tests/tenure_history"), "check", str(path)],
                                capture_output=True, text=True, check=False)
        report = Report(self, path, judged)
        if judged.returncode != 0:
            raise Failed(report.text() + judged.stdout + judged.stderr)
        return report


class Report:
    """What a run counts."""

    def __init__(self, run, path, judged):
        self.run = run
        self.events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.kinds = {}
        for event in self.events:
            self.kinds[event["kind"]] = self.kinds.get(event["kind"], 0) + 1
        self.violations = dict(re.findall(r"violations of (.) (\d+)", judged.stdout))
        self.stale = int((re.findall(r"stale writes refused (\d+)", judged.stdout) or [0])[0])
        self.failures = {}
        for event in self.events:
            if event["kind"] == "failed":
                self.failures[event["why"]] = self.failures.get(event["why"], 0) + 1
        self.gaps = self.unavailable()

    def unavailable(self):
        """For each mishap, the longest time until the next one in which nobody was answered."""
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
        asked = self.kinds.get("invoke", 0)
        lines = [
            f"seed {self.run.seed}, {len(self.run.fleet.nodes)} members, {self.run.fleet.net}",
            f"operations {asked}, granted {self.kinds.get('granted', 0)}, given back "
            f"{self.kinds.get('released', 0)}, reads {self.kinds.get('read', 0)}, writes "
            f"{self.kinds.get('write', 0)} ({self.stale} stale ones refused), watched "
            f"{self.kinds.get('watch', 0)}",
            "not granted " + (", ".join(f"{why} {count}" for why, count in
                                        sorted(self.failures.items())) or "0"),
            "faults " + (", ".join(f"{name} {count}" for name, count in
                                   sorted(self.run.counts.items())) or "0"),
            f"unavailable seconds p50 {self.percentile(0.5):.2f}, p99 {self.percentile(0.99):.2f}",
            "violations " + (", ".join(f"{letter} {count}" for letter, count in
                                       self.violations.items()) or "not judged"),
        ]
        return "\n".join(lines) + "\n"


def commit():
    answer = subprocess.run(["git", "-C", str(HOME), "rev-parse", "--short", "HEAD"],
                            capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


def names_for(options, run):
    names = options.faults.split(",") if options.faults else sorted(mishaps.ALL)
    if run.small_disk not in run.fleet.nodes:  # there was none, or its member went
        names = [name for name in names if name != "full_disk"]
    return names


def one(options, seed):
    """One run by the schedule of its seed; its report."""
    command = (f"TENURE_BUILD={BUILD} /usr/bin/python3 {pathlib.Path(__file__)} --seed {seed} "
               f"--seconds {options.seconds:g} --size {options.size} --net {options.net}"
               + (f" --faults {options.faults}" if options.faults else ""))
    print(f"seed {seed}: {command}", flush=True)
    with Run(seed, options.size, net=options.net, has_small_disk=not options.faults,
             command=command) as run:
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            run.suffer(run.chance.choice(names_for(options, run)), run.chance.uniform(0.1, 2.5))
            if run.chance.random() < 0.7:
                run.fleet.wait_for_leader()
                run.rest(run.chance.uniform(0.0, 1.0))
        return run.judge()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--size", type=int, default=3, choices=(3, 5))
    parser.add_argument("--net", default="proxy", choices=("proxy", "netns", "plain"))
    parser.add_argument("--faults", default="", help="names, parted by commas; all if empty")
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
