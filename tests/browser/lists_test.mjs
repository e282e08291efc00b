// Lists of locks and leases, compared with the responses of the API.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close_all, eventually, Fixture, texts, Viewer } from "./fixture.mjs";

let fixture;
let viewer;
before(async () => {
  [fixture, viewer] = await Promise.all([Fixture.open(), Viewer.open()]);
});
after(async () => {
  await close_all();
  viewer.expect_no_errors();
});

const names = (page) => texts(page, ".row .col-name .name");

test("a server without locks shows how to acquire one", async () => {
  const page = await viewer.visit(fixture.address, "#/locks");
  await page.getByText("No locks", { exact: true }).waitFor();
  assert.match(await page.textContent("pre.command"), /hold\.py/);

  await page.goto(`${fixture.address}/#/leases`);
  await page.getByText("No leases", { exact: true }).waitFor();
  await page.goto(`${fixture.address}/#/waits`);
  await page.getByText("No waiters", { exact: true }).waitFor();
  await page.close();
});

test("the list has every lock of the API, with holder and number of waiters", async () => {
  await fixture.do("lock", { name: "db/users/42", as: "ann", note: "why" });
  await fixture.do("lock", { name: "db/orders", as: "bob", mode: "S" });
  await fixture.do("lock", { name: "cron/nightly", as: "cron" });
  await fixture.do("wait", { name: "db/users/42", as: "bob" });
  await fixture.do("wait", { name: "db/users/42", as: "cyd" });
  const page = await viewer.visit(fixture.address, "#/locks");
  await page.waitForSelector(".row");

  const { locks } = await fixture.api("/v1/locks");
  const rows = await page.locator(".row").evaluateAll((found) => found.map((row) => ({
    name: row.querySelector(".col-name .name").textContent,
    owner: row.querySelector(".col-holders .owner").textContent,
    mode: row.querySelector(".col-holders .mode").textContent,
    waiters: Number(row.querySelector(".col-waiters").textContent || 0),
  })));
  assert.deepEqual(rows, locks.map((lock) => ({ name: lock.name, owner: lock.holders[0].owner,
    mode: lock.holders[0].mode, waiters: lock.waiter_count })));
  assert.equal(await page.textContent("[data-testid=shown]"), "3 locks");
  await page.close();
});

test("the list updates without a reload", async () => {
  const page = await viewer.visit(fixture.address, "#/locks");
  await page.waitForSelector(".row");
  const { token } = await fixture.do("lock", { name: "live/one", as: "ann" });
  await eventually(() => names(page), (seen) => seen.includes("live/one"), "live/one is there");
  await fixture.do("unlock", { as: "ann", token });
  await eventually(() => names(page), (seen) => !seen.includes("live/one"), "live/one is gone");
  await page.close();
});

test("locks are searched, filtered and sorted", async () => {
  const page = await viewer.visit(fixture.address, "#/locks");
  await page.waitForSelector(".row");

  await page.getByRole("searchbox").fill("ORDERS");
  await eventually(() => names(page), (seen) => seen.join() === "db/orders", "only db/orders");
  assert.equal(await page.textContent("[data-testid=shown]"), "1 of 3 locks");
  await page.getByRole("searchbox").fill("nothing like this");
  await page.getByText("No matching locks").waitFor();
  await page.getByRole("button", { name: "Show all locks" }).click();

  await page.getByRole("button", { name: "Waiting", exact: true }).first().click();
  await eventually(() => names(page), (seen) => seen.join() === "db/users/42",
    "only the lock with waiters");
  await page.getByRole("button", { name: "All" }).click();
  await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
  assert.equal(await page.getByRole("columnheader", { name: "Name" }).getAttribute("aria-sort"),
    "ascending");
  await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
  await eventually(() => names(page), (seen) => seen[0] === "db/users/42", "descending order");
  await page.close();
});

test("a lock is found and opened with the keyboard alone", async () => {
  const page = await viewer.visit(fixture.address, "#/locks");
  await page.waitForSelector(".row");
  await page.keyboard.press("/");
  await page.keyboard.type("db/");
  await eventually(() => names(page), (seen) => seen.length === 2, "two of them");
  await page.locator(".table-body").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/lock\?name=db%2Fusers%2F42/);
  await page.getByRole("article", { name: "Holder" }).waitFor();
  await page.close();
});

test("leases show their remaining time, which counts down", async () => {
  await fixture.do("lease", { as: "hasty", ttl_ms: 60_000 });
  const page = await viewer.visit(fixture.address, "#/leases");
  await page.waitForSelector(".row");
  const { leases } = await fixture.api("/v1/leases");
  assert.deepEqual((await texts(page, ".row .col-client .owner")).sort(),
    leases.map((lease) => lease.client).sort());

  // The list is ordered by remaining time.
  const left = () => page.locator(".row .left .number").first().textContent();
  const shown = Number.parseFloat(await left());
  const { left_ms } = (await fixture.api("/v1/leases")).leases
    .find((lease) => lease.client === "hasty");
  assert.ok(shown * 1000 - left_ms < 3_000 && left_ms - shown * 1000 < 3_000,
    `page: ${shown} s, API: ${left_ms} ms`);
  await eventually(async () => Number.parseFloat(await left()), (now) => now < shown,
    "it counts down");

  await page.locator(".row a").first().click();
  await page.getByText("This lease holds no locks.").waitFor();
  await page.close();
});

test("a lease lists its holds and its waits", async () => {
  const { leases } = await fixture.api("/v1/leases");
  const bob = leases.find((lease) => lease.client === "bob");
  const page = await viewer.visit(fixture.address, `#/lease/${bob.lease}`);
  await page.waitForSelector(".plain-list");
  const { locks } = await fixture.api(`/v1/leases/${bob.lease}`);
  assert.deepEqual((await texts(page, ".plain-list .name")).sort(),
    locks.map((lock) => lock.name).sort());
  await fixture.do("revoke", { as: "bob" });
  await page.getByText("This lease has ended").waitFor();
  await page.close();
});

test("the overview shows the counters of the API and live charts", async () => {
  const page = await viewer.visit(fixture.address, "#/");
  await page.waitForSelector(".tile");
  await fixture.do("traffic", { names: ["hot/a", "hot/b"], clients: 2, hold_s: 0.005,
    pause_s: 0.01 });
  await eventually(async () => [Number(await page.locator(".tile-value").nth(2).textContent()),
    (await fixture.api("/v1/status")).counts.leases], ([shown, expected]) => shown === expected,
    "the number of leases");
  const granted = await eventually(
    async () => Number(await page.textContent("[data-series=granted]")), (rate) => rate > 1,
    "grants");
  const { series } = await fixture.api("/v1/history");
  assert.ok(series.granted.some((rate) => Math.abs(rate - granted) <= 0.1 * granted + 1),
    `${granted} is not among ${series.granted}`);
  assert.equal(await page.locator(".plot canvas").count(), 4);

  await page.goto(`${fixture.address}/#/locks`);
  await page.getByRole("button", { name: "Hot" }).click();
  await eventually(() => names(page), (seen) => seen.includes("hot/a") && seen.length <= 2, "hot");
  await page.close();
});
