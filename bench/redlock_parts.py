"""Rows of bench/run_redis.py for redlock:// with five redis-servers."""

import os
import signal
import statistics


def quorum_rows(servers, load, rounds):
    """Rows as in run_redis.py: work, ours, comparison, ratio as text, target, ratio.

    `load(*words)` runs bench/redis/redlock.cpp and returns what it printed.
    """
    ports = ",".join(str(server.port) for server in servers)
    rows = []
    seen = {"round": [], "last": [], "ours": [], "raw": []}
    for _ in range(rounds):
        trip = load("round", ports)
        seen["round"].append(trip["p50_us"])
        seen["last"].append(trip["last_p50_us"])
        seen["ours"].append(load("cycle", "ours", ports)["p50_us"])
        seen["raw"].append(load("cycle", "raw", ports)["p50_us"])
    quorum, last, ours, raw = (statistics.median(seen[name])
                               for name in ("round", "last", "ours", "raw"))
    rows.append(("`redlock://` over five, lock + unlock, p50", f"{ours:,.1f} µs",
                 f"{last:,.1f} µs a round trip to the slowest quorum, {quorum:,.1f} µs to the "
                 f"quickest; {raw:,.1f} µs by hand, not fenced", f"{ours / last:.2f}",
                 "at most 2", ours / last))
    many = load("threads", "ours", ports, 64)
    turns = load("pass", "ours", ports, 4)
    rows.append(("the same, 64 threads of one client", f"{many['per_s']:,.0f} cycles/s",
                 f"hand-over between 4 clients: p50 {turns['p50_us']:,.0f} µs",
                 "–", "", None))
    servers[3].stop()
    os.kill(servers[4].process.pid, signal.SIGSTOP)
    try:
        hurt = load("acquire", "ours", ports)
    finally:
        os.kill(servers[4].process.pid, signal.SIGCONT)
    # 003.001
    rows.append(("acquisitions, one server dead and one hung, p99.9",
                 f"{hurt['p999_us'] / 1000:,.2f} ms",
                 f"{hurt['count']:,} of them, p50 {hurt['p50_us']:,.0f} µs, "
                 f"longest {hurt['max_us'] / 1000:,.1f} ms",
                 f"{hurt['p999_us'] / 1000:.2f}", "at most 10 ms", hurt["p999_us"] / 1000))
    return rows
