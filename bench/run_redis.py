#!/usr/bin/env python3
"""Compares redis:// with hand-written clients of the same redis-server; prints all ratios.

  bench/run_redis.py                              about a minute
  bench/run_redis.py --write docs/benchmarks.md   also writes the table to the page

The hand-written client uses SET NX PX, a script that compares and deletes, and one blocking
connection for each thread (bench/redis/load.cpp). Tenure's locks are fair, fenced and renewed. The
contenders alternate; each figure is the median of the rounds. The exit code is 0 even if targets
are missed, unless --strict is given.
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from document import replace_section  # noqa: E402
from redlock_parts import quorum_rows  # noqa: E402

HOME = pathlib.Path(__file__).resolve().parent.parent


class Server:
    """A redis-server with default configuration and without persistence."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", folder], stdout=subprocess.DEVNULL)
        for _ in range(100):
            if self.ask("PING") == "PONG":
                return
            time.sleep(0.05)
        raise RuntimeError("redis-server does not start")

    def ask(self, *words):
        """Output of redis-cli."""
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], check=False,
                              capture_output=True, text=True).stdout.strip()

    def used_memory(self):
        """Memory of the server in bytes."""
        return int(self.ask("INFO", "memory").split("used_memory:")[1].split()[0])

    def cpu_seconds(self):
        """CPU time that the server has used."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")")[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Kills the server."""
        self.process.kill()
        self.process.wait()


