import assert from "node:assert/strict";
import { test } from "node:test";

import { encode_name } from "../src/api/client";
import { after } from "../src/api/feed";
import type { Cluster, Deadlock, Graph, Lock, LockEvent, Member, Rights, Status } from
  "../src/api/types";
import { group_deadlocks } from "../src/model/deadlocks";
import { folders_of, parents_of } from "../src/model/folders";
import { bytes, duration, forced_by, hue, latency, owner_hue, owner_of, plural, rate, short_id,
  visible, visible_lines, wall_clock } from "../src/model/format";
import { draw } from "../src/model/graph";
import { apply, heat_of, key_of, row_of, type Row } from "../src/model/locks";
import { contact_of } from "../src/model/members";
import { selection_of } from "../src/model/query";
import { event_ranges, range_of, round_times } from "../src/model/ranges";
import { is_locked_out, level_of, may, may_administer, may_force, may_revoke } from
  "../src/model/rights";
import { append } from "../src/model/series";
import { arrange, default_selection, type Selection } from "../src/model/sorting";
import { timeline_of } from "../src/model/timeline";
import { lock_link, parse_route, with_query } from "../src/router";

function lock(name: string, fields: Partial<Lock> = {}): Lock {
  return { name, kind: "lock", create_revision: "1", mod_revision: "1", version: 1, holder_count: 1,
    waiter_count: 0, holders: [{ owner: `owner of ${name}`, user: "", lease: "7", request: "1",
      token: "12",
      mode: "X", create_revision: "1", held_for_ms: 1000, count: 1, metadata: "" }], ...fields };
}

function event(type: LockEvent["type"], fields: Partial<LockEvent> = {}): LockEvent {
  return { type, revision: "1", cluster_time_ms: 0, name: "a", kind: "lock", lease: "7",
    request: "1", owner: "ann", user: "", metadata: "", mode: "X", ...fields };
}

test("durations have two units at most", () => {
  assert.deepEqual([0, 999, 1500, 59_900, 61_000, 3_600_000, 90_061_000].map(duration),
    ["0 ms", "999 ms", "1.5 s", "59 s", "1 m 1 s", "1 h", "1 d 1 h"]);
  assert.equal(duration(-5), "0 s");
});

test("a remaining time is rounded down", () => {
  assert.equal(duration(9_999), "9.9 s");
});

test("latencies, rates and sizes have two or three significant digits", () => {
  assert.deepEqual([0.00002, 0.0014, 0.25, 2.5, null].map(latency),
    ["20 µs", "1.4 ms", "250 ms", "2.5 s", "–"]);
  assert.deepEqual([0, 0.125, 3.14, 1234.5].map(rate), ["0", "0.13", "3.1", "1,235"]);
  assert.deepEqual([12, 2048, 8 << 20].map(bytes), ["12 B", "2.0 KiB", "8.0 MiB"]);
});

test("neighbours of a numbered group of owners have distant hues", () => {
  for (const prefix of ["", "worker-"]) {
    for (let number = 1; number < 100; ++number) {
      for (const step of [1, 2]) {
        const apart = Math.abs(hue(prefix + number) - hue(prefix + (number + step)));
        assert.ok(Math.min(apart, 360 - apart) > 60, `${prefix}${number}, ${step}`);
      }
    }
  }
  for (const text of ["", "18446744073709551615", "\u{1f512}", "ann"]) {
    assert.ok(hue(text) >= 0 && hue(text) < 360, text);
  }
});

test("an owner has the same colour with every lease", () => {
  assert.equal(owner_hue({ owner: "ann", lease: "7" }), owner_hue({ owner: "ann", lease: "8" }));
  assert.notEqual(owner_hue({ owner: "ann", lease: "7" }), owner_hue({ owner: "bob", lease: "7" }));
  assert.notEqual(owner_hue({ owner: "", lease: "7" }), owner_hue({ owner: "", lease: "8" }));
});

