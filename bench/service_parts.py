"""Parts of bench/run_service.py. Each part measures on its own servers."""

import contextlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import time

from service_servers import (begin, command_of, next_line, progress, run, start_etcd,
                             start_tenured, start_zookeeper)

CLIENTS = (1, 8, 64)
WAITERS = (2, 16, 100)
# Row of the table of cycles -> load generator and its command.
ROWS = {"library, tasks": ("library", "tasks"), "library, threads": ("library", "threads"),
        "unary calls": ("tenure", "cycles"), "etcd": ("etcd", "cycles"),
        "ZooKeeper": ("zookeeper", "cycles")}
# Shortest TTL that etcd and ZooKeeper accept in their default configuration.
TAKEOVER_TTL_SECONDS = {"library": 2, "etcd": 2, "zookeeper": 4}


@contextlib.contextmanager
def all_servers(folder, options):
    """One server per kind, by the name of its load generator."""
    with (start_tenured(folder, options) as tenured, start_etcd(folder) as etcd,
          start_zookeeper(folder) as zookeeper):
        yield {"library": tenured, "tenure": tenured, "etcd": etcd, "zookeeper": zookeeper}
    for name in ("tenure", "etcd", "zookeeper"):
        shutil.rmtree(folder / name)


def cycles(folder, options):
    """{clients: {row: {...}}}, medians of all rounds; the contenders alternate."""
    floor = {"fdatasync_us": [], "round_trip_us": [], "written_round_trip_us": []}

    def measure_floor():
        floor["fdatasync_us"].append(fdatasync_us(folder))
        floor["round_trip_us"].append(round_trip_us(options, "round-trip"))
        floor["written_round_trip_us"].append(
            round_trip_us(options, "written-round-trip", folder / "probe"))

    with all_servers(folder, options) as servers:
        result = cycle_rounds(options, servers, ROWS, CLIENTS, measure_floor)
        result["batch"] = batch_size(servers["tenure"])
    return result | {key: statistics.median(taken) for key, taken in floor.items()}


def cycle_rounds(options, servers, rows, all_clients, between=lambda: None):
    """{clients: {row: {...}}}; `between` is called before each round."""
    samples = {clients: {row: [] for row in rows} for clients in all_clients}
    for name, verb in map(ROWS.get, rows):
        progress(f"{name} warms up")
        run(command_of(options, name, verb, servers[name], 8, options.seconds))
    steps = [(clients, turn) for clients in all_clients for turn in range(options.rounds)]
    for number, (clients, turn) in enumerate(steps):
        progress(f"cycles [{number + 1}/{len(steps)}], {clients} clients")
        between()
        for row in rows if turn % 2 == 0 else reversed(rows):
            samples[clients][row].append(one_run(options, row, servers, clients))
    progress("")
    return {str(clients): {
        row: {key: statistics.median(sample[key] for sample in taken)
              for key in ("per_second", "p50_us", "p99_us", "cpu_us")}
        for row, taken in by_row.items()} for clients, by_row in samples.items()}


def one_run(options, row, servers, clients):
    name, verb = ROWS[row]
    server = servers[name]
    cpu = server.cpu_seconds()
    sample = run(command_of(options, name, verb, server, clients, options.seconds))
    # The load warms up for half a second, which is not counted.
    share = options.seconds / (options.seconds + 0.5)
    sample["cpu_us"] = 1e6 * share * (server.cpu_seconds() - cpu) / max(1, sample["cycles"])
    sample["per_second"] = sample["cycles"] / sample["seconds"]
    return sample


def batch_size(server):
    """Commands per entry of the log, over the whole run."""
    count = server.metric("tenure_commit_batch_commands_count")
    return server.metric("tenure_commit_batch_commands_sum") / max(1.0, count)


def round_trip_us(options, *verb):
    """Round trip to another thread by TCP; with a file, plus one durable write in between."""
    program = options.build / "bench" / "library_load"
    return run([str(part) for part in (program, *verb)])["p50_us"]


def fdatasync_us(folder, rounds=200):
    """Duration of one durable write of 4 KiB on this disk, a lower bound for all contenders."""
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


def hand_over(folder, options):
    """{waiters: {name: p50 in us}}"""
    with all_servers(folder, options) as servers:
        return hand_over_rounds(options, servers)


def hand_over_rounds(options, servers):
    names, result = ("library", "etcd", "zookeeper"), {}
    for name in names:
        run(command_of(options, name, "hand-over", servers[name], 2, 1))
    for waiters in WAITERS:
        progress(f"hand-over, {waiters} waiters")
        result[str(waiters)] = {
            name: run(command_of(options, name, "hand-over", servers[name], waiters,
                                 options.seconds))["p50_us"]
            for name in names}
    progress("")
    return result


