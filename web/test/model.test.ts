import assert from "node:assert/strict";
import { test } from "node:test";

import { encode_name } from "../src/api/client";
import { after } from "../src/api/feed";
import type { Graph, Lock, LockEvent, Rights } from "../src/api/types";
import { bytes, duration, hue, latency, rate, short_id } from "../src/model/format";
import { draw } from "../src/model/graph";
import { apply, heat_of, key_of, row_of, type Row } from "../src/model/locks";
import { is_locked_out, level_of, may } from "../src/model/rights";
import { append } from "../src/model/series";
import { arrange } from "../src/model/sorting";
import { timeline_of } from "../src/model/timeline";
import { lock_link, parse_route } from "../src/router";

function lock(name: string, fields: Partial<Lock> = {}): Lock {
  return { name, kind: "lock", create_revision: "1", mod_revision: "1", version: 1, holder_count: 1,
    waiter_count: 0, holders: [{ owner: `owner of ${name}`, lease: "7", request: "1", token: "12",
      mode: "X", create_revision: "1", held_for_ms: 1000, count: 1, metadata: "" }], ...fields };
}

function event(type: LockEvent["type"], fields: Partial<LockEvent> = {}): LockEvent {
  return { type, revision: "1", cluster_time_ms: 0, name: "a", kind: "lock", lease: "7",
    request: "1", owner: "ann", metadata: "", mode: "X", ...fields };
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

test("consecutive lease ids have distant hues", () => {
  for (let lease = 1; lease < 100; ++lease) {
    const apart = Math.abs(hue(String(lease)) - hue(String(lease + 1)));
    assert.ok(Math.min(apart, 360 - apart) > 60);
  }
  assert.ok(hue("18446744073709551615") >= 0);
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
  const names = (order: Partial<Parameters<typeof arrange>[1]>) => arrange(rows,
    { search: "", filter: "all", sort: "name", is_descending: false, ...order }, 10_000)
    .map((one) => one.name);
  assert.deepEqual(names({}), ["a", "b", "c/Nightly"]);
  assert.deepEqual(names({ is_descending: true }), ["c/Nightly", "b", "a"]);
  assert.deepEqual(names({ sort: "waiters", is_descending: true }), ["a", "b", "c/Nightly"]);
  assert.deepEqual(names({ search: " nightly" }), ["c/Nightly"]);
  assert.deepEqual(names({ search: "owner of b" }), ["b"]);
  assert.deepEqual(names({ filter: "waiting" }), ["a", "b"]);
  assert.deepEqual(names({ filter: "hot" }), []);
});

test("a list of 100,000 rows is sorted", () => {
  const rows = Array.from({ length: 100_000 }, (_, i) => row(`n/${i * 7919 % 100_000}`));
  const shown = arrange(rows, { search: "", filter: "all", sort: "since", is_descending: true },
    10_000);
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

function wait(lease: string, position: number) {
  return { position, owner: "", lease, request: "1", ticket: lease, waited_ms: 5, is_upgrade: false,
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

test("locks beyond the drawing limit are left out and counted", () => {
  const locks = Array.from({ length: 200 }, (_, i) =>
    lock(`n${i}`, { waiter_count: 1, queue: [wait(String(1000 + i), 1)] }));
  const { nodes, left_out } = draw({ revision: "1", waits: 200, is_complete: true, locks });
  assert.ok(nodes.length < 170 && left_out > 100);
});

const logged_out: Rights = { may_force: false, why: "", has_users: true, user: "", rights: [] };

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