def load(options, *words, program="redis_load"):
    """Result of one run of the load generator."""
    out = subprocess.run([options.build / "bench" / program, *map(str, words)], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def turns(options, rounds, contenders, field):
    """Median of a field for each contender; the contenders alternate."""
    seen = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, words in contenders.items():
            seen[name].append(load(options, *words)[field])
    return {name: statistics.median(values) for name, values in seen.items()}


def renewal(server, options):
    """CPU share of client and server for renewing 10,000 held locks."""
    run = subprocess.Popen([options.build / "bench/redis_load", "renew", "ours", str(server.port),
                            "10000"], stdout=subprocess.PIPE, text=True)
    run.stdout.readline()
    before, began = server.cpu_seconds(), time.monotonic()
    result = json.loads(run.stdout.readline())
    result["server_share"] = (server.cpu_seconds() - before) / (time.monotonic() - began)
    run.wait()
    return result


def idle(server, seconds=5):
    """CPU share of the idle server."""
    before = server.cpu_seconds()
    time.sleep(seconds)
    return (server.cpu_seconds() - before) / seconds


def waiting(server, options, waiters=1000, seconds=5):
    """CPU share of the server while `waiters` clients wait for one lock."""
    run = subprocess.Popen([options.build / "bench/redis_load", "wait", "ours", str(server.port),
                            str(waiters)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    run.stdout.readline()
    before = server.cpu_seconds()
    time.sleep(seconds)
    used = (server.cpu_seconds() - before) / seconds
    run.communicate("\n")
    return used


def memory(server, options, who, locks=20000):
    """Bytes of the server's memory for each held lock."""
    server.ask("FLUSHALL")
    before = server.used_memory()
    run = subprocess.Popen([options.build / "bench/redis_load", "memory", who, str(server.port),
                            str(locks)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    run.stdout.readline()
    used = (server.used_memory() - before) / locks
    run.communicate("\n")
    return used


def measure(server, options):
    """All rows: work, ours, comparison, ratio, target, and the ratio as a number."""
    port, rounds = server.port, options.rounds
    rows = []

    def row(what, ours, theirs, ratio, most, unit="µs"):
        rows.append((what, f"{ours:,.1f} {unit}", theirs, f"{ratio:.2f}", most, ratio))

    cycle = turns(options, rounds, {"ours": ("cycle", "ours", port),
                                    "raw": ("cycle", "raw", port)}, "p50_us")
    row("one thread, lock + unlock, p50", cycle["ours"], f"{cycle['raw']:,.1f} µs by hand",
        cycle["ours"] / cycle["raw"], "at most 1.15")
    many = turns(options, rounds, {who: ("threads", who, port, 64)
                                   for who in ("ours", "scope", "raw", "raw-scope", "baseline")},
                 "per_s")
    row("64 threads, cycles/s, one client", many["ours"],
        f"{many['raw']:,.0f}/s by hand, 64 connections; {many['baseline']:,.0f}/s: the same "
        "commands over one shared connection", many["ours"] / many["raw"], "at least 1", "/s")
    rows.append(("the same, without waiting for the reply to a release", f"{many['scope']:,.1f} /s",
                 f"{many['raw-scope']:,.0f}/s by hand, 64 connections",
                 f"{many['scope'] / many['raw-scope']:.2f}", "", None))
    ping = statistics.median(load(options, "ping", port)["p50_us"] for _ in range(rounds))
    for waiters in (2, 16, 100):
        ours = statistics.median(
            load(options, "pass", "ours", port, waiters)["p50_us"] for _ in range(rounds))
        poll = load(options, "pass", "poll", port, waiters)["p50_us"]
        row(f"hand-over between {waiters} threads, p50", ours,
            f"{ping:,.1f} µs a round trip; {poll:,.0f} µs polling every 50 ms", ours / ping,
            "at most 3")
    still, waited = idle(server), waiting(server, options)
    rows.append(("server CPU while 1,000 threads wait for one lock",
                 f"{100 * waited:.1f} % of a core", f"{100 * still:.1f} % without connections",
                 f"{100 * (waited - still):.1f} %", "at most 1 %", 100 * (waited - still)))
    renewed = renewal(server, options)
    share = renewed["cpu_share"] + renewed["server_share"]
    rows.append((f"{renewed['kept']:,} leases of 6 s renewed",
                 f"{100 * share:.1f} % of a core",
                 f"client {100 * renewed['cpu_share']:.1f} %, "
                 f"server {100 * renewed['server_share']:.1f} %",
                 f"{100 * share * 6 / 30:.1f} % at 30 s", "at most 5 %", 100 * share * 6 / 30))
    ours, bare = memory(server, options, "ours"), memory(server, options, "raw")
    row("memory for a held lock", ours, f"{bare:,.0f} B by a bare SET", ours / bare,
        "at most 1.5", "B")
    return rows


def votes(options):
    """Rows of redlock://, measured with five servers."""
    with tempfile.TemporaryDirectory(prefix="bench_redlock.") as folder:
        servers = []
        try:
            for _ in range(5):
                servers.append(Server(folder))
            return quorum_rows(servers,
                               lambda *words: load(options, *words, program="redlock_load"),
                               options.rounds)
        finally:
            for server in servers:
                server.stop()


def is_met(most, ratio):
    """Whether a ratio meets its target. A row without a target always does."""
    if ratio is None:
        return True
    wanted = float(most.split()[2])
    return ratio >= wanted if "least" in most else ratio <= wanted


def table(rows):
    """Rows as a Markdown table."""
    lines = ["| work | `redis://` | comparison | ratio | target | |", "|---|---|---|---|---|---|"]
    for what, ours, theirs, shown, most, ratio in rows:
        verdict = "" if ratio is None else "met" if is_met(most, ratio) else "missed"
        lines.append(f"| {what} | {ours} | {theirs} | {shown} | {most} | {verdict} |")
    return "\n".join(lines)


def main():
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HOME / "build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--part", choices=("all", "redis", "redlock"), default="all")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a target is missed")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE",
                        help="replace this script's section of a page")
    options = parser.parse_args()
    rows = []
    if options.part in ("all", "redis"):
        with tempfile.TemporaryDirectory(prefix="bench_redis.") as folder:
            server = Server(folder)
            try:
                rows += measure(server, options)
            finally:
                server.stop()
    if options.part in ("all", "redlock"):
        rows += votes(options)
    text = table(rows)
    print(text)
    if options.write:
        replace_section(options.write, "bench-redis",
                        "## redis:// compared with hand-written Redis clients\n\n"
                        "`make bench-redis`; bench/run_redis.py describes the columns.\n\n" + text)
    missed = [row for row in rows if not is_met(row[4], row[5])]
    return 1 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
