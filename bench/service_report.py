"""Report of bench/run_service.py: the table of cycles, and all targets with the measured values."""

import datetime
import os
import platform

from service_parts import CLIENTS, ROWS, WAITERS

MET = {True: "met", False: "MISSED"}
LIBRARY = ("library, tasks", "library, threads")


def report(results, options):
    """Report as Markdown that is also readable on a terminal."""
    lines = [f"Lock + unlock cycles, durable before acknowledged, every client on a lock of its "
             f"own: medians of {options.rounds} rounds of {options.seconds} s.", "",
             *cycle_table(results["cycles"], CLIENTS, ROWS), ""] if "cycles" in results else []
    rated = targets(results)
    lines += table(["target", "reached", "etcd", "ZooKeeper", ""],
                   [[what, reached, *peers, MET[met]] for what, reached, peers, met in rated],
                   "<>>><")
    lines += ["", f"{sum(met for *_, met in rated)} of {len(rated)} targets met."]
    more = remarks(results)
    return "\n".join(lines + ([""] if more else []) + [f"- {one}" for one in more])


def markdown(text, options, title="The lock service, beside etcd and ZooKeeper",
             target="bench-service"):
    """The section of docs/benchmarks.md that a target of make writes."""
    made = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    rough = " A smoke run: rough numbers." if options.quick else ""
    return (f"## {title}\n\nMeasured by `make {target}` "
            f"on {made}, {os.cpu_count()} cores, Linux {platform.release()}.{rough} All servers "
            f"and their load share the machine and one disk, so read the ratios.\n\n{text}\n")


def table(header, rows, alignment):
    """Markdown table with aligned columns. `alignment` has < or > for each column."""
    widths = [max(len(row[at]) for row in [header, *rows]) for at in range(len(header))]

    def line(cells):
        texts = (f"{cell:{side}{width}}" for cell, side, width in zip(cells, alignment, widths))
        return f"| {' | '.join(texts)} |"

    rules = ["-" * (width + 1) + (":" if side == ">" else "-")
             for side, width in zip(alignment, widths)]
    return [line(header), f"|{'|'.join(rules)}|", *map(line, rows)]


def cycle_table(cycles, all_clients, names):
    rows = []
    for clients in all_clients:
        by_row = cycles[str(clients)]
        for name in names:
            one = by_row[name]
            rows.append([str(clients), name, f"{one['per_second']:,.0f}", f"{one['p50_us']:,.0f}",
                         f"{one['p99_us']:,.0f}", f"{one['cpu_us']:,.0f}",
                         *(f"{one['per_second'] / max(1, by_row[peer]['per_second']):.1f}"
                           for peer in ("etcd", "ZooKeeper"))])
    return table(["clients", "who", "cycles/s", "p50 us", "p99 us", "server CPU us/cycle", "x etcd",
                  "x ZooKeeper"], rows, "><>>>>>>")


def targets(results):
    """[(target, measured, (etcd, ZooKeeper), met)] of all measured parts."""
    raters = {"cycles": cycle_targets, "hand-over": hand_over_targets, "leases": lease_targets,
              "million": million_targets, "takeover": takeover_targets,
              "in-process": in_process_targets}
    return [target for part, rater in raters.items() if part in results
            for target in rater(results[part])]


def cycle_targets(cycles):
    at_64, alone = cycles["64"], cycles["1"]
    best = max(LIBRARY, key=lambda row: at_64[row]["per_second"])
    rate = {row: one["per_second"] for row, one in at_64.items()}
    rates = tuple(f"{rate[peer]:,.0f}/s" for peer in ("etcd", "ZooKeeper"))
    x_etcd, x_zookeeper, unary = (rate[best] / rate["etcd"], rate[best] / rate["ZooKeeper"],
                                  rate["unary calls"] / rate["etcd"])
    cpu = at_64[best]["cpu_us"] / at_64["etcd"]["cpu_us"]
    p50 = {row: one["p50_us"] for row, one in alone.items()}
    p50s = tuple(f"{p50[peer]:,.0f} us" for peer in ("etcd", "ZooKeeper"))
    limit = 2 * cycles["written_round_trip_us"]
    ours = min(p50[row] for row in LIBRARY)
    return [
        (f"64 clients, {best}: 10 x etcd's cycles, goal 25", f"{x_etcd:.1f} x", rates,
         x_etcd >= 10),
        (f"64 clients, {best}: 10 x ZooKeeper's cycles, goal 25", f"{x_zookeeper:.1f} x", rates,
         x_zookeeper >= 10),
        (f"64 clients, {best}: server CPU per cycle under 0.2 of etcd's", f"{cpu:.2f}",
         tuple(f"{at_64[peer]['cpu_us']:,.0f} us" for peer in ("etcd", "ZooKeeper")), cpu < 0.2),
        ("64 clients, unary calls: 3 x etcd's cycles", f"{unary:.1f} x", rates, unary >= 3),
        (f"one client, library: p50 at most 1.3 x two round trips with a synced write each "
         f"({limit:,.0f} us)",
         f"{ours / limit:.2f} x", p50s, ours <= 1.3 * limit),
        ("one client, library: p50 below etcd's", f"{ours:,.0f} us", p50s, ours < p50["etcd"]),
        ("one client, unary calls: p50 below etcd's", f"{p50['unary calls']:,.0f} us", p50s,
         p50["unary calls"] < p50["etcd"])]