// A name with U+202E is drawn reversed: "pay/\u202Egpj.exe" looks like "pay/exe.jpg".
test("invisible and bidirectional control characters are shown as escapes", () => {
  for (const code of [0x00, 0x1b, 0x85, 0xad, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x202a, 0x202b,
    0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0xfeff]) {
    assert.equal(visible(`a${String.fromCodePoint(code)}b`),
      `a\\u${code.toString(16).padStart(4, "0")}b`);
  }
  assert.equal(visible("\u{e0041}"), "\\u{e0041}");
  assert.equal(visible("שלום/a b.ü€🔒"), "שלום/a b.ü€🔒");
  assert.equal(visible_lines("a\nb\u202e"), "a\nb\\u202e");
  assert.equal(owner_of({ owner: "\u202eann", lease: "7" }), "\\u202eann");
  assert.equal(forced_by({ operator: "o\u202e", reason: "r\u2066" }), " by o\\u202e: r\\u2066");
});

test("a wall-clock time has a date unless it is today", () => {
  const today = new Date(2026, 10, 19, 14, 5, 9);
  assert.equal(wall_clock(today, today), "14:05:09");
  assert.equal(wall_clock(new Date(2026, 0, 2, 3, 4, 5), today), "2026-01-02 03:04:05");
});

test("one thing is counted in the singular", () => {
  assert.deepEqual([0, 1, 2, 1000].map((number) => plural(number, "lock")),
    ["0 locks", "1 lock", "2 locks", "1,000 locks"]);
});

test("long ids are shortened to their last digits", () => {
  assert.equal(short_id("42"), "42");
  assert.equal(short_id("18446744073709551615"), "…551615");
});

// Revisions are larger than what a number can hold.
test("the next revision is exact", () => {
  assert.equal(after("9007199254740993"), "9007199254740994");
});

test("names are percent-encoded byte by byte", () => {
  assert.equal(encode_name({ name: "a/b c?#", kind: "lock" }), "a%2Fb%20c%3F%23");
  assert.equal(encode_name({ name: btoa("\xff/"), kind: "lock", is_base64: true }), "%ff%2f");
});

test("a link to a lock parses to that lock", () => {
  for (const place of [{ name: "a/b?c#d&e=f", kind: "lock" as const, is_base64: false },
    { name: "ü", kind: "space" as const, is_base64: false },
    { name: "/w==", kind: "lock" as const, is_base64: true }]) {
    assert.deepEqual(parse_route(lock_link(place)), { view: "lock", place });
  }
  assert.deepEqual(parse_route("#/nowhere"), { view: "unknown" });
  assert.deepEqual(parse_route(""), { view: "overview" });
});

test("a lock and a space of the same name are two rows", () => {
  assert.notEqual(key_of({ name: "a", kind: "lock" }), key_of({ name: "a", kind: "space" }));
  assert.equal(key_of({ name: "a", kind: "lock" }), key_of({ name: "a", kind: "semaphore" }));
});

test("events update a row like a reload would", () => {
  const row = row_of(lock("a"), 1000);
  assert.equal(row.since, 0);
  assert.ok(apply(row, event("queued", { lease: "8" }), 2000));
  assert.equal(row.waiters, 1);
  assert.ok(apply(row, event("released", { token: "12" }), 3000));
  assert.equal(row.holders, 0);
  assert.ok(apply(row, event("granted", { lease: "8", owner: "bob", token: "15" }), 3000));
  assert.deepEqual([row.holders, row.waiters, row.owner, row.token, row.since],
    [1, 0, "bob", "15", 3000]);
  assert.ok(!apply(row, event("expired", { lease: "8", token: "15" }), 4000));
});

test("the end of a wait is not the end of a hold", () => {
  const row = row_of(lock("a", { waiter_count: 2 }), 0);
  assert.ok(apply(row, event("expired", { lease: "8" }), 0));
  assert.ok(apply(row, event("abandoned", { lease: "9" }), 0));
  assert.ok(apply(row, event("deadlock", { lease: "9" }), 0));
  assert.deepEqual([row.holders, row.waiters], [1, 0]);
});