def leases(folder, options):
    """One client keeps many leases of ten seconds."""
    count, seconds = (2_000, 12) if options.quick else (100_000, 30)
    progress(f"{count:,} leases for {seconds} s")
    with start_tenured(folder, options, "leases") as server:
        client = begin(command_of(options, "library", "leases", server, count, seconds))
        granted = next_line(client)
        cpu, began = server.cpu_seconds(), time.monotonic()
        outcome = next_line(client)
        used, passed = server.cpu_seconds() - cpu, time.monotonic() - began
        client.wait()
        expired = server.metric("tenure_lease_expired_total")
        server.stop(signal.SIGKILL)
    shutil.rmtree(folder / "leases")
    progress("")
    return {"count": count, "seconds": seconds, "granted_s": granted["granted_s"],
            "lost": outcome["lost"] + int(expired), "server_cores": used / passed,
            "client_cores": outcome["client_cores"]}


def million(folder, options):
    """Many held locks: memory, time of a snapshot, and time of a start."""
    locks, name = options.locks, "million"
    progress(f"{locks:,} locks")
    with start_tenured(folder, options, name) as server:
        empty = server.resident_bytes()
        fill = run([str(options.build / "bench/service_load"), "fill", server.address, str(locks)])
        filled = server.resident_bytes()
        server.stop(signal.SIGKILL)
    with start_tenured(folder, options, name) as killed:
        restarted = killed.resident_bytes()
        quiet = run(command_of(options, "library", "threads", killed, 1, options.seconds))
        # Start from the whole log, then from the snapshot and the log after it.
        first, second = snapshot(options, killed), snapshot_under_load(options, killed)
        after = killed.resident_bytes()
        killed.stop(signal.SIGTERM)
    with start_tenured(folder, options, name) as stopped:
        stopped.stop(signal.SIGKILL)
    shutil.rmtree(folder / name)
    progress("")
    return {"locks": locks, "fill_s": fill["seconds"], "bytes_per_lock": (filled - empty) / locks,
            "bytes_per_lock_restarted": (restarted - empty) / locks,
            "bytes_per_lock_after_snapshots": (after - empty) / locks,
            "snapshot_s": [first["seconds"], second["seconds"]], "snapshot_cpu_s": first["cpu_s"],
            "longest_cycle_ms": second["longest_ms"],
            "longest_cycle_quiet_ms": quiet["max_us"] / 1000,
            "after_kill_s": killed.start_seconds, "from_snapshot_s": stopped.start_seconds}


def snapshot(options, server):
    """Cost of a snapshot on an idle server."""
    cpu = server.cpu_seconds()
    taken = run([str(options.build / "bench/service_load"), "snapshot", server.address])
    return {"seconds": taken["seconds"], "cpu_s": server.cpu_seconds() - cpu}


def snapshot_under_load(options, server):
    """Longest cycle of a client during a snapshot."""
    cycling = begin(command_of(options, "library", "threads", server, 1, 120))
    time.sleep(1)  # The load counts after half a second.
    taken = snapshot(options, server)
    time.sleep(0.5)
    cycling.send_signal(signal.SIGINT)
    return {"seconds": taken["seconds"], "longest_ms": next_line(cycling)["max_us"] / 1000}


def takeover(folder, options):
    """{name: {...}}: time from the end of a killed holder's TTL to the grant to a waiter."""
    result = {}
    with all_servers(folder, options) as servers:
        for name, ttl in TAKEOVER_TTL_SECONDS.items():
            progress(f"takeover, {name}")
            late = late_waiters(options, name, servers[name], 2 if options.quick else 10)
            result[name] = {"ttl_s": ttl, "p50_ms": statistics.median(late), "max_ms": max(late)}
    progress("")
    return result


def late_waiters(options, name, server, count):
    """In milliseconds. Each sample uses its own lock; samples overlap in time."""
    ttl, waiting = TAKEOVER_TTL_SECONDS[name], []
    for number in range(count):
        lock = f"takeover-{number}"
        holder = begin(command_of(options, name, "hold", server, lock, ttl))
        asked = next_line(holder)["moment_us"]
        holder.kill()
        holder.wait()
        waiting.append((asked, begin(command_of(options, name, "wait", server, lock))))
        time.sleep(0.13)
    late = []
    for asked, waiter in waiting:
        late.append((next_line(waiter)["moment_us"] - asked) / 1000 - 1000 * ttl)
        waiter.wait()
    return late


def in_process(folder, options):
    """The library on memory://, and opening a client."""
    progress("memory://")
    text = subprocess.run([str(options.build / "bench/bench_client")], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    figures = {what.strip(): float(nanoseconds) for what, nanoseconds in
               re.findall(r"^(.+?)\s+(\d+) ns each$", text, re.M)}
    with start_tenured(folder, options, "open") as server:
        opened = run(command_of(options, "library", "open", server, 20))
    shutil.rmtree(folder / "open")
    progress("")
    return {"cycle_ns": figures["mutex: lock + unlock"],
            "open_memory_ms": figures["a client: opened, used once, closed"] / 1e6,
            "open_tenure_ms": opened["p50_us"] / 1000}


PARTS = {"cycles": cycles, "hand-over": hand_over, "leases": leases, "million": million,
         "takeover": takeover, "in-process": in_process}
