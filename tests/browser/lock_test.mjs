// One lock, what may be done to it, and names that somebody chose with bad intent.

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

const link = (name) => `#/lock?${new URLSearchParams({ name })}`;

test("a lock shows its holder, its token, its queue and its events", async () => {
  await stage.do("lock", { name: "db/a b?#&", as: "ann", note: "release 4.2" });
  await stage.do("wait", { name: "db/a b?#&", as: "bob" });
  await stage.do("wait", { name: "db/a b?#&", as: "cyd", mode: "S" });
  const page = await viewer.visit(stage.address, link("db/a b?#&"));
  await page.waitForSelector(".events tbody tr:nth-child(3)");

  const lock = await stage.api(`/v1/locks/${encodeURIComponent("db/a b?#&")}`);
  assert.equal(await page.textContent("[data-testid=token]"), lock.holders[0].token);
  assert.equal(await page.textContent(".holder .owner"), "ann");
  assert.match(await page.textContent(".holder"), /release 4\.2/);
  const queue = await page.locator("[aria-label=Queue] tbody tr").evaluateAll((rows) =>
    rows.map((row) => [...row.cells].slice(0, 3).map((cell) => cell.textContent)));
  assert.deepEqual(queue, lock.queue.map((wait) => [String(wait.position), wait.owner, wait.mode]));
  assert.deepEqual(await texts(page, ".events .what"), ["queued", "queued", "granted"]);
  assert.equal(await page.locator(".timeline .bar").count(), 3);
  await page.close();
});

test("what happens to a lock is told while one looks, and a free lock keeps its past", async () => {
  const { token } = await stage.do("lock", { name: "short", as: "ann" });
  const page = await viewer.visit(stage.address, link("short"));
  await page.waitForSelector(".holder");
  await stage.do("unlock", { as: "ann", token });
  await page.getByText("Nobody holds it and nobody waits for it").waitFor();
  await eventually(() => texts(page, ".events .what"), (seen) => seen.join() === "released,granted",
    "its past");
  await page.close();
});

/// Shows the secret of the server in the dialog that asks for it.
async function show_secret(page, secret) {
  await page.getByLabel("Secret", { exact: true }).fill(secret);
  await page.getByRole("button", { name: "Continue" }).click();
}

test("the secret is asked for once, and a wrong one takes nothing away", async () => {
  const { token } = await stage.do("lock", { name: "guarded", as: "ann" });
  const other = await Viewer.open();
  const page = await other.visit(stage.address, link("guarded"));
  const button = page.getByRole("button", { name: "Force release" });
  await eventually(() => button.isEnabled(), Boolean, "it is offered");
  assert.match(await page.textContent(".access"), /reader/);

  await button.click();
  await show_secret(page, "wrong");
  await page.getByText("This is not the secret of this server.").waitFor();
  await show_secret(page, stage.secret);
  await page.getByLabel("to be sure").fill(token);
  await page.getByRole("button", { name: "Keep it" }).click();
  assert.equal((await stage.api("/v1/locks/guarded")).holders[0].owner, "ann");
  assert.match(await page.textContent(".access"), /operator/);
  await page.close();

  const next = await other.visit(stage.address, link("guarded"));
  await next.getByRole("button", { name: "Force release" }).click();
  await next.getByLabel("to be sure").waitFor();
  assert.equal(await next.evaluate(() => document.cookie), "");
  other.expect_no_complaints();
  await other.close();
});

test("force-release asks for the token, and then the next one holds it", async () => {
  await stage.do("lock", { name: "stuck", as: "ann" });
  await stage.do("wait", { name: "stuck", as: "dan" });
  const page = await viewer.visit(stage.address, link("stuck"));
  const button = page.getByRole("button", { name: "Force release" });
  await eventually(() => button.isEnabled(), Boolean, "it is allowed");
  await button.click();
  await show_secret(page, stage.secret);
  await page.getByRole("button", { name: "Keep it" }).click();

  await button.click();
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await eventually(() => page.locator("dialog").count(), (dialogs) => dialogs === 0,
    "Escape is no");
  assert.equal((await stage.api("/v1/locks/stuck")).holders[0].owner, "ann");

  await button.click();
  const sure = page.getByRole("button", { name: "Take it away" });
  await page.getByLabel("to be sure").fill("1");
  assert.ok(await sure.isDisabled());
  await page.getByLabel("to be sure").fill((await stage.api("/v1/locks/stuck")).holders[0].token);
  await page.getByLabel("Reason").fill("host is gone");
  await sure.click();
  await eventually(() => page.textContent(".holder .owner"), (owner) => owner === "dan",
    "dan has it");
  const lock = await stage.api("/v1/locks/stuck");
  assert.equal(lock.holders[0].owner, "dan");
  assert.equal(lock.waiter_count, 0);
  await eventually(() => texts(page, ".events .what"), (seen) => seen.includes("forced"),
    "it is told");
  assert.match(await page.textContent(".events"), /by 127\.0\.0\.1: host is gone/);
  await page.close();
});

