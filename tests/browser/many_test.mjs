// The list of 100,000 locks.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { close_all, eventually, Fixture, texts, Viewer } from "./fixture.mjs";

const total = 100_000;

after(close_all);

test("a hundred thousand locks are listed, searched and scrolled", async () => {
  const [fixture, viewer] = await Promise.all([Fixture.open(), Viewer.open()]);
  await fixture.do("many", { count: total, prefix: "shop/cart/" });
  assert.equal((await fixture.api("/v1/status")).counts.locks, total);

  const begin = performance.now();
  const page = await viewer.visit(fixture.address, "#/locks");
  page.setDefaultTimeout(60_000);
  await page.waitForSelector(".row");
  assert.equal(await page.textContent("[data-testid=shown]"), "100,000 locks");
  console.log(`# loaded in ${Math.round(performance.now() - begin)} ms`);
  assert.ok(await page.locator(".row").count() < 60, "only the visible rows exist");

  await page.locator(".table-body").focus();
  await page.keyboard.press("End");
  await eventually(() => texts(page, ".row .name"),
    (seen) => seen.at(-1) === "shop/cart/099999", "the last one");
  await page.getByRole("searchbox").fill("cart/051234");
  await eventually(() => texts(page, ".row .name"), (seen) => seen.join() === "shop/cart/051234",
    "the only match");

  // The list receives live updates.
  await fixture.do("wait", { name: "shop/cart/051234", as: "ann" });
  await eventually(() => page.locator(".row .waiters").allTextContents(),
    (seen) => seen.join() === "1", "one waiter");
  viewer.expect_no_errors();
  await Promise.all([viewer.close(), fixture.close()]);
});
