"""Rows of the table of bench/run_local.py: operation, contenders and targets.

A row is a dict:
  title    title in the report
  unit     'ns' (CPU time of the threads), 'ns wall' or 'bytes'
  ours     Google Benchmark names of Tenure's variants; ratios refer to the first
  peers    column -> benchmark name
  targets  list of (text, function of the measured values that returns (reached, met))
"""

RECREATION = "lock-db re-creation"
BERKELEY = "Berkeley DB"
ROCKS = "RocksDB"
FLOOR = "floor"
COLUMNS = [RECREATION, BERKELEY, ROCKS, FLOOR]


def faster(peer, ours, times):
    """At least `times` as fast as the peer."""

    def check(values):
        if peer not in values or ours not in values:
            return None
        ratio = values[peer] / values[ours]
        return f"{ratio:.1f}x", ratio >= times

    return f"≥ {times}x {label(peer)}", check


def at_most(mine, other, times):
    """Costs at most `times` as much as the other contender."""

    def check(values):
        if mine not in values or other not in values:
            return None
        ratio = values[mine] / values[other]
        return f"{ratio:.2f}x", ratio <= times

    return f"≤ {times}x {label(other)}", check


def below(mine, limit, text):
    """An absolute limit."""

    def check(values):
        if mine not in values:
            return None
        return f"{values[mine]:,.0f}", values[mine] <= limit

    return text, check


def label(name):
    """Name of a contender in the text of a target, from `row/contender/argument`."""
    contender = name.split("/")[1]
    return {
        "lock_db_recreation": "re-creation",
        "lock_db_recreation_request": "re-creation",
        "berkeley_db": BERKELEY,
        "rocksdb": ROCKS,
        "floor_mutex_map": "mutex + map",
        "floor_std_mutex": "std::mutex",
        "ours_handle": "try_lock" if "point" in name else "the first",
        "ours_id": "try_acquire",
    }.get(contender, contender)


def beside(row, suffix, floor=None):
    """All peers of a row by column."""
    peers = {
        RECREATION: f"{row}/lock_db_recreation{suffix}",
        BERKELEY: f"{row}/berkeley_db{suffix}",
        ROCKS: f"{row}/rocksdb{suffix}",
    }
    if floor is not None:
        peers[FLOOR] = f"{row}/{floor}{suffix}"
    return peers


def each_of_ours(group, row, suffix, title, wanted, floor=None):
    """Two rows, by handle and by id, against the same peers; `wanted` is peer -> times."""
    rows = []
    for who, how in (("ours_handle", "Transaction"), ("ours_id", "by id")):
        ours = f"{row}/{who}{suffix}"
        targets = [faster(f"{row}/{peer}{suffix}", ours, times) for peer, times in wanted]
        rows.append({"group": group, "title": f"{title}, {how}", "unit": "ns", "ours": ours,
                     "peers": beside(row, suffix, floor), "targets": targets})
    return rows


def point_rows():
    """Single locks."""
    rows = []
    for threads, times in ((1, 8), (2, 5)):
        end = f"/threads:{threads}"
        title = f"X acquire + release, random of 1 M, {plural(threads)}"
        wanted = [("lock_db_recreation", times), ("berkeley_db", times)]
        pair = each_of_ours("point_x", "point_x", end, title, wanted, "floor_mutex_map")
        if threads == 1:
            for row in pair:
                row["targets"].append(at_most(row["ours"], f"point_x/floor_mutex_map{end}", 1.0))
        rows += pair
        for who, how, plain in (("ours_lock", "Transaction::lock", "ours_handle"),
                                ("ours_acquire", "acquire by id", "ours_id"),
                                ("ours_request", "request by id", "ours_id")):
            ours = f"point_x/{who}{end}"
            peers = {} if who != "ours_request" else {
                RECREATION: f"point_x/lock_db_recreation_request{end}"}
            rows.append({"group": "point_x", "unit": "ns", "ours": ours, "peers": peers,
                         "title": f"the same with {how}, {plural(threads)}",
                         "targets": [at_most(ours, f"point_x/{plain}{end}", 1.2)]})
    for threads in (1, 2):
        end = f"/threads:{threads}"
        wanted = [(peer, 2) for peer in ("lock_db_recreation", "berkeley_db", "rocksdb")]
        rows += each_of_ours("hot_s", "hot_s", end, f"S on one hot resource, {plural(threads)}",
                             wanted, "floor_shared_mutex_map")
    rows += each_of_ours("disjoint_x", "disjoint_x", "/threads:2",
                         "X on a resource of one's own, 2 threads", [], "floor_mutex_map")
    rows += each_of_ours("upgrade", "upgrade", "/threads:1", "S, upgrade to X, release", [])
    return rows