test("heat is recent grants per second and decays", () => {
  const row = row_of(lock("a"), 0);
  for (let at = 0; at <= 120_000; at += 500) {
    apply(row, event("granted", { token: "1" }), at);
  }
  assert.ok(Math.abs(heat_of(row, 120_000) - 2) < 0.1);
  assert.ok(heat_of(row, 180_000) < 0.05);
});

function row(name: string, fields: Partial<Row> = {}): Row {
  return { ...row_of(lock(name), 10_000), ...fields };
}

test("rows are searched by name and owner and sorted by the chosen column", () => {
  const rows = [row("b", { waiters: 1 }), row("a", { waiters: 3 }), row("c/Nightly")];
  const names = (wanted: Partial<Selection>) => arrange(rows,
    { ...default_selection, ...wanted }, 10_000).map((one) => one.name);
  assert.deepEqual(names({}), ["a", "b", "c/Nightly"]);
  assert.deepEqual(names({ is_descending: true }), ["c/Nightly", "b", "a"]);
  assert.deepEqual(names({ sort: "waiters", is_descending: true }), ["a", "b", "c/Nightly"]);
  assert.deepEqual(names({ search: " nightly" }), ["c/Nightly"]);
  assert.deepEqual(names({ search: "owner of b" }), ["b"]);
  assert.deepEqual(names({ filter: "waiting" }), ["a", "b"]);
  assert.deepEqual(names({ filter: "hot" }), []);
});

test("rows are filtered by owner, user, mode, age and metadata", () => {
  const rows = [row("a", { owner: "Ann", metadata: "release 4.2", since: 0 }),
    row("b", { owner: "batch", user: "ann", mode: "S" }), row("free", { holders: 0, waiters: 1 })];
  const names = (wanted: Partial<Selection>) => arrange(rows,
    { ...default_selection, ...wanted }, 10_000).map((one) => one.name);
  assert.deepEqual(names({ owner: "ann" }), ["a", "b"]);
  assert.deepEqual(names({ search: "ann" }), ["a", "b"]);
  assert.deepEqual(names({ mode: "S" }), ["b"]);
  assert.deepEqual(names({ age_ms: 10_000 }), ["a"]);
  assert.deepEqual(names({ metadata: "RELEASE" }), ["a"]);
  assert.deepEqual(names({ owner: "ann", mode: "X" }), ["a"]);
});

test("a selection is read from the URL, and unknown values are ignored", () => {
  const read = (text: string) => selection_of(new URLSearchParams(text));
  assert.deepEqual(read(""), default_selection);
  assert.deepEqual(read("q=db&filter=held&sort=since&order=desc&owner=ann&mode=S&age=10m" +
    "&metadata=x&view=folders&in=db%2F"), { search: "db", filter: "held", sort: "since",
    is_descending: true, owner: "ann", mode: "S", age_ms: 600_000, metadata: "x", folder: "db/" });
  assert.deepEqual(read("filter=odd&sort=odd&mode=odd&age=odd"), default_selection);
});

test("a parameter is changed in the URL and the others stay", () => {
  assert.equal(with_query("#/locks", { q: "a b/c?" }), "#/locks?q=a+b%2Fc%3F");
  assert.equal(with_query("#/locks?q=a&filter=held", { q: undefined }), "#/locks?filter=held");
  assert.equal(with_query("#/lock?name=x%3Fy", { range: "5m" }), "#/lock?name=x%3Fy&range=5m");
  assert.equal(with_query("", { range: "5m" }), "#/?range=5m");
});

