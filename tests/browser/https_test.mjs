// Dashboard over HTTPS of tenured itself: page, login, events.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { close_all, Fixture, Viewer } from "./fixture.mjs";

const folder = mkdtempSync(join(tmpdir(), "tenure_https."));
const [cert, key, users] = ["cert.pem", "key.pem", "users.toml"].map((file) => join(folder, file));

let fixture;
before(async () => {
  const made = spawnSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt",
    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=here", "-addext",
    "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert]);
  assert.equal(made.status, 0, String(made.stderr));
  const digest = createHash("sha256").update("tenure_ann").digest("hex");
  writeFileSync(users, `[users.ann]\ntokens = ["sha256:${digest}"]\nrights = { "" = "admin" }\n`);
  fixture = await Fixture.open("--token", "tenure_ann", "--auth-file", users, "--tls-cert", cert,
    "--tls-key", key);
});
after(async () => {
  await close_all();
  rmSync(folder, { recursive: true });
});

test("a user logs in over TLS and receives live updates", async () => {
  assert.match(fixture.address, /^https:/);
  await fixture.do("lock", { name: "app/one", as: "worker" });
  const viewer = await Viewer.open({ ignoreHTTPSErrors: true });
  const page = await viewer.visit(fixture.address, "#/locks");
  await page.fill("form.login input", "tenure_ann");
  await page.click("form.login button");
  await page.waitForSelector("main .row");

  await fixture.do("lock", { name: "app/two", as: "worker" });

  await page.waitForFunction(() => document.querySelectorAll("main .row").length === 2);
  const [cookie] = await viewer.context.cookies();
  assert.ok(cookie.secure && cookie.httpOnly);
  viewer.expect_no_errors();
  await viewer.close();
});
