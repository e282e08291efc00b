// Accessibility: axe rules, narrow screens, dark theme, keyboard.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { close_all, eventually, Fixture, Viewer } from "./fixture.mjs";

const axe = readFileSync(new URL("../../web/node_modules/axe-core/axe.min.js", import.meta.url),
  "utf8");
const views = ["#/", "#/locks", "#/locks?view=folders&owner=deploy", "#/lock?name=db%2Fmigrations",
  "#/leases", "#/waits?view=drawing", "#/waits?view=list", "#/cluster"];

let fixture;
before(async () => {
  fixture = await Fixture.open();
  await fixture.do("lock", { name: "db/migrations", as: "deploy", note: "release" });
  await fixture.do("wait", { name: "db/migrations", as: "web", mode: "S" });
  await fixture.do("deadlock", { clients: ["ann", "bob"], locks: ["a".repeat(300), "b"] });
});
after(close_all);

async function settled(viewer, hash) {
  const page = await viewer.visit(fixture.address, hash);
  await page.waitForSelector("main .card, main .row, main .tile");
  await page.waitForSelector(".health.is-good");
  return page;
}

// The dark theme changes only colours.
for (const [colorScheme, rules] of [["light", {}], ["dark", { runOnly: ["color-contrast"] }]]) {
  test(`no view violates an axe rule, ${colorScheme} theme`, async () => {
    // The content security policy of the page blocks the script of axe.
    const viewer = await Viewer.open({ colorScheme, bypassCSP: true, reducedMotion: "reduce" });
    const found = [];
    for (const hash of views) {
      const page = await settled(viewer, hash);
      await page.evaluate(axe);
      const { violations } = await page.evaluate((options) => globalThis.axe.run(document, options),
        rules);
      found.push(...violations.map((violation) =>
        [hash, violation.id, violation.nodes.slice(0, 3).map((node) => node.html)]));
      await page.close();
    }
    assert.deepEqual(found, []);
    viewer.expect_no_errors();
    await viewer.close();
  });
}

test("no view scrolls sideways on a phone", async () => {
  const viewer = await Viewer.open({ viewport: { width: 360, height: 740 }, hasTouch: true,
    isMobile: true });
  for (const hash of views) {
    const page = await settled(viewer, hash);
    const [inside, outside] = await page.evaluate(() =>
      [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(inside <= outside, `${hash} is ${inside} wide, the phone ${outside}`);
    await page.close();
  }
  viewer.expect_no_errors();
  await viewer.close();
});

test("the chosen colour theme survives a reload", async () => {
  const viewer = await Viewer.open({ colorScheme: "light" });
  const page = await settled(viewer, "#/");
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByRole("button", { name: /Colour theme/ }).click();
  await page.getByRole("button", { name: /Colour theme/ }).click();
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
  // The first focusable element skips the navigation.
  await page.reload();
  await page.waitForSelector(".tile");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.close();
  await viewer.close();
});