test("a folder has the locks below it, and its own locks are listed directly", () => {
  const rows = [row("db/a", { waiters: 2 }), row("db/users/1"), row("db/users/2", { waiters: 1 }),
    row("db/z/1")];
  const { folders, rows: direct } = folders_of(rows, "db/");
  assert.deepEqual(folders, [
    { path: "db/users/", title: "users/", locks: 2, waiters: 1 },
    { path: "db/z/", title: "z/", locks: 1, waiters: 0 }]);
  assert.deepEqual(direct.map((one) => one.name), ["db/a"]);
  assert.deepEqual(folders_of(rows, "").folders.map((folder) => [folder.path, folder.waiters]),
    [["db/", 3]]);
  assert.deepEqual(parents_of("db/users/"),
    [{ path: "db/", title: "db/" }, { path: "db/users/", title: "users/" }]);
});

test("a list of 100,000 rows is sorted", () => {
  const rows = Array.from({ length: 100_000 }, (_, i) => row(`n/${i * 7919 % 100_000}`));
  const shown = arrange(rows, { ...default_selection, sort: "since", is_descending: true }, 10_000);
  assert.equal(shown.length, 100_000);
  assert.equal(shown[0]!.name, "n/0");
});

test("series grow at the end and are truncated at the start", () => {
  const more = { interval_ms: 2000, samples_max: 3, last: 5, series: { a: [3, 4] } };
  assert.deepEqual(append({ a: [1, 2] }, more), { a: [2, 3, 4] });
  assert.deepEqual(append({}, more), { a: [3, 4] });
});

test("a timeline has a bar for each hold and each wait", () => {
  const { spans, lanes } = timeline_of([
    event("granted", { cluster_time_ms: 10, token: "1" }),
    event("queued", { cluster_time_ms: 20, lease: "8", request: "2" }),
    event("released", { cluster_time_ms: 30, token: "1" }),
    event("granted", { cluster_time_ms: 30, lease: "8", request: "2", token: "5" }),
  ]);
  assert.deepEqual(spans.map((span) => [span.kind, span.from, span.to, span.end]),
    [["held", 10, 30, "released"], ["waited", 20, 30, "granted"], ["held", 30, Infinity, ""]]);
  assert.equal(lanes, 2);
});

test("a span that began before the first event is drawn from the left edge", () => {
  const { spans } = timeline_of([event("expired", { cluster_time_ms: 30, token: "1" })]);
  assert.deepEqual(spans.map((span) => [span.from, span.to, span.end]),
    [[-Infinity, 30, "expired"]]);
});

test("an axis has round wall-clock times", () => {
  const at = (hours: number, minutes: number, seconds: number) =>
    new Date(2026, 10, 19, hours, minutes, seconds).getTime();
  const labels = (times: number[]) =>
    times.map((time) => new Date(time).toTimeString().slice(0, 8));
  assert.deepEqual(labels(round_times(at(14, 3, 7), at(14, 5, 9), 6)),
    ["14:03:30", "14:04:00", "14:04:30", "14:05:00"]);
  assert.deepEqual(labels(round_times(at(9, 50, 0), at(14, 5, 9), 6)),
    ["10:00:00", "11:00:00", "12:00:00", "13:00:00", "14:00:00"]);
});

test("a time range without a value in the URL is the longest", () => {
  assert.equal(range_of(event_ranges, "5m").ms, 300_000);
  assert.equal(range_of(event_ranges, null).ms, Infinity);
  assert.equal(range_of(event_ranges, "odd").ms, Infinity);
});

function deadlock(revision: string, steps: [owner: string, name: string][]): Deadlock {
  return { revision, cluster_time_ms: Number(revision), ago_ms: 0, cycle: steps.map(
    ([owner, name], i) => ({ lease: `${revision}${i}`, request: "1", owner, name,
      kind: "lock" })) };
}

test("deadlocks of the same owners and locks are one group, whichever is the victim", () => {
  const groups = group_deadlocks([
    deadlock("30", [["ann", "a"], ["bob", "b"]]),
    deadlock("20", [["bob", "b"], ["ann", "a"]]),
    deadlock("15", [["ann", "b"], ["bob", "a"]]),
    deadlock("10", [["ann", "a"], ["bob", "b"]])]);
  assert.deepEqual(groups.map((group) =>
    [group.latest.revision, group.first.revision, group.count]),
    [["30", "10", 3], ["15", "15", 1]]);
});