def transaction_rows():
    """Several locks that are released together."""
    rows = []
    for row, title, times in (("levels_4", "IX IX IX X + release_all", 10),
                              ("locks_16", "16 X + release_all", 6)):
        for threads in (1, 2):
            # Two threads on the same three IX locks exchange six cache lines per transaction, which
            # takes most of the time. So the target is for one thread.
            is_free_running = threads == 1 or row == "locks_16"
            wanted = [("lock_db_recreation", times), ("berkeley_db", times)]
            wanted = wanted if is_free_running else []
            rows += each_of_ours(row, row, f"/threads:{threads}",
                                 f"{title}, {plural(threads)}", wanted)
    return rows


def range_rows():
    """Ranges between live ranges."""
    rows = []
    for live in (10, 1_000, 100_000):
        pair = each_of_ours("range", "range", f"/{live}",
                            f"range acquire + release, {live:,} live", [])
        for row in pair:
            del row["peers"][BERKELEY]
            if live == 100_000:
                first = row["ours"].replace("/100000", "/10")
                text, check = at_most(row["ours"], first, 8)
                row["targets"] = [faster("range/lock_db_recreation/100000", row["ours"], 100),
                                  (text.split("x ")[0] + "x of 10 live", check)]
        rows += pair
    return rows


def deadlock_rows():
    """Deadlock detection."""
    unrelated = "deadlock_unrelated/ours_request/10000"
    rows = [{"group": "deadlock_unrelated", "unit": "ns", "ours": unrelated,
             "title": "deadlock check, 10,000 unrelated waiters",
             "peers": {RECREATION: "deadlock_unrelated/lock_db_recreation/10000",
                       BERKELEY: "deadlock_unrelated/berkeley_db/10000"},
             "targets": [below(unrelated, 1_000, "< 1 µs")]}]
    for length in (1_000, 10_000):
        ours = f"deadlock_chain/ours_request/{length}"
        rows.append({"group": "deadlock_chain", "unit": "ns", "ours": ours,
                     "title": f"deadlock check, chain of {length:,}",
                     "peers": {RECREATION: f"deadlock_chain/lock_db_recreation/{length}",
                               ROCKS: f"deadlock_chain/rocksdb/{length}"},
                     "targets": [below(ours, 1e6, "< 1 ms")] if length == 10_000 else []})
    for waiters in (0, 10_000):
        rows.append({"group": "granted_among", "unit": "ns",
                     "ours": f"granted_among/ours_request/{waiters}",
                     "title": f"request that is granted, {waiters:,} others wait",
                     "peers": {RECREATION: f"granted_among/lock_db_recreation/{waiters}"},
                     "targets": []})
    return rows


def other_rows():
    """Names, paths, blocked threads and memory."""
    rows = each_of_ours("name_x", "name_x", "", "X by name, random of 1 M", [], "floor_mutex_map")
    for row in rows:
        del row["peers"][RECREATION]
    rows.append({"group": "path_4", "unit": "ns", "ours": "path_4/ours_handle",
                 "title": "lock_path of 4 steps + unlock_all", "targets": [],
                 "peers": {BERKELEY: "path_4/berkeley_db", ROCKS: "path_4/rocksdb"}})
    for who, how in (("ours_lock", "Transaction"), ("ours_acquire", "by id")):
        ours = f"hand_over/{who}"
        rows.append({"group": "hand_over", "unit": "ns wall", "ours": ours,
                     "title": f"hand-over to a blocked thread, p50, {how}",
                     "peers": {BERKELEY: "hand_over/berkeley_db", ROCKS: "hand_over/rocksdb",
                               FLOOR: "hand_over/floor_std_mutex"},
                     "targets": [at_most(ours, "hand_over/floor_std_mutex", 1.0)]})
    for kind in ("allocated", "resident"):
        for who, how in (("ours_handle", "Transaction"), ("ours_id", "by id")):
            ours = f"{kind}/{who}"
            rows.append({"group": "memory", "unit": "bytes", "ours": ours,
                         "title": f"bytes per held lock, 16 each, {kind}, {how}",
                         "peers": beside(kind, ""),
                         "targets": [below(ours, 100, "≤ 100 bytes")]})
    return rows


def plural(threads):
    """1 thread, 2 threads."""
    return f"{threads} thread" + ("" if threads == 1 else "s")


def all_rows():
    """In the order of the table."""
    return point_rows() + transaction_rows() + range_rows() + deadlock_rows() + other_rows()
