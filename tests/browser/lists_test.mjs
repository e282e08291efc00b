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
  assert.match(await page.textContent(".command"), /^tenure run .*db\/users -- sleep 60$/);
  // The command is complete on a phone as well.
  for (const width of [1280, 320]) {
    await page.setViewportSize({ width, height: 740 });
    const clipped = await page.locator(".command, .command code").evaluateAll((all) =>
      all.filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0).length);
    assert.equal(clipped, 0, `at ${width}`);
    assert.ok(await page.evaluate(() =>
      document.querySelector(".command").getBoundingClientRect().right <= innerWidth));
  }

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

test("the page of the locks shows no empty state before the locks", async () => {
  const other = await Viewer.open();
  await other.context.addInitScript(() => {
    globalThis.empty = [];
    new MutationObserver(() => globalThis.empty.push(...[...document.querySelectorAll(".empty h2")]
      .map((title) => title.textContent))).observe(document, { childList: true, subtree: true });
  });
  const page = await other.visit(fixture.address, "#/locks");
  await page.waitForSelector(".row");
  // The second visit begins with the rows of the first.
  await page.goto(`${fixture.address}/#/leases`);
  await page.getByRole("columnheader", { name: "Client" }).waitFor();
  await page.goto(`${fixture.address}/#/locks`);
  await page.getByRole("columnheader", { name: "Grants/s" }).waitFor();
  assert.deepEqual(await page.evaluate(() => globalThis.empty), []);
  await other.close();
});

test("a single lock is counted in the singular", async () => {
  const page = await viewer.visit(fixture.address, "#/locks?filter=waiting");
  await page.waitForSelector(".row");
  assert.equal(await page.textContent("[data-testid=shown]"), "1 of 3 locks");
  const alone = await Fixture.open();
  await alone.do("lock", { name: "only", as: "ann" });
  await page.close();
  const single = await viewer.visit(alone.address, "#/locks");
  await single.waitForSelector(".row");
  assert.equal(await single.textContent("[data-testid=shown]"), "1 lock");
  await single.close();
  await alone.close();
});

test("the URL contains search, filters and order, and restores them", async () => {
  const page = await viewer.visit(fixture.address, "#/locks");
  await page.waitForSelector(".row");
  await page.getByRole("button", { name: "Filters" }).click();
  await page.getByLabel("Owner or user").fill("ann");
  await page.getByLabel("Mode").selectOption("X");
  await page.getByLabel("Metadata").fill("why");
  await page.getByRole("button", { name: "Held", exact: true }).click();
  await page.getByRole("columnheader", { name: "Held for" }).getByRole("button").click();
  await eventually(() => names(page), (seen) => seen.join() === "db/users/42", "one lock");
  await page.getByRole("searchbox").fill("users");
  const hash = () => page.evaluate(() => location.hash);
  const url = await eventually(hash, (text) => text.includes("q=users"),
    "the search is in the URL");
  const parameters = Object.fromEntries(new URLSearchParams(url.split("?")[1]));
  assert.deepEqual(parameters, { q: "users", filter: "held", owner: "ann", mode: "X",
    metadata: "why", sort: "since", order: "desc" });

  await page.reload();
  await eventually(() => names(page), (seen) => seen.join() === "db/users/42", "after a reload");
  assert.equal(await page.getByLabel("Owner or user").inputValue(), "ann");
  assert.equal(await page.getByRole("searchbox").inputValue(), "users");

  // The page of a lock leads back to the same list.
  await page.locator(".row a").first().click();
  await page.getByRole("article", { name: "Holder" }).waitFor();
  await page.getByRole("link", { name: "Locks" }).last().click();
  await eventually(() => names(page), (seen) => seen.join() === "db/users/42", "back in the list");
  assert.equal(await hash(), url);

  // No lock is held for an hour.
  await page.getByLabel("Held for at least").selectOption("1h");
  await page.getByText("No matching locks").waitFor();
  await page.getByRole("button", { name: "Show all locks" }).click();
  await eventually(() => names(page), (seen) => seen.length === 3, "all");
  await page.close();
});