def hand_over_targets(taken):
    rows = []
    for waiters in WAITERS:
        one = taken[str(waiters)]
        rows.append((f"hand-over to the next of {waiters} waiters: p50 below half of etcd's",
                     f"{one['library']:,.0f} us",
                     (f"{one['etcd']:,.0f} us", f"{one['zookeeper']:,.0f} us"),
                     one["library"] < one["etcd"] / 2))
    few, many = (taken[str(waiters)] for waiters in (WAITERS[0], WAITERS[-1]))
    flat = {name: many[name] / max(1, few[name]) for name in few}
    rows.append(("hand-over: p50 with 100 waiters at most 1.5 x that with 2",
                 f"{flat['library']:.2f} x",
                 (f"{flat['etcd']:.2f} x", f"{flat['zookeeper']:.2f} x"), flat["library"] <= 1.5))
    return rows


NO_PEERS = ("", "")


def lease_targets(leases):
    kept = f"{leases['count']:,} leases of 10 s, one client, {leases['seconds']} s"
    return [(f"{kept}: none lost", f"{leases['lost']:,}", NO_PEERS, leases["lost"] == 0),
            (f"{kept}: server under 0.25 of a core", f"{leases['server_cores']:.2f}", NO_PEERS,
             leases["server_cores"] < 0.25)]


def million_targets(million):
    locks, slowest = f"{million['locks']:,} held locks", max(million["snapshot_s"])
    return [(f"{locks}: at most 300 bytes of server memory each",
             f"{million['bytes_per_lock']:,.0f}", NO_PEERS, million["bytes_per_lock"] <= 300),
            (f"{locks}: snapshot under 2 s", f"{slowest:.2f} s", NO_PEERS, slowest < 2),
            (f"{locks}: no client cycle beyond 50 ms during it",
             f"{million['longest_cycle_ms']:,.0f} ms", NO_PEERS,
             million["longest_cycle_ms"] <= 50)]


def takeover_targets(takeover):
    peers = tuple(f"{takeover[name]['max_ms']:,.0f} ms" for name in ("etcd", "zookeeper"))
    latest = takeover["library"]["max_ms"]
    return [("a killed holder's lock is with a waiter within 50 ms after its TTL",
             f"{latest:,.0f} ms", peers, latest <= 50)]


def in_process_targets(figures):
    opened = max(figures["open_memory_ms"], figures["open_tenure_ms"])
    return [("memory://: cycle under 1.5 us", f"{figures['cycle_ns'] / 1000:.2f} us", NO_PEERS,
             figures["cycle_ns"] < 1500),
            ("opening a client, first cycle included: under 20 ms", f"{opened:.1f} ms", NO_PEERS,
             opened < 20)]


def remarks(results):
    """Notes on the tables."""
    lines = []
    if "cycles" in results:
        cycles = results["cycles"]
        lines += [f"One fdatasync of 4 KiB on this disk: {cycles['fdatasync_us']:,.0f} us; a round "
                  f"trip on loopback: {cycles['round_trip_us']:,.0f} us; a round trip with such a "
                  f"write at the far end: {cycles['written_round_trip_us']:,.0f} us (p50, measured "
                  f"between the rounds).",
                  f"Commands of Tenure per entry of the log, average over all rounds: "
                  f"{cycles['batch']:.1f}."]
    if "leases" in results:
        leases = results["leases"]
        lines.append(f"The leases were granted in {leases['granted_s']:.1f} s; keeping them took "
                     f"{leases['client_cores']:.2f} of a core in the client.")
    if "million" in results:
        lines += million_remarks(results["million"])
    if "takeover" in results:
        lines.append("Takeover, after the TTL, median and latest: " + "; ".join(
            f"{name} {one['p50_ms']:,.0f} and {one['max_ms']:,.0f} ms (TTL {one['ttl_s']} s)"
            for name, one in results["takeover"].items()) + ".")
    if "in-process" in results:
        figures = results["in-process"]
        lines.append(f"Opening a client: {figures['open_memory_ms']:.2f} ms on memory://, "
                     f"{figures['open_tenure_ms']:.2f} ms on tenure://.")
    return lines


def million_remarks(million):
    first, second = million["snapshot_s"]
    return [f"Bytes for each of {million['locks']:,} locks: {million['bytes_per_lock']:,.0f} when "
            f"they are taken, {million['bytes_per_lock_restarted']:,.0f} after a restart, "
            f"{million['bytes_per_lock_after_snapshots']:,.0f} after snapshots.",
            f"Snapshot of the whole log: {first:.2f} s, {million['snapshot_cpu_s']:.2f} s of CPU "
            f"at low priority; of the last snapshot and what came since, under load: "
            f"{second:.2f} s. Longest lock + unlock of one client during the latter: "
            f"{million['longest_cycle_ms']:,.1f} ms, without: "
            f"{million['longest_cycle_quiet_ms']:,.1f} ms.",
            f"Back after kill -9: {million['after_kill_s']:.2f} s; from the snapshot of a clean "
            f"stop: {million['from_snapshot_s']:.2f} s."]
