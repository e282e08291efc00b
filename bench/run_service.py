#!/usr/bin/env python3
"""Runs tenured beside etcd, each durable, with the same load, and prints one table with ratios.

  bench/run_service.py                                      about two minutes
  bench/run_service.py --quick                              a smoke run: numbers are rough
  bench/run_service.py --write docs/benchmarks_service.md   the same as Markdown

The load makes lock + unlock cycles, every client on a lock of its own, the next when the last one
is through: over unary gRPC calls (bench/service/load.cpp; "tenure" and "etcd"), and with our
library (bench/service/library_load.cpp; "library", the same server). They take turns, each several
times for each number of clients; the figure is the median. All files lie in one folder of one disk.
Exit code 0 also if targets are missed, unless --strict.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HOME = pathlib.Path(__file__).resolve().parent.parent
CLIENTS = (1, 8, 64)
NAMES = ("library", "tenure", "etcd")


def main():
    """Measures, then shows."""
    options = arguments()
    with tempfile.TemporaryDirectory(dir=options.build, prefix="bench_service.") as folder:
        folder = pathlib.Path(folder)
        results = {"fdatasync_us": fdatasync_us(folder),
                   "round_trip_us": load(options, "library_load", "round-trip")["p50_us"],
                   **measure(folder, options)}
        results["recovery"] = recovery(folder, options)
    text = report(results, options)
    print(text)
    if options.write:
        options.write.write_text(markdown(text, options), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    missed = [name for name, met in targets(results) if not met]
    return 1 if options.strict and missed else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=HOME / "build/release")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--locks", type=int, help="for the recovery; default 1,000,000")
    options = parser.parse_args()
    options.seconds, options.rounds = (1, 1) if options.quick else (4, 5)
    if options.locks is None:
        options.locks = 20_000 if options.quick else 1_000_000
    return options


def progress(text):
    """One line that is written over; nothing in a pipe."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server of its own, with its files in a folder of its own."""

    def __init__(self, name, command, address, ready):
        self.name, self.address, self.ready = name, address, ready
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.began = time.monotonic()
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > self.began + 120:
                self.log.seek(0)
                sys.exit(f"{name} does not start:\n{self.log.read().decode(errors='replace')}")
            time.sleep(0.002)
        self.start_seconds = time.monotonic() - self.began

    def is_ready(self):
        try:
            with urllib.request.urlopen(self.ready, timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def cpu_seconds(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()


def start_etcd(folder):
    client, peer = free_port(), free_port()
    urls = {"client": f"http://127.0.0.1:{client}", "peer": f"http://127.0.0.1:{peer}"}
    return Server("etcd", [
        "etcd", "--data-dir", str(folder / "etcd"), "--name", "bench",
        "--listen-client-urls", urls["client"], "--advertise-client-urls", urls["client"],
        "--listen-peer-urls", urls["peer"], "--initial-advertise-peer-urls", urls["peer"],
        "--initial-cluster", f"bench={urls['peer']}", "--log-level", "error",
    ], f"127.0.0.1:{client}", f"{urls['client']}/health")


def start_tenured(folder, options, name="tenure"):
    grpc, http = free_port(), free_port()
    return Server("tenure", [
        str(options.build / "tenured"), "--data-dir", str(folder / name),
        "--listen-grpc", f"127.0.0.1:{grpc}", "--listen-http", f"127.0.0.1:{http}",
        "--log-level", "warning",
    ], f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}/readyz")


def load(options, program, *arguments_of_load):
    command = [str(options.build / "bench" / program), *map(str, arguments_of_load)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def cycles(options, name, server, clients):
    """One run of one contender."""
    if name == "library":
        return load(options, "library_load", f"tenure://{server.address}", clients, options.seconds)
    return load(options, "service_load", name, server.address, clients, options.seconds)


def measure(folder, options):
    """{clients: {server: {...}}}, the median of all rounds."""
    tenured, etcd = start_tenured(folder, options), start_etcd(folder)
    contenders = list(zip(NAMES, (tenured, tenured, etcd)))
    samples = {clients: {name: [] for name in NAMES} for clients in CLIENTS}
    steps = [(clients, turn) for clients in CLIENTS for turn in range(options.rounds)]
    for number, (clients, turn) in enumerate(steps):
        for name, server in contenders if turn % 2 == 0 else reversed(contenders):
            progress(f"[{number + 1}/{len(steps)}] {name}, {clients} clients")
            cpu = server.cpu_seconds()
            sample = cycles(options, name, server, clients)
            # The load warms up for half a second, which is not counted.
            share = options.seconds / (options.seconds + 0.5)
            sample["cpu_us"] = 1e6 * share * (server.cpu_seconds() - cpu) / max(1, sample["cycles"])
            sample["per_second"] = sample["cycles"] / sample["seconds"]
            samples[clients][name].append(sample)
    progress("")
    result = {"batch": batch_size(tenured), "hand_over": {
        waiters: load(options, "library_load", "hand-over", f"tenure://{tenured.address}", waiters,
                      options.seconds)["p50_us"] for waiters in (2, 16, 100)}}
    tenured.stop()
    etcd.stop()
    for clients, by_server in samples.items():
        result[str(clients)] = {
            name: {key: statistics.median(sample[key] for sample in taken)
                   for key in ("per_second", "p50_us", "p99_us", "cpu_us")}
            for name, taken in by_server.items()}
    return result


def batch_size(server):
    """Commands per entry of the log, over the whole run."""
    with urllib.request.urlopen(server.ready.replace("/readyz", "/metrics")) as answer:
        text = answer.read().decode()
    values = dict(re.findall(r"^(tenure_commit_batch_commands_(?:sum|count)) (\S+)$", text, re.M))
    return (float(values["tenure_commit_batch_commands_sum"]) /
            max(1.0, float(values["tenure_commit_batch_commands_count"])))


def recovery(folder, options):
    """How long a server with many locks takes to come back after kill -9, from its log and from a
    snapshot."""
    progress(f"recovery with {options.locks:,} locks")
    server = start_tenured(folder, options, "recovery")
    load(options, "service_load", "fill", server.address, options.locks)
    server.stop(signal.SIGKILL)
    killed = start_tenured(folder, options, "recovery")
    killed.stop(signal.SIGTERM)
    stopped = start_tenured(folder, options, "recovery")
    stopped.stop(signal.SIGKILL)
    progress("")
    shutil.rmtree(folder / "recovery")
    return {"locks": options.locks, "after_kill_s": killed.start_seconds,
            "from_snapshot_s": stopped.start_seconds}


def fdatasync_us(folder, rounds=300):
    """What one durable write of 4 KiB costs on this disk: nobody can be faster."""
    path = folder / "probe"
    block = b"x" * 4096
    with open(path, "wb") as file:
        file.write(block * rounds)
        os.fsync(file.fileno())
    taken = []
    descriptor = os.open(path, os.O_WRONLY)
    for number in range(rounds):
        began = time.perf_counter()
        os.pwrite(descriptor, block, number * len(block))
        os.fdatasync(descriptor)
        taken.append((time.perf_counter() - began) * 1e6)
    os.close(descriptor)
    path.unlink()
    return statistics.median(taken)


def targets(results):
    at_64, alone = results["64"], results["1"]
    ratio, library_ratio = (at_64[name]["per_second"] / at_64["etcd"]["per_second"]
                            for name in ("tenure", "library"))
    cpu = at_64["library"]["cpu_us"] / at_64["etcd"]["cpu_us"]
    limit = 2 * (results["round_trip_us"] + results["fdatasync_us"])
    over_limit = alone["library"]["p50_us"] / limit
    return [(f"64 clients, unary calls: {ratio:.1f} x etcd's cycles (at least 3)", ratio >= 3),
            (f"one client, unary calls: p50 {alone['tenure']['p50_us']:,.0f} us, etcd's "
             f"{alone['etcd']['p50_us']:,.0f} us (below)",
             alone["tenure"]["p50_us"] < alone["etcd"]["p50_us"]),
            (f"64 clients, library: {library_ratio:.1f} x etcd's cycles (at least 10, goal 25)",
             library_ratio >= 10),
            (f"64 clients, library: {cpu:.2f} of etcd's server CPU per cycle (below 0.2)",
             cpu < 0.2),
            (f"one client, library: p50 {over_limit:.2f} x two round trips and two writes "
             f"({limit:,.0f} us; at most 1.3)", over_limit <= 1.3)]


def report(results, options):
    lines = [f"{'clients':>8} {'server':>8} {'cycles/s':>10} {'p50 us':>9} {'p99 us':>9} "
             f"{'CPU us/cycle':>13} {'x etcd':>7}"]
    for clients in CLIENTS:
        row = results[str(clients)]
        for name in NAMES:
            one = row[name]
            ratio = one["per_second"] / row["etcd"]["per_second"]
            lines.append(f"{clients:>8} {name:>8} {one['per_second']:>10,.0f} "
                         f"{one['p50_us']:>9,.0f} {one['p99_us']:>9,.0f} {one['cpu_us']:>13,.0f} "
                         f"{ratio:>7.1f}")
    back = results["recovery"]
    lines += ["",
              f"one fdatasync of 4 KiB on this disk: {results['fdatasync_us']:,.0f} us, a round "
              f"trip on loopback: {results['round_trip_us']:,.0f} us (p50)",
              "from unlock() to the next holder's return from lock(), library, p50: " + ", ".join(
                  f"{taken:,.0f} us with {waiters} waiters"
                  for waiters, taken in results["hand_over"].items()),
              f"commands per entry of the log, over all rounds: {results['batch']:.1f}",
              f"back after kill -9 with {back['locks']:,} locks: {back['after_kill_s']:.2f} s; "
              f"from the snapshot of a clean stop: {back['from_snapshot_s']:.2f} s", ""]
    lines += [("met:    " if met else "MISSED: ") + name for name, met in targets(results)]
    return "\n".join(lines)


def markdown(text, options):
    made = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return (f"# The lock service beside etcd\n\nMade by `make bench-service` on {made}, "
            f"{os.cpu_count()} cores, {platform.release()}. Lock + unlock cycles, durable before "
            f"acknowledged, over unary gRPC calls (`tenure`, `etcd`) and with our library from as "
            f"many threads of one process (`library`), {options.rounds} rounds of "
            f"{options.seconds} s each in turn, medians. Read the ratios: the machine has other "
            f"load.\n\n"
            f"```\n{text}\n```\n")


if __name__ == "__main__":
    sys.exit(main())