test("without a leader, members without a connection are unreachable", () => {
  const member = (id: string, fields: Partial<Member> = {}): Member => ({ member: id,
    is_voter: true, is_leader: false, peer_address: "", client_address: "", ...fields });
  const dead = member("2");
  const live = member("3", { newest_version: "2" });
  const cluster: Cluster = { cluster: "1", member: "1", role: "follower", leader: "0",
    leader_address: "", term: "1", commit_index: "1", cluster_version: "2", members: [] };
  assert.deepEqual(contact_of(dead, cluster), { is_reached: false, role: "unreachable" });
  assert.deepEqual(contact_of(live, cluster), { is_reached: true, role: "voter" });
  assert.deepEqual(contact_of(member("1"), cluster), { is_reached: true, role: "voter" });
  assert.deepEqual(contact_of({ ...live, silent_ms: 5_000 }, { ...cluster, leader: "1" }),
    { is_reached: false, role: "unreachable" });
  assert.deepEqual(contact_of({ ...live, is_leader: true }, { ...cluster, leader: "3" }),
    { is_reached: true, role: "leader" });
});

function wait(lease: string, position: number) {
  return { position, owner: "", user: "", lease, request: "1", ticket: lease, waited_ms: 5,
    is_upgrade: false,
    metadata: "", mode: "X" };
}

test("the graph has an edge for each hold and each wait", () => {
  const graph: Graph = { revision: "1", waits: 2, is_complete: true, locks: [
    lock("a", { waiter_count: 2, queue: [wait("8", 1), wait("9", 2)] })] };
  const { nodes, edges, width } = draw(graph);
  assert.deepEqual(nodes.map((node) => node.id).sort(),
    ["lease 7", "lease 8", "lease 9", "lock nta"]);
  assert.deepEqual(edges.map((edge) => [edge.kind, edge.from, edge.to]), [
    ["held", "lock nta", "lease 7"], ["waits", "lease 8", "lock nta"],
    ["waits", "lease 9", "lock nta"]]);
  assert.ok(width > 0 && edges.every((edge) => edge.path.startsWith("M")));
});

test("a long queue is drawn as its first waiters and the number of others", () => {
  const queue = Array.from({ length: 50 }, (_, i) => wait(String(100 + i), i + 1));
  const { nodes } = draw({ revision: "1", waits: 300, is_complete: true,
    locks: [lock("a", { waiter_count: 300, queue })] });
  assert.equal(nodes.filter((node) => node.kind === "lease").length, 11);
  assert.equal(nodes.find((node) => node.kind === "more")?.title, "290 more");
});

/// Vertical positions of the waiters with these leases.
function heights(graph: Graph, leases: string[]): number[] {
  const { nodes } = draw(graph);
  return leases.map((lease) => nodes.find((node) => node.id === `lease ${lease}`)!.y);
}

test("the front of a queue is drawn at the top", () => {
  const queue = ["30", "10", "20", "50", "40", "60"].map((lease, i) => wait(lease, i + 1));
  const graph: Graph = { revision: "1", waits: 6, is_complete: true, locks: [
    lock("a", { waiter_count: 8, queue }),
    lock("b", { waiter_count: 1, holders: [{ ...lock("b").holders[0]!, lease: "99" }],
      queue: [wait("20", 1)] })] };
  const order = queue.map((one) => one.lease);
  const is_sorted = (drawn: number[]) =>
    assert.deepEqual(drawn, [...drawn].sort((left, right) => left - right));
  const drawn = heights(graph, order);
  is_sorted(drawn);
  // The last waiter holds a lock that others wait for.
  const held_by_60: Graph = { ...graph, locks: [
    lock("c", { waiter_count: 1, holders: [{ ...lock("c").holders[0]!, lease: "60" }],
      queue: [wait("70", 1)] }), ...graph.locks] };
  is_sorted(heights(held_by_60, order));
  const more = draw(graph).nodes.find((node) => node.kind === "more")!;
  assert.ok(more.y > Math.max(...drawn));
});