test("folders group the locks by prefix", async () => {
  const page = await viewer.visit(fixture.address, "#/locks");
  await page.waitForSelector(".row");
  await page.getByRole("button", { name: "Folders" }).click();
  await eventually(() => names(page), (seen) => seen.join() === "cron/,db/", "two folders");
  const db = page.locator(".row", { hasText: "db/" });
  assert.match(await db.textContent(), /2 locks/);
  assert.equal(await db.locator(".waiters").textContent(), "2");
  await db.locator("a").click();
  await eventually(() => names(page), (seen) => seen.join() === "users/,db/orders",
    "a folder and a lock");
  await page.reload();
  await eventually(() => names(page), (seen) => seen.join() === "users/,db/orders", "reloaded");
  // A search covers everything below the folder.
  await page.getByRole("searchbox").fill("42");
  await eventually(() => names(page), (seen) => seen.join() === "db/users/42", "found");
  await page.getByRole("searchbox").fill("");
  await page.getByRole("navigation", { name: "Folders" }).getByRole("link", { name: "All locks" })
    .click();
  await eventually(() => names(page), (seen) => seen.join() === "cron/,db/", "the top again");
  await page.close();
});

test("an owner has the same colour in every view", async () => {
  await fixture.do("lock", { name: "colour/1", as: "lease one", owner: "same" });
  await fixture.do("lock", { name: "colour/2", as: "lease two", owner: "same" });
  const page = await viewer.visit(fixture.address, "#/locks?q=colour");
  await eventually(() => names(page), (seen) => seen.length === 2, "both");
  const hues = () => page.locator(".owner .dot").evaluateAll((dots) => dots.map((dot) =>
    dot.style.getPropertyValue("--hue")));
  const [first, second] = await hues();
  assert.equal(first, second);
  await page.goto(`${fixture.address}/#/lock?name=colour%2F1`);
  await page.waitForSelector(".holder .dot");
  assert.equal((await hues())[0], first);
  await page.close();
  await fixture.do("revoke", { as: "lease one" });
  await fixture.do("revoke", { as: "lease two" });
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

// A TTL of ten minutes has a long text: "9 m 59 s of 10 m".
test("the facts of a lease do not overlap", async () => {
  const { lease } = await fixture.do("lease", { as: "long lease", ttl_ms: 600_000 });
  for (const width of [1280, 800, 390, 320]) {
    const narrow = await Viewer.open({ viewport: { width, height: 740 } });
    const page = await narrow.visit(fixture.address, `#/lease/${lease}`);
    await page.waitForSelector(".facts .left");
    const overlaps = await page.locator(".facts > div").evaluateAll((cells) => {
      const box = (element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        return range.getBoundingClientRect();
      };
      const boxes = cells.map(box);
      const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 &&
        b.top < a.bottom - 1;
      return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => meet(a, b))
        .map((b) => [i, a, b]));
    });
    assert.deepEqual(overlaps, [], `at ${width}`);
    await narrow.close();
  }
});

test("a lease is revoked after a confirmation, and its locks are released", async () => {
  const { lease } = await fixture.do("lock", { name: "revoke/me", as: "lost host" });
  const other = await Viewer.open();
  const page = await other.visit(fixture.address, `#/lease/${lease}`);
  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByLabel("Secret", { exact: true }).fill(fixture.secret);
  await page.getByRole("button", { name: "Continue" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("1 hold and 0 waits").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await fixture.api("/v1/locks/revoke/me")).holders[0].owner, "lost host");

  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Revoke lease" }).click();
  await page.getByText("This lease has ended").waitFor();
  assert.equal((await fetch(`${fixture.address}/v1/locks/revoke/me`)).status, 404);
  other.expect_no_errors();
  await other.close();
});

test("the search and the order of the leases are in the URL", async () => {
  const page = await viewer.visit(fixture.address, "#/leases?q=ann&sort=client&order=desc");
  await eventually(() => texts(page, ".row .col-client .owner"), (seen) => seen.join() === "ann",
    "one client");
  assert.equal(await page.getByRole("columnheader", { name: "Client" }).getAttribute("aria-sort"),
    "descending");
  await page.getByRole("searchbox").fill("nothing like this");
  await page.getByText("No matching leases").waitFor();
  assert.match(await page.evaluate(() => location.hash), /q=nothing/);
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
  await page.getByRole("group", { name: "Time range" }).getByRole("button", { name: "2 min" })
    .click();
  assert.match(await page.evaluate(() => location.hash), /range=2m/);
  await page.reload();
  await eventually(() => page.getByRole("button", { name: "2 min" }).getAttribute("aria-pressed"),
    (pressed) => pressed === "true", "the range is restored");

  await page.goto(`${fixture.address}/#/locks`);
  await page.getByRole("button", { name: "Hot" }).click();
  await eventually(() => names(page), (seen) => seen.includes("hot/a") && seen.length <= 2, "hot");
  await page.close();
});
