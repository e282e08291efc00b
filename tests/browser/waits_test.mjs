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

  await fixture.do("unlock", { as: "bob", token });
  await eventually(() => texts(page, ".node.is-lock .node-title"), (seen) => seen.join() === "one",
    "the graph is updated");
  await page.close();
});

test("the list has every holder and waiter in the order of the queue", async () => {
  await fixture.do("wait", { name: "one", as: "dan" });
  const page = await viewer.visit(fixture.address, "#/waits");
  await page.getByRole("group", { name: "Show as" }).getByRole("button", { name: "List" }).click();
  assert.match(await page.evaluate(() => location.hash), /view=list/);
  await page.reload();
  await page.waitForSelector(".wait-list");
  const rows = await page.locator(".wait-list tr.is-holder, .wait-list tr.is-waiter")
    .evaluateAll((all) => all.map((row) => [...row.cells].slice(0, 2).map((cell) =>
      cell.textContent)));
  assert.deepEqual(rows, [["holds it", "ann"], ["1.", "bob"], ["2.", "cyd"], ["3.", "dan"]]);
  await page.close();
});

test("the front of the queue is at the top, and no button covers a node", async () => {
  const page = await viewer.visit(fixture.address, "#/waits?view=drawing");
  await page.waitForSelector(".node");
  const tops = await page.locator(".node.is-lease").evaluateAll((nodes) => Object.fromEntries(
    nodes.map((node) => [node.querySelector(".node-title").textContent,
      node.getBoundingClientRect().top])));
  assert.ok(tops.bob < tops.cyd && tops.cyd < tops.dan, JSON.stringify(tops));
  // Even after zooming in: the drawing is clipped at the edge of its box.
  for (const factor of [0, 1, 2, 3]) {
    const covered = await page.evaluate(() => {
      const canvas = document.querySelector(".canvas").getBoundingClientRect();
      return [...document.querySelectorAll(".canvas-buttons button")].filter((button) => {
        const box = button.getBoundingClientRect();
        return box.bottom > canvas.top && box.top < canvas.bottom;
      }).length;
    });
    assert.equal(covered, 0, `after ${factor} steps`);
    await page.getByRole("button", { name: "Zoom in" }).click();
  }
  await page.close();
});

test("a phone starts with the list", async () => {
  const phone = await Viewer.open({ viewport: { width: 390, height: 844 } });
  const page = await phone.visit(fixture.address, "#/waits");
  await page.waitForSelector(".wait-list");
  assert.equal(await count(page, ".canvas"), 0);
  await page.getByRole("button", { name: "Drawing" }).click();
  await page.waitForSelector(".canvas .node");
  phone.expect_no_errors();
  await phone.close();
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
    [one.querySelector("strong").textContent,
      ...[...one.querySelectorAll("a")].map((link) => link.textContent)]));
  // Each participant held what the other one waited for.
  assert.deepEqual(deadlocks[0].cycle.map((step) => step.name).sort(), ["x/1", "x/2"]);
  assert.deepEqual(shown, deadlocks[0].cycle.map((step) => [step.owner,
    step.name === "x/1" ? "x/2" : "x/1", step.name]));
  assert.match(await page.locator(".cycle li").first().textContent(),
    /fay.* held x\/2 and waited for x\/1/);
  assert.match(await page.locator(".cycle li").first().textContent(), /fay.*victim/);
  assert.equal(await count(page, ".ring-dot"), 2);
  // Both owners stay in the graph, since one waits for the other, and are marked there.
  await eventually(() => count(page, ".node.is-marked"), (marked) => marked === 2,
    "both are marked");
  await page.close();
});

test("identical deadlocks are one entry with their number", async () => {
  const alone = await Fixture.open();
  await alone.do("deadlock", { clients: ["eve", "fay"], locks: ["y/1", "y/2"] });
  await alone.do("deadlock", { clients: ["hal", "ida"], locks: ["w/1", "w/2"], times: 4 });
  assert.equal((await alone.api("/v1/deadlocks")).deadlocks.length, 5);
  const page = await viewer.visit(alone.address, "#/waits");
  await eventually(() => count(page, ".ring-card"), (cards) => cards === 2, "two groups");
  assert.match(await page.locator(".ring-card").first().textContent(), /4 times/);
  assert.doesNotMatch(await page.locator(".ring-card").last().textContent(), /times/);
  await page.close();
  await alone.close();
});