// The order of the first queue wins; the second one cannot be drawn the right way up as well.
test("two leases that wait in opposite order in two queues are drawn", () => {
  const graph: Graph = { revision: "1", waits: 4, is_complete: true, locks: [
    lock("a", { waiter_count: 2, queue: [wait("8", 1), wait("9", 2)] }),
    lock("b", { waiter_count: 2, queue: [wait("9", 1), wait("8", 2)] })] };
  const [first, second] = heights(graph, ["8", "9"]);
  assert.ok(first! < second!);
});

test("locks beyond the drawing limit are left out and counted", () => {
  const locks = Array.from({ length: 200 }, (_, i) =>
    lock(`n${i}`, { waiter_count: 1, queue: [wait(String(1000 + i), 1)] }));
  const { nodes, left_out } = draw({ revision: "1", waits: 200, is_complete: true, locks });
  assert.ok(nodes.length < 170 && left_out > 100);
});

const logged_out: Rights = { may_force: false, force_reason: "", may_lock: false, lock_reason: "",
  may_administer: false, administer_reason: "", has_users: true, user: "", needs_secret: false,
  lock_needs_secret: false, rights: [] };

const leader = { role: "leader", log: { leader: "1", leader_address: "" } } as Status;
const follower = { role: "follower", log: { leader: "2", leader_address: "db2:7420" } } as Status;

test("an action that is not allowed has a reason", () => {
  const open: Rights = { ...logged_out, has_users: false };
  const denied = may_force({ ...open, force_reason: "listen.http_force is off" }, leader, "a");
  assert.deepEqual(denied, { is_shown: true, is_allowed: false, needs_secret: false,
    why_not: "Not allowed: listen.http_force is off" });
  assert.equal(may_force(undefined, undefined, "a").why_not, "Waiting for the server");
  assert.equal(may_administer({ ...open, may_administer: true }, follower).why_not,
    "This member is a follower; use the leader, member 2 at db2:7420");
  assert.deepEqual(may_administer({ ...open, needs_secret: true }, leader),
    { is_shown: true, is_allowed: true, needs_secret: true, why_not: "" });
});

test("a lease is revoked by its user and by administrators", () => {
  const ann: Rights = { ...logged_out, user: "ann", may_lock: true,
    rights: [{ prefix: "app/", level: "admin" }] };
  assert.ok(may_revoke(ann, leader, "ann").is_allowed);
  assert.ok(!may_revoke(ann, leader, "bob").is_shown);
  assert.ok(may_revoke({ ...ann, rights: [{ prefix: "", level: "admin" }] }, leader, "bob")
    .is_allowed);
  assert.ok(may_revoke({ ...logged_out, has_users: false, lock_needs_secret: true }, leader, "")
    .needs_secret);
});

test("the longest matching prefix decides the permissions", () => {
  const rights: Rights = { ...logged_out, user: "ann", rights: [
    { prefix: "", level: "read" }, { prefix: "app/", level: "admin" },
    { prefix: "app/secret/", level: "none" }] };
  assert.deepEqual(["x", "app/x", "app/secret/x"].map((name) => level_of(rights, name)),
    ["read", "admin", "none"]);
  assert.ok(may(rights, "read", ""));
  assert.ok(!may(rights, "lock", "x"));
  assert.equal(level_of(logged_out, "x"), "none");
});

test("a server with users requires a login", () => {

  assert.ok(is_locked_out(logged_out));
  assert.ok(!is_locked_out({ ...logged_out, user: "ann" }));
  assert.ok(!is_locked_out({ ...logged_out, has_users: false }));
  assert.equal(level_of({ ...logged_out, has_users: false }, "x"), "admin");
  assert.ok(!is_locked_out(undefined));
});
