// Everybody can use it: with a screen reader, on a phone, in the dark.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { close_everything, eventually, Stage, Viewer } from "./stage.mjs";

const axe = readFileSync(new URL("../../web/node_modules/axe-core/axe.min.js", import.meta.url),
  "utf8");
const views = ["#/", "#/locks", "#/lock?name=db%2Fmigrations", "#/leases", "#/waits", "#/cluster"];

let stage;
before(async () => {
  stage = await Stage.open();
  await stage.do("lock", { name: "db/migrations", as: "deploy", note: "release" });
  await stage.do("wait", { name: "db/migrations", as: "web", mode: "S" });
  await stage.do("deadlock", { people: ["ann", "bob"], locks: ["a".repeat(300), "b"] });
});
after(close_everything);

async function settled(viewer, hash) {
  const page = await viewer.visit(stage.address, hash);
  await page.waitForSelector("main .card, main .row, main .tile");
  await page.waitForSelector(".health.is-good");
  return page;
}

// In the dark only the colours are others.
for (const [colorScheme, rules] of [["light", {}], ["dark", { runOnly: ["color-contrast"] }]]) {
  test(`no view has a fault that axe knows, ${colorScheme}`, async () => {
    // The policy of the page forbids the script that looks for faults.
    const viewer = await Viewer.open({ colorScheme, bypassCSP: true, reducedMotion: "reduce" });
    const faults = [];
    for (const hash of views) {
      const page = await settled(viewer, hash);
      await page.evaluate(axe);
      const { violations } = await page.evaluate((options) => globalThis.axe.run(document, options),
        rules);
      faults.push(...violations.map((fault) =>
        [hash, fault.id, fault.nodes.slice(0, 3).map((node) => node.html)]));
      await page.close();
    }
    assert.deepEqual(faults, []);
    viewer.expect_no_complaints();
    await viewer.close();
  });
}

test("a phone scrolls down and never sideways", async () => {
  const viewer = await Viewer.open({ viewport: { width: 360, height: 740 }, hasTouch: true,
    isMobile: true });
  for (const hash of views) {
    const page = await settled(viewer, hash);
    const [inside, outside] = await page.evaluate(() =>
      [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(inside <= outside, `${hash} is ${inside} wide, the phone ${outside}`);
    await page.close();
  }
  viewer.expect_no_complaints();
  await viewer.close();
});

test("light and dark are chosen, and kept", async () => {
  const viewer = await Viewer.open({ colorScheme: "light" });
  const page = await settled(viewer, "#/");
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByRole("button", { name: /Colours/ }).click();
  await page.getByRole("button", { name: /Colours/ }).click();
  assert.notEqual(await paper(), light);
  await page.reload();
  await page.waitForSelector(".tile");
  assert.notEqual(await paper(), light);
  await page.close();
  await viewer.close();
});

test("every view can be reached and left with Tab and Enter", async () => {
  const viewer = await Viewer.open();
  const page = await settled(viewer, "#/");
  for (const label of ["Locks", "Leases", "Waits", "Cluster", "Overview"]) {
    const link = page.getByRole("navigation").getByRole("link", { name: label });
    await link.focus();
    await page.keyboard.press("Enter");
    await eventually(() => link.getAttribute("aria-current"), (now) => now === "page", label);
    await eventually(() => page.title(), (title) => title === `${label} · Tenure`, label);
  }
  // The first stop on the way through the page leads past all this.
  await page.reload();
  await page.waitForSelector(".tile");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.close();
  await viewer.close();
});
