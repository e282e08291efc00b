"""Report of bench/run_cluster.py: the table of cycles, and all targets with the measured values."""

import statistics

from cluster_parts import CLIENTS, ROWS
from service_parts import WAITERS
from service_report import LIBRARY, MET, NO_PEERS, cycle_table, table

# Time from the death of a leader to the next acquire.
FAILOVER_MS_MAX = {"default": 700, "quick": 300}
TRANSFER_MS_MAX = 50


def report(results, options):
    """Report as Markdown that is also readable on a terminal."""
    lines = [f"Three members each. Lock + unlock cycles, durable on a majority before they are "
             f"acknowledged, every client on a lock of its own: medians of {options.rounds} rounds "
             f"of {options.seconds} s.", "",
             *cycle_table(results["cycles"], CLIENTS, ROWS), ""] if "cycles" in results else []
    rated = targets(results)
    lines += table(["target", "reached", "etcd", "ZooKeeper", ""],
                   [[what, reached, *peers, MET[met]] for what, reached, peers, met in rated],
                   "<>>><")
    lines += ["", f"{sum(met for *_, met in rated)} of {len(rated)} targets met."]
    more = remarks(results)
    return "\n".join(lines + ([""] if more else []) + [f"- {one}" for one in more])


def targets(results):
    """[(target, measured, (etcd, ZooKeeper), met)] of all measured parts."""
    raters = {"cycles": cycle_targets, "hand-over": hand_over_targets,
              "failover": failover_targets, "transfer": transfer_targets, "five": five_targets}
    return [target for part, rater in raters.items() if part in results
            for target in rater(results[part])]


def cycle_targets(cycles):
    at_64, alone = cycles["64"], cycles["1"]
    best = max(LIBRARY, key=lambda row: at_64[row]["per_second"])
    rate = {row: one["per_second"] for row, one in at_64.items()}
    rates = tuple(f"{rate[peer]:,.0f}/s" for peer in ("etcd", "ZooKeeper"))
    p50 = {row: one["p50_us"] for row, one in alone.items()}
    ours = min(p50[row] for row in LIBRARY)
    p50s = tuple(f"{p50[peer]:,.0f} us" for peer in ("etcd", "ZooKeeper"))
    return [*((f"64 clients, {best}: 10 x {peer}'s cycles", f"{rate[best] / rate[peer]:.1f} x",
               rates, rate[best] >= 10 * rate[peer]) for peer in ("etcd", "ZooKeeper")),
            ("one client, library: p50 below both", f"{ours:,.0f} us", p50s,
             ours < min(p50["etcd"], p50["ZooKeeper"]))]


def hand_over_targets(taken):
    rows = []
    for waiters in WAITERS:
        one = taken[str(waiters)]
        rows.append((f"hand-over to the next of {waiters} waiters: p50 below half of both",
                     f"{one['library']:,.0f} us",
                     (f"{one['etcd']:,.0f} us", f"{one['zookeeper']:,.0f} us"),
                     one["library"] < min(one["etcd"], one["zookeeper"]) / 2))
    return rows


def failover_targets(failover):
    words = {"default": "default timeouts", "quick": "an election timeout of 150 ms"}
    return [(f"from kill -9 of the leader to the next grant, {words[name]}: median under "
             f"{FAILOVER_MS_MAX[name]} ms", f"{statistics.median(gaps):,.0f} ms", NO_PEERS,
             statistics.median(gaps) < FAILOVER_MS_MAX[name]) for name, gaps in failover.items()]


def transfer_targets(gaps):
    return [(f"leadership handed over: next grant within {TRANSFER_MS_MAX} ms, median",
             f"{statistics.median(gaps):,.0f} ms", NO_PEERS,
             statistics.median(gaps) < TRANSFER_MS_MAX)]


def five_targets(five):
    ratio = five["5"] / five["3"]
    return [("64 clients: five members at least 0.6 x the cycles of three", f"{ratio:.2f} x",
             NO_PEERS, ratio >= 0.6)]


def remarks(results):
    """Notes on the tables."""
    lines = []
    for name, gaps in results.get("failover", {}).items():
        lines.append(f"Killed leaders, {name} timeouts, longest cycle of one client during it: "
                     f"{', '.join(f'{gap:,.0f}' for gap in sorted(gaps))} ms.")
    if "transfer" in results:
        lines.append("Leadership transfers, longest cycle: "
                     f"{', '.join(f'{gap:,.0f}' for gap in sorted(results['transfer']))} ms.")
    if "five" in results:
        lines.append(f"Cycles/s at 64 clients: {results['five']['3']:,.0f} with three members, "
                     f"{results['five']['5']:,.0f} with five.")
    return lines