test("a token that is not current any more takes nothing away", async () => {
  const { token } = await stage.do("lock", { name: "moving", as: "ann" });
  const page = await viewer.visit(stage.address, link("moving"));
  await page.getByRole("button", { name: "Force release" }).click();
  await page.getByLabel("to be sure").fill(token);
  await page.evaluate(() => { globalThis.fetch = ((real) => (path, init) =>
    init?.method === "POST" ? new Promise((go) => { globalThis.go = go; }).then(() =>
      real(path, init)) : real(path, init))(globalThis.fetch); });
  await page.getByRole("button", { name: "Take it away" }).click();
  await stage.do("unlock", { as: "ann", token });
  await stage.do("lock", { name: "moving", as: "eve" });
  await page.evaluate(() => globalThis.go());

  await page.getByText("It is not held with this token any more.").waitFor();
  assert.equal((await stage.api("/v1/locks/moving")).holders[0].owner, "eve");
  await page.close();
});

test("a page of another origin cannot take a lock away", async () => {
  await stage.do("lock", { name: "mine", as: "ann" });
  // The same machine under another name is another origin, and the browser says so.
  const other = stage.address.replace("127.0.0.1", "localhost");
  const context = await viewer.browser.newContext();
  const page = await context.newPage();
  await page.goto(`${other}/healthz`);
  const target = `${stage.address}/v1/locks/mine:force-release`;
  // healthz forbids everything, so the attempt is made by a form and from a page that allows it.
  const status = await page.evaluate(async (to) => {
    try {
      const answer = await fetch(to, { method: "POST", mode: "no-cors" });
      return answer.type;
    } catch (error) {
      return String(error);
    }
  }, target);
  assert.ok(status, "it was tried");
  const forged = await context.request.post(target, { headers: { Origin: other,
    "Sec-Fetch-Site": "cross-site", "Tenure-Intent": "1" } });
  assert.equal(forged.status(), 403);
  const preflight = await context.request.fetch(target, { method: "OPTIONS", headers: {
    Origin: other, "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "tenure-intent" } });
  assert.equal(preflight.status(), 405);
  assert.equal(preflight.headers()["access-control-allow-origin"], undefined);
  assert.equal((await stage.api("/v1/locks/mine")).holders[0].owner, "ann");
  await context.close();
});

test("names, owners and notes are shown as text, whatever they are", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const script = "</script><script>alert(2)</script>";
  const formula = "javascript:alert(3)//\"'`{{7*7}}";
  await stage.do("lock", { name: evil, as: script, note: evil });
  await stage.do("lock", { name: formula, as: evil });
  await stage.do("wait", { name: evil, as: formula });
  await stage.do("deadlock", { people: [`<b>${evil}`, `<i>${script}`], locks: [`a${evil}`,
    `b${script}`] });
  for (const hash of ["#/", "#/locks", link(evil), link(formula), "#/leases", "#/waits"]) {
    const page = await viewer.visit(stage.address, hash);
    await eventually(() => page.textContent("main"), (text) => text.includes("<img") ||
      text.includes("javascript:alert"), `${hash} shows it`);
    assert.equal(await page.locator("main img, main script, main b > img").count(), 0);
    await page.close();
  }
  const page = await viewer.visit(stage.address, link(evil));
  await page.waitForSelector(".holder");
  assert.equal(await page.textContent("h1"), evil);
  assert.equal(await page.textContent(".holder .owner"), script);
  assert.ok((await page.title()).startsWith(evil));
  await page.close();
});

test("a script that stands in the page does not run", async () => {
  const page = await viewer.visit(stage.address, "#/");
  const attempt = await page.evaluate(() => {
    const script = document.createElement("script");
    try {
      script.textContent = "globalThis.was_run = true";
      document.body.append(script);
    } catch {
      return "refused";
    }
    return globalThis.was_run ? "run" : "refused";
  });
  assert.equal(attempt, "refused");
  const markup = await page.evaluate(() => {
    try {
      document.body.innerHTML += "<p>";
      return "taken";
    } catch {
      return "refused";
    }
  });
  assert.equal(markup, "refused");
  viewer.complaints = viewer.complaints.filter((complaint) =>
    !/Content Security Policy|TrustedHTML|TrustedScript|Trusted/.test(complaint));
  await page.close();
});
