#!/usr/bin/env python3
"""Compares the library on etcd and ZooKeeper with the native locks of these services.

  bench/run_backends.py                              about six minutes
  bench/run_backends.py --quick                      a smoke run: rough numbers
  bench/run_backends.py --write docs/benchmarks.md   puts the tables into the page, too
  bench/run_backends.py --only etcd --strict         one backend; exit code 1 if a target is missed

Both ends share the machine with the server, which keeps its files as its package does. Contenders
take turns; a figure is the median of the rounds. A hand-over counts by how many there are in a
second: some that take a hundred times as long as the others do not show in their median, which
stands beside it. Our tasks stand beside their asynchronous calls,
which go on in callbacks, and our threads beside their calls that block. Where each is a client of
its own, theirs have a connection each, too. A backend is one entry of BACKENDS.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import socket
import statistics
import sys
import tempfile
import typing
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from document import replace_section  # noqa: E402
from service_servers import progress, run, start_etcd, start_zookeeper  # noqa: E402

HOME = pathlib.Path(__file__).resolve().parent.parent
CLIENTS = (1, 8, 64)
WAITERS = (2, 16)
MANY_WAITERS = 100
# Name in the commands of the load generators.
OURS = {"hand-over-threads": "hand-over", "hand-over-threads-apart": "hand-over-apart",
        "hand-over-tasks-apart": "hand-over-tasks"}
THEIRS = {"tasks": "cycles", "threads": "threads", "hand-over-threads": "hand-over-threads",
          "hand-over-threads-apart": "hand-over-threads", "hand-over-tasks-apart": "hand-over"}


def etcd_counts(server):
    """Counters of etcd: (requests of clients, entries of its log)."""
    with urllib.request.urlopen(f"http://{server.address}/metrics") as answer:
        lines = answer.read().decode().splitlines()

    def total(series):
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(series))
    return (total("grpc_server_msg_received_total"),
            total("etcd_server_proposals_committed_total"))


def etcd_forget(server):
    """Compacts etcd: old revisions slow it down several times within a minute, which would bias
    later runs. Operators compact it, too."""
    def ask(path, question):
        request = urllib.request.Request(f"http://{server.address}/v3/{path}",
                                         json.dumps(question).encode())
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    revision = ask("kv/range", {"key": "AA=="})["header"]["revision"]
    ask("kv/compaction", {"revision": revision, "physical": True})


def zookeeper_counts(server):
    """Counters of ZooKeeper by a four-letter command: (packets of clients, transactions)."""
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(b"srvr")
        text = b""
        while part := connection.recv(4096):
            text += part

    def number(pattern, radix):
        return int(re.search(pattern, text, re.M).group(1), radix)
    return number(rb"^Received: (\d+)", 10), number(rb"^Zxid: 0x([0-9a-f]+)", 16)


@dataclasses.dataclass(frozen=True)
class Backend:
    """A lock service, and the clients that are compared on it."""
    title: str
    start: typing.Callable      # folder -> service_servers.Server
    scheme: str
    peer: str                   # display name of the other contender
    peer_load: tuple            # the program and its first arguments
    counts: typing.Callable     # server -> (requests, writes) so far
    forget: typing.Callable = lambda server: None   # before each run


BACKENDS = {
    "etcd": Backend(title="etcd", start=start_etcd, scheme="etcd",
                    peer="etcd's Lock and Unlock", peer_load=("service_load", "etcd"),
                    counts=etcd_counts, forget=etcd_forget),
    "zookeeper": Backend(title="ZooKeeper", start=start_zookeeper, scheme="zookeeper",
                         peer="the recipe of its documentation",
                         peer_load=("zookeeper_load",), counts=zookeeper_counts),
}


class Contest:
    """One server, and alternating loads on it."""

    def __init__(self, backend, server, options):
        self.backend, self.server, self.options = backend, server, options

    def command(self, who, verb, count):
        """`-apart`: each thread has its own client, or its own connection of a peer."""
        programs = self.options.build / "bench"
        if who == "ours":
            words = [programs / "library_load", OURS.get(verb, verb),
                     f"{self.backend.scheme}://{self.server.address}"]
        else:
            program, *first = self.backend.peer_load
            apart = ["env", f"TENURE_BENCH_SESSIONS={count + 1}"] if "-apart" in verb else []
            words = [*apart, programs / program, *first, THEIRS[verb], self.server.address]
        return [str(word) for word in (*words, count, self.options.seconds)]

    def one_run(self, who, verb, count):
        self.backend.forget(self.server)
        requests, writes = self.backend.counts(self.server)
        cpu = self.server.cpu_seconds()
        sample = run(self.command(who, verb, count))
        requests_after, writes_after = self.backend.counts(self.server)
        # The load warms up for half a second, which is not counted.
        share = self.options.seconds / (self.options.seconds + 0.5)
        cycles = max(1, sample["cycles"])
        return {"per_second": sample["cycles"] / sample["seconds"], "p50_us": sample["p50_us"],
                "requests": share * (requests_after - requests) / cycles,
                "writes": share * (writes_after - writes) / cycles,
                "cpu_us": 1e6 * share * (self.server.cpu_seconds() - cpu) / cycles}

    def compare(self, verbs, count):
        """[(verb, ours, theirs)], medians; the contenders take turns."""
        contenders = [(who, verb) for verb in verbs for who in ("ours", "peer")]
        samples = {contender: [] for contender in contenders}
        for turn in range(self.options.rounds):
            for contender in contenders if turn % 2 == 0 else reversed(contenders):
                progress(f"{self.backend.title}: {' '.join(contender)} {count}, {turn + 1}")
                samples[contender].append(self.one_run(*contender, count))
        progress("")
        medians = {contender: {key: statistics.median(sample[key] for sample in taken)
                               for key in taken[0]} for contender, taken in samples.items()}
        return [(verb, medians["ours", verb], medians["peer", verb]) for verb in verbs]


def cycle_rows(contest):
    """Lock + unlock; each client uses its own lock."""
    rows = []
    for clients in CLIENTS:
        for verb, ours, peer in contest.compare(("tasks", "threads"), clients):
            rows.append((f"{clients} client{'s' if clients > 1 else ''}, {verb}", "cycles/s",
                         ours, peer))
    return rows


def hand_over_rows(contest):
    """Time from just before a release to the next grant."""
    rows = []
    kinds = [((*WAITERS, MANY_WAITERS), {"hand-over-threads": "of one client, threads"}),
             (WAITERS, {"hand-over-tasks-apart": "each a client, tasks",
                        "hand-over-threads-apart": "each a client, threads"})]
    for waiters, verbs in kinds:
        for count in waiters:
            for verb, ours, peer in contest.compare(tuple(verbs), count):
                rows.append((f"hand-over, {count} wait, {verbs[verb]}", "/s", ours, peer))
    return rows


def times_as_fast(ours, peer):
    """Ratio of the throughputs."""
    return ours["per_second"] / peer["per_second"]


def shown(who, unit):
    """Human-readable text."""
    return f"{who['per_second']:,.0f} {unit}, p50 {who['p50_us']:,.0f} µs"


def table(backend, rows):
    """As Markdown."""
    lines = [f"| work | `{backend.scheme}://` | {backend.peer} | times as fast | wanted | "
             "requests per cycle, ours / theirs | writes to its log | server CPU per cycle |",
             "|---|---|---|---|---|---|---|---|"]
    for what, unit, ours, peer in rows:
        ratio = times_as_fast(ours, peer)
        lines.append(
            f"| {what} | {shown(ours, unit)} | {shown(peer, unit)} | {ratio:.2f} | "
            f"{'met' if ratio >= 1 else 'missed'}: at least 1 | "
            f"{ours['requests']:.2f} / {peer['requests']:.2f} | "
            f"{ours['writes']:.2f} / {peer['writes']:.2f} | "
            f"{ours['cpu_us']:,.0f} / {peer['cpu_us']:,.0f} µs |")
    return "\n".join(lines)


def measure(backend, options):
    """All rows of one backend, measured on its own server."""
    with tempfile.TemporaryDirectory(prefix="bench_backends.", dir=options.folder) as folder:
        with backend.start(pathlib.Path(folder)) as server:
            contest = Contest(backend, server, options)
            # Warm-up: a new JVM is half as fast.
            for who in ("ours", "peer") * 2:
                progress(f"{backend.title}: warming up")
                contest.one_run(who, "tasks", 8)
                contest.one_run(who, "hand-over-threads-apart", 16)
            return cycle_rows(contest) + hand_over_rows(contest)


def main():
    """Measures, and prints the report."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HOME / "build/release")
    parser.add_argument("--only", choices=sorted(BACKENDS))
    parser.add_argument("--quick", action="store_true", help="one round of a second")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--folder", type=pathlib.Path, default=HOME / "build",
                        help="where the servers keep their files: the disk is part of the figures")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a target is missed")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE",
                        help="replace this script's section of a page")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 1
    texts, is_missed = [], False
    for name in [options.only] if options.only else BACKENDS:
        backend = BACKENDS[name]
        rows = measure(backend, options)
        is_missed = is_missed or any(times_as_fast(*row[2:]) < 1 for row in rows)
        texts.append(f"### {backend.title}\n\n{table(backend, rows)}")
    text = "\n\n".join(texts)
    print(text)
    if options.write:
        replace_section(options.write, "bench-backends",
                        "## The library on other lock services, beside their own locks\n\n"
                        "`make bench-backends`; bench/run_backends.py describes the columns.\n\n"
                        + text)
    return 1 if options.strict and is_missed else 0


if __name__ == "__main__":
    sys.exit(main())
