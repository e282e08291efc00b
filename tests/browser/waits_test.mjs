// Who waits for whom, and deadlocks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { close_everything, eventually, Stage, texts, Viewer } from "./stage.mjs";

let stage;
let viewer;
before(async () => {
  [stage, viewer] = await Promise.all([Stage.open(), Viewer.open()]);
});
after(async () => {
  await close_everything();
  viewer.expect_no_complaints();
});

const count = (page, selector) => page.locator(selector).count();

test("the drawing has a node for everybody and a line for every hold and wait", async () => {
  await stage.do("lock", { name: "one", as: "ann" });
  const { token } = await stage.do("lock", { name: "two", as: "bob" });
  await stage.do("wait", { name: "one", as: "bob" });
  await stage.do("wait", { name: "one", as: "cyd" });
  await stage.do("wait", { name: "two", as: "dan" });
  const page = await viewer.visit(stage.address, "#/waits");
  await page.waitForSelector(".node");

  const graph = await stage.api("/v1/graph");
  const holds = graph.locks.flatMap((lock) => lock.holders);
  const waits = graph.locks.flatMap((lock) => lock.queue);
  const people = new Set([...holds, ...waits].map((one) => one.owner));
  assert.deepEqual((await texts(page, ".node.is-lease .node-title")).sort(), [...people].sort());
  assert.deepEqual((await texts(page, ".node.is-lock .node-title")).sort(),
    graph.locks.map((lock) => lock.name).sort());
  assert.equal(await count(page, ".edge.is-held"), holds.length);
  assert.equal(await count(page, ".edge.is-waits"), waits.length);
  assert.match(await page.textContent(".in-words"), /dan waits since .* for two, held by bob/);

  await stage.do("unlock", { as: "bob", token });
  await eventually(() => texts(page, ".node.is-lock .node-title"), (seen) => seen.join() === "one",
    "the drawing follows");
  await page.close();
});

test("the drawing is moved and zoomed by keys", async () => {
  const page = await viewer.visit(stage.address, "#/waits");
  await page.waitForSelector(".node");
  const place = () => page.locator(".canvas > svg > g").getAttribute("style");
  const fit = await place();
  await page.locator(".canvas").focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("+");
  assert.notEqual(await place(), fit);
  await page.keyboard.press("0");
  assert.equal(await place(), fit);
  await page.close();
});

test("a deadlock is remembered with everybody in it, and who gave way", async () => {
  const page = await viewer.visit(stage.address, "#/waits");
  await page.getByText("None since this member started").waitFor();
  const answer = await stage.do("deadlock", { people: ["eve", "fay"], locks: ["x/1", "x/2"],
    stay: true });
  assert.equal(answer.acquired, false);
  await page.waitForSelector(".ring-card");

  const { deadlocks } = await stage.api("/v1/deadlocks");
  assert.equal(deadlocks.length, 1);
  const shown = await page.locator(".cycle li").evaluateAll((all) => all.map((one) =>
    [one.querySelector("strong").textContent, one.querySelector("a").textContent]));
  assert.deepEqual(shown, deadlocks[0].cycle.map((step) => [step.owner, step.name]));
  assert.match(await page.locator(".cycle li").first().textContent(), /fay.*gave way/);
  assert.equal(await count(page, ".ring-dot"), 2);
  // Both are still in the drawing, since one waits for the other, and are marked there.
  await eventually(() => count(page, ".node.is-marked"), (marked) => marked === 2,
    "both are marked");
  await page.close();
});
