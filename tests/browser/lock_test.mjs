// Page of one lock: content, force-release, and hostile names.

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

const link = (name) => `#/lock?${new URLSearchParams({ name })}`;

test("a lock shows its holder, its token, its queue and its events", async () => {
  await fixture.do("lock", { name: "db/a b?#&", as: "ann", note: "release 4.2" });
  await fixture.do("wait", { name: "db/a b?#&", as: "bob" });
  await fixture.do("wait", { name: "db/a b?#&", as: "cyd", mode: "S" });
  const page = await viewer.visit(fixture.address, link("db/a b?#&"));
  await page.waitForSelector(".events tbody tr:nth-child(3)");

  const lock = await fixture.api(`/v1/locks/${encodeURIComponent("db/a b?#&")}`);
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

test("the page of a lock updates live, and a free lock keeps its history", async () => {
  const { token } = await fixture.do("lock", { name: "short", as: "ann" });
  const page = await viewer.visit(fixture.address, link("short"));
  await page.waitForSelector(".holder");
  await fixture.do("unlock", { as: "ann", token });
  await page.getByText("The lock is free and has no waiters").waitFor();
  await eventually(() => texts(page, ".events .what"), (seen) => seen.join() === "released,granted",
    "its history");
  await page.close();
});

// The counter of changes of a lock begins again whenever the lock is free.
test("a busy lock shows its grants of the last minutes", async () => {
  for (let i = 0; i < 3; ++i) {
    const { token } = await fixture.do("lock", { name: "busy", as: "ann" });
    await fixture.do("unlock", { as: "ann", token });
  }
  await fixture.do("lock", { name: "busy", as: "ann" });
  const page = await viewer.visit(fixture.address, link("busy"));
  await eventually(() => page.textContent("[data-testid=grants]"),
    (text) => text === "4 grants in the last 5 min", "four grants");
  await page.getByRole("button", { name: "1 min" }).click();
  await eventually(() => page.textContent("[data-testid=grants]"),
    (text) => text === "4 grants in the last 1 min", "the selected range");
  assert.match(await page.evaluate(() => location.hash), /range=1m/);
  await page.close();
});

test("events and holders have wall-clock times", async () => {
  await fixture.do("lock", { name: "timed", as: "ann" });
  const granted = Date.now();
  const page = await viewer.visit(fixture.address, link("timed"));
  await page.waitForSelector(".events tbody tr");
  for (const place of [".events tbody time", ".holder time"]) {
    const shown = await page.locator(place).first();
    const at = Date.parse(await shown.getAttribute("datetime"));
    assert.ok(Math.abs(at - granted) < 3_000, `${place}: ${new Date(at).toISOString()}`);
    assert.match(await shown.textContent(), /^(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d$/);
  }
  assert.match(await page.locator(".timeline-axis").textContent(), /now$/);
  await page.close();
});

/// Enters the secret of the server in its dialog.
async function enter_secret(page, secret) {
  await page.getByLabel("Secret", { exact: true }).fill(secret);
  await page.getByRole("button", { name: "Continue" }).click();
}

test("the secret is requested once, and a wrong secret releases nothing", async () => {
  const { token } = await fixture.do("lock", { name: "guarded", as: "ann" });
  const other = await Viewer.open();
  const page = await other.visit(fixture.address, link("guarded"));
  const button = page.getByRole("button", { name: "Force release" });
  await eventually(() => button.isEnabled(), Boolean, "the button is enabled");
  assert.match(await page.textContent(".access"), /reader/);

  await button.click();
  await enter_secret(page, "wrong");
  await page.getByText("This is not the secret of this server.").waitFor();
  await enter_secret(page, fixture.secret);
  await page.getByLabel("to confirm").fill(token);
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await fixture.api("/v1/locks/guarded")).holders[0].owner, "ann");
  assert.match(await page.textContent(".access"), /operator/);
  await page.close();

  const next = await other.visit(fixture.address, link("guarded"));
  await next.getByRole("button", { name: "Force release" }).click();
  await next.getByLabel("to confirm").waitFor();
  assert.equal(await next.evaluate(() => document.cookie), "");
  other.expect_no_errors();
  await other.close();
});

test("force-release requires the token and grants the lock to the next waiter", async () => {
  await fixture.do("lock", { name: "stuck", as: "ann" });
  await fixture.do("wait", { name: "stuck", as: "dan" });
  const page = await viewer.visit(fixture.address, link("stuck"));
  const button = page.getByRole("button", { name: "Force release" });
  await eventually(() => button.isEnabled(), Boolean, "the button is enabled");
  await button.click();
  await enter_secret(page, fixture.secret);
  await page.getByRole("button", { name: "Cancel" }).click();

  await button.click();
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await eventually(() => page.locator("dialog").count(), (dialogs) => dialogs === 0,
    "Escape cancels");
  assert.equal((await fixture.api("/v1/locks/stuck")).holders[0].owner, "ann");

  await button.click();
  const confirm = page.getByRole("button", { name: "Release", exact: true });
  await page.getByLabel("to confirm").fill("1");
  assert.ok(await confirm.isDisabled());
  await page.getByLabel("to confirm").fill((await fixture.api("/v1/locks/stuck")).holders[0].token);
  await page.getByLabel("Reason").fill("host is gone");
  await confirm.click();
  await eventually(() => page.textContent(".holder .owner"), (owner) => owner === "dan",
    "dan holds the lock");
  const lock = await fixture.api("/v1/locks/stuck");
  assert.equal(lock.holders[0].owner, "dan");
  assert.equal(lock.waiter_count, 0);
  await eventually(() => texts(page, ".events .what"), (seen) => seen.includes("forced"),
    "the history has the forced release");
  assert.match(await page.textContent(".events"), /by 127\.0\.0\.1: host is gone/);
  await page.close();
});

test("force-release with a superseded token releases nothing", async () => {
  const { token } = await fixture.do("lock", { name: "moving", as: "ann" });
  const page = await viewer.visit(fixture.address, link("moving"));
  await page.getByRole("button", { name: "Force release" }).click();
  await page.getByLabel("to confirm").fill(token);
  await page.evaluate(() => { globalThis.fetch = ((real) => (path, init) =>
    init?.method === "POST" ? new Promise((go) => { globalThis.go = go; }).then(() =>
      real(path, init)) : real(path, init))(globalThis.fetch); });
  await page.getByRole("button", { name: "Release", exact: true }).click();
  await fixture.do("unlock", { as: "ann", token });
  await fixture.do("lock", { name: "moving", as: "eve" });
  await page.evaluate(() => globalThis.go());

  await page.getByText("The lock is no longer held with this token.").waitFor();
  assert.equal((await fixture.api("/v1/locks/moving")).holders[0].owner, "eve");
  await page.close();
});

test("a page of another origin cannot force-release a lock", async () => {
  await fixture.do("lock", { name: "mine", as: "ann" });
  // The same machine under another host name is a different origin.
  const other = fixture.address.replace("127.0.0.1", "localhost");
  const context = await viewer.browser.newContext();
  const page = await context.newPage();
  await page.goto(`${other}/healthz`);
  const target = `${fixture.address}/v1/locks/mine:force-release`;
  // The policy of /healthz blocks requests of the page, so a second attempt forges the headers.
  const status = await page.evaluate(async (to) => {
    try {
      const answer = await fetch(to, { method: "POST", mode: "no-cors" });
      return answer.type;
    } catch (error) {
      return String(error);
    }
  }, target);
  assert.ok(status, "the attempt was made");
  const forged = await context.request.post(target, { headers: { Origin: other,
    "Sec-Fetch-Site": "cross-site", "Tenure-Intent": "1" } });
  assert.equal(forged.status(), 403);
  const preflight = await context.request.fetch(target, { method: "OPTIONS", headers: {
    Origin: other, "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "tenure-intent" } });
  assert.equal(preflight.status(), 405);
  assert.equal(preflight.headers()["access-control-allow-origin"], undefined);
  assert.equal((await fixture.api("/v1/locks/mine")).holders[0].owner, "ann");
  await context.close();
});

test("names, owners and metadata with markup are shown as text", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const script = "</script><script>alert(2)</script>";
  const formula = "javascript:alert(3)//\"'`{{7*7}}";
  await fixture.do("lock", { name: evil, as: script, note: evil });
  await fixture.do("lock", { name: formula, as: evil });
  await fixture.do("wait", { name: evil, as: formula });
  await fixture.do("deadlock", { clients: [`<b>${evil}`, `<i>${script}`], locks: [`a${evil}`,
    `b${script}`] });
  for (const hash of ["#/", "#/locks", link(evil), link(formula), "#/leases", "#/waits"]) {
    const page = await viewer.visit(fixture.address, hash);
    await eventually(() => page.textContent("main"), (text) => text.includes("<img") ||
      text.includes("javascript:alert"), `${hash} shows it`);
    assert.equal(await page.locator("main img, main script, main b > img").count(), 0);
    await page.close();
  }
  const page = await viewer.visit(fixture.address, link(evil));
  await page.waitForSelector(".holder");
  assert.equal(await page.textContent("h1"), evil);
  assert.equal(await page.textContent(".holder .owner"), script);
  assert.ok((await page.title()).startsWith(evil));
  await page.close();
});

const direction = "[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]";

/// Texts and labels of the page with a character that changes the direction of text.
const reversed = (page) => page.evaluate((pattern) => {
  const texts = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    texts.push(walker.currentNode.data);
  }
  for (const name of ["title", "aria-label", "placeholder"]) {
    texts.push(...[...document.querySelectorAll(`[${name}]`)].map((one) => one.getAttribute(name)));
  }
  return texts.filter((text) => new RegExp(pattern).test(text));
}, direction);

// A name with U+202E is drawn from right to left: it looks like the name of another lock.
test("characters that change the direction of text are escaped everywhere", async () => {
  const [name, owner, note] = ["pay/\u202egpj.exe", "ann\u202ebob", "see \u2066here\u202d"];
  await fixture.do("lock", { name, as: owner, note });
  const { lease } = await fixture.do("wait", { name, as: "wait\u200f er", note });
  await fixture.do("deadlock", { clients: ["one\u202e", "two\u2067"],
    locks: ["first\u202e", "second\u202a"], stay: true });
  const { token } = await fixture.do("lock", { name: "forced\u202e", as: owner });
  const forced = await fetch(`${fixture.address}/v1/locks/${encodeURIComponent("forced\u202e")}` +
    `:force-release?token=${token}`, { method: "POST", body: JSON.stringify({ reason: "a\u202eb" }),
    headers: { "Tenure-Intent": "test", Authorization: `Bearer ${fixture.secret}` } });
  assert.equal(forced.status, 200);

  const views = { "#/": "\\u", "#/locks": "\\u202egpj",
    "#/locks?view=folders&in=pay%2F": "\\u202egpj",
    [link(name)]: "ann\\u202ebob", [link("forced\u202e")]: "a\\u202eb",
    "#/leases": "ann\\u202ebob", [`#/lease/${lease}`]: "wait\\u200f er",
    "#/waits?view=drawing": "\\u202egpj", "#/waits?view=list": "wait\\u200f er" };
  for (const [hash, expected] of Object.entries(views)) {
    const page = await viewer.visit(fixture.address, hash);
    await eventually(() => page.textContent("main"), (text) => text.includes(expected),
      `${hash} shows ${expected}`);
    await page.waitForSelector(".health.is-good");
    assert.deepEqual(await reversed(page), [], hash);
    await page.close();
  }
  // The link still opens the lock with this name.
  const page = await viewer.visit(fixture.address, "#/locks?q=gpj");
  await page.locator(".row a").first().click();
  await page.getByRole("article", { name: "Holder" }).waitFor();
  assert.match(await page.textContent(".holder"), /see \\u2066here\\u202d/);
  await page.close();
});

test("an inline script does not run", async () => {
  const page = await viewer.visit(fixture.address, "#/");
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
  viewer.errors = viewer.errors.filter((error) =>
    !/Content Security Policy|TrustedHTML|TrustedScript|Trusted/.test(error));
  await page.close();
});
