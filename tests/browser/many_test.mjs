// A hundred thousand locks.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { close_everything, eventually, Stage, texts, Viewer } from "./stage.mjs";

const total = 100_000;

after(close_everything);

test("a hundred thousand locks are listed, searched and scrolled", async () => {
  const [stage, viewer] = await Promise.all([Stage.open(), Viewer.open()]);
  await stage.do("many", { count: total, prefix: "shop/cart/" });
  assert.equal((await stage.api("/v1/status")).counts.locks, total);

  const begin = performance.now();
  const page = await viewer.visit(stage.address, "#/locks");
  page.setDefaultTimeout(60_000);
  await page.waitForSelector(".row");
  assert.equal(await page.textContent("[data-testid=shown]"), "100,000 locks");
  console.log(`# all of them after ${Math.round(performance.now() - begin)} ms`);
  assert.ok(await page.locator(".row").count() < 60, "only what can be seen is there");

  await page.locator(".table-body").focus();
  await page.keyboard.press("End");
  await eventually(() => texts(page, ".row .name"),
    (seen) => seen.at(-1) === "shop/cart/099999", "the last one");
  await page.getByRole("searchbox").fill("cart/051234");
  await eventually(() => texts(page, ".row .name"), (seen) => seen.join() === "shop/cart/051234",
    "the one");

  // And it is live.
  await stage.do("wait", { name: "shop/cart/051234", as: "ann" });
  await eventually(() => page.locator(".row .waiters").allTextContents(),
    (seen) => seen.join() === "1", "somebody waits");
  viewer.expect_no_complaints();
  await Promise.all([viewer.close(), stage.close()]);
});
