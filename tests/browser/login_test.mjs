// Login and permissions: the page shows and offers only what the user may read and do.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { close_all, eventually, Fixture, texts, Viewer } from "./fixture.mjs";

const axe = readFileSync(new URL("../../web/node_modules/axe-core/axe.min.js", import.meta.url),
  "utf8");
const folder = mkdtempSync(join(tmpdir(), "tenure_login."));
const file = join(folder, "users.toml");

const user = (name, token, rights) =>
  `[users.${name}]\ntokens = ["sha256:${createHash("sha256").update(token).digest("hex")}"]\n` +
  `rights = ${rights}\n`;

let fixture;
let held;
before(async () => {
  writeFileSync(file, user("workload", "tenure_workload", '{ "" = "admin" }') +
    user("ann", "tenure_ann", '{ "" = "read", "app/" = "admin" }') +
    user("bob", "tenure_bob", '{ "app/" = "read" }'));
  fixture = await Fixture.open("--token", "tenure_workload", "--auth-file", file);
  held = await fixture.do("lock", { name: "app/one", as: "worker" });
  await fixture.do("lock", { name: "other/two", as: "worker" });
});
after(async () => {
  await close_all();
  rmSync(folder, { recursive: true });
});

async function log_in(page, token) {
  await page.fill("form.login input", token);
  await page.click("form.login button");
}

async function as(token, hash, options) {
  const viewer = await Viewer.open(options);
  const page = await viewer.visit(fixture.address, hash);
  await page.waitForSelector("form.login");
  await log_in(page, token);
  return { viewer, page };
}

test("the login comes first and leads to the requested view", async () => {
  const viewer = await Viewer.open();
  const page = await viewer.visit(fixture.address, "#/lock?name=app%2Fone");
  await page.waitForSelector("form.login");
  assert.equal(await page.locator("[data-testid=token]").count(), 0);

  await log_in(page, "tenure_wrong");
  await page.waitForSelector("form.login [role=alert]");
  await log_in(page, "tenure_ann");

  assert.equal(await page.textContent("[data-testid=token]"), held.token);
  assert.match(await page.textContent(".access"), /ann/);
  const [cookie] = await viewer.context.cookies();
  assert.ok(cookie.httpOnly);
  assert.equal(cookie.sameSite, "Strict");
  assert.equal(await page.evaluate(() => document.cookie), "");
  viewer.expect_no_errors();
  await viewer.close();
});

test("the login violates no axe rule", async () => {
  const viewer = await Viewer.open({ bypassCSP: true, reducedMotion: "reduce" });
  const page = await viewer.visit(fixture.address);
  await page.waitForSelector("form.login");
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document));
  assert.deepEqual(violations.map((violation) => [violation.id, violation.nodes[0].html]), []);
  await viewer.close();
});

test("force-release is offered only for locks where the user is admin", async () => {
  const { viewer, page } = await as("tenure_ann", "#/lock?name=app%2Fone");
  await page.waitForSelector(".holder .is-danger");
  // The owner is a label that every client chooses; the server has authenticated the user.
  assert.equal(await page.textContent(".holder .owner"), "worker");
  assert.equal(await page.textContent("[data-testid=user]"), "workload");
  await page.goto(`${fixture.address}/#/lock?name=other%2Ftwo`);
  await page.waitForSelector(".holder [data-testid=token]");
  await eventually(() => page.textContent("h1"), (title) => title.includes("other/two"),
    "the other lock is shown");
  assert.equal(await page.locator(".holder .is-danger").count(), 0);
  await viewer.close();
});

// The owner is a label that every client chooses.
test("the authenticated user is shown next to the owner in every view", async () => {
  await fixture.do("wait", { name: "app/one", as: "next" });
  const { viewer, page } = await as("tenure_workload", "#/locks");
  await page.waitForSelector("main .row");
  for (const [hash, place] of [["#/locks", ".row .col-holders .user"],
    ["#/lock?name=app%2Fone", ".holder-head .user"],
    ["#/lock?name=app%2Fone", "[aria-label=Queue] .user"],
    ["#/lock?name=app%2Fone", ".events .user"], ["#/leases", ".row .col-client .user"],
    [`#/lease/${held.lease}`, "h1 .user"], ["#/waits?view=list", ".wait-list .user"],
    ["#/", ".plain-list .user"]]) {
    await page.goto(`${fixture.address}/${hash}`);
    await eventually(() => texts(page, place), (users) => users.length > 0 &&
      users.every((user) => user === "workload"), `${hash} ${place}`);
  }
  viewer.expect_no_errors();
  await viewer.close();
});

test("a lease is revoked by its user and administrators, and cluster actions need an administrator",
  async () => {
    const reader = await as("tenure_ann", `#/lease/${held.lease}`);
    await reader.page.waitForSelector(".facts");
    assert.equal(await reader.page.getByRole("button", { name: "Revoke" }).count(), 0);
    await reader.page.goto(`${fixture.address}/#/cluster`);
    const denied = reader.page.getByRole("button", { name: "Reload users" });
    await denied.waitFor();
    assert.ok(await denied.isDisabled());
    assert.match(await reader.page.getByRole("region", { name: "Administration" }).textContent(),
      /ann lacks the admin right on the empty prefix/);
    await reader.viewer.close();

    const admin = await as("tenure_workload", `#/lease/${held.lease}`);
    await admin.page.getByRole("button", { name: "Revoke" }).waitFor();
    await admin.page.goto(`${fixture.address}/#/cluster`);
    await admin.page.getByRole("button", { name: "Reload users" }).click();
    await admin.page.getByRole("dialog").getByRole("button", { name: "Reload" }).click();
    await admin.page.getByText("Reloaded: 3 users.").waitFor();
    admin.viewer.expect_no_errors();
    await admin.viewer.close();
  });

test("a reader of a prefix sees its locks and no others", async () => {
  const { viewer, page } = await as("tenure_bob", "#/locks");
  await page.waitForSelector("main .row");
  const rows = await texts(page, "main .row");
  assert.ok(rows.some((row) => row.includes("app/one")), rows.join());
  assert.ok(!rows.some((row) => row.includes("other/two")), rows.join());
  await page.goto(`${fixture.address}/#/`);
  await page.waitForSelector(".health.is-good");
  viewer.expect_no_errors();
  await viewer.close();
});

test("a page shows no data after the logout", async () => {
  const { viewer, page } = await as("tenure_ann", "#/locks");
  await page.waitForSelector("main .row");
  await page.click(".access button");
  await page.waitForSelector("form.login");
  assert.equal(await page.locator("main .row").count(), 0);
  const answer = await page.evaluate(async () => (await fetch("/v1/locks")).status);
  assert.equal(answer, 401);
  await viewer.close();
});

test("an expired session leads to the login and back to the view", async () => {
  const { viewer, page } = await as("tenure_ann", "#/leases");
  await page.waitForSelector("main .row");
  await viewer.context.clearCookies();
  await page.waitForSelector("form.login");
  await log_in(page, "tenure_ann");
  await page.waitForSelector("main .row");
  assert.match(page.url(), /#\/leases$/);
  viewer.expect_no_errors();
  await viewer.close();
});
