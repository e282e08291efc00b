// Wait-for graph and deadlocks.

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

const count = (page, selector) => page.locator(selector).count();

test("the graph has a node for every owner and an edge for every hold and wait", async () => {
  await fixture.do("lock", { name: "one", as: "ann" });
  const { token } = await fixture.do("lock", { name: "two", as: "bob" });
  await fixture.do("wait", { name: "one", as: "bob" });
  await fixture.do("wait", { name: "one", as: "cyd" });
  await fixture.do("wait", { name: "two", as: "dan" });
  const page = await viewer.visit(fixture.address, "#/waits");
  await page.waitForSelector(".node");

  const graph = await fixture.api("/v1/graph");
  const holds = graph.locks.flatMap((lock) => lock.holders);
  const waits = graph.locks.flatMap((lock) => lock.queue);
  const owners = new Set([...holds, ...waits].map((one) => one.owner));
  assert.deepEqual((await texts(page, ".node.is-lease .node-title")).sort(), [...owners].sort());
  assert.deepEqual((await texts(page, ".node.is-lock .node-title")).sort(),
    graph.locks.map((lock) => lock.name).sort());
  assert.equal(await count(page, ".edge.is-held"), holds.length);
  assert.equal(await count(page, ".edge.is-waits"), waits.length);
  assert.match(await page.textContent(".in-words"), /dan has waited .* for two, held by bob/);

  await fixture.do("unlock", { as: "bob", token });
  await eventually(() => texts(page, ".node.is-lock .node-title"), (seen) => seen.join() === "one",
    "the graph is updated");
  await page.close();
});

test("keys pan and zoom the graph", async () => {
  const page = await viewer.visit(fixture.address, "#/waits");
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

test("a deadlock is listed with all participants and its victim", async () => {
  const page = await viewer.visit(fixture.address, "#/waits");
  await page.getByText("None since this member started").waitFor();
  const answer = await fixture.do("deadlock", { clients: ["eve", "fay"], locks: ["x/1", "x/2"],
    stay: true });
  assert.equal(answer.acquired, false);
  await page.waitForSelector(".ring-card");

  const { deadlocks } = await fixture.api("/v1/deadlocks");
  assert.equal(deadlocks.length, 1);
  const shown = await page.locator(".cycle li").evaluateAll((all) => all.map((one) =>
    [one.querySelector("strong").textContent, one.querySelector("a").textContent]));
  assert.deepEqual(shown, deadlocks[0].cycle.map((step) => [step.owner, step.name]));
  assert.match(await page.locator(".cycle li").first().textContent(), /fay.*victim/);
  assert.equal(await count(page, ".ring-dot"), 2);
  // Both owners stay in the graph, since one waits for the other, and are marked there.
  await eventually(() => count(page, ".node.is-marked"), (marked) => marked === 2,
    "both are marked");
  await page.close();
});
