// Takes the screenshots of the dashboard in the documentation: a simulated workload of a small
// company on a cluster of three members, after one minute.
//   TENURED=path/to/tenured node tools/screenshots.mjs docs/screenshots

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { eventually, Fixture, Viewer } from "../tests/browser/fixture.mjs";

const folder = process.argv[2] ?? "docs/screenshots";
const warm_up_s = Number(process.env.WARM_UP_S ?? 140);
const pace = warm_up_s / 140;
mkdirSync(folder, { recursive: true });

const fixture = await Fixture.open("--members", "3", "--limits-events-max", "100000",
  "--raft-election-timeout", "3s");
console.log(`a cluster is at ${fixture.address}; the workload runs for ${warm_up_s} s`);
await run_workload(fixture);
await pause(warm_up_s * 0.35);
for (const [one, two] of [["transfer 4711", "transfer 4712"], ["transfer 4733", "transfer 4740"]]) {
  await fixture.do("deadlock", { clients: [one, two], locks: [`accounts/${one.slice(-4)}`,
    `accounts/${two.slice(-4)}`], stay: one === "transfer 4733" });
}

await take("overview", "#/", { colorScheme: "light" });
await take("overview-dark", "#/", { colorScheme: "dark" });
await take("locks", "#/locks", { colorScheme: "light", height: 720, before: async (page) => {
  await page.waitForTimeout(8_000);
  await page.getByRole("columnheader", { name: "Grants/s" }).getByRole("button").click();
} });
await take("lock", "#/lock?name=db%2Fmigrations", { colorScheme: "light", height: 860 });
await take("waits", "#/waits", { colorScheme: "dark", height: 820 });
await take("cluster", "#/cluster", { colorScheme: "light", height: 780 });
await take("phone", "#/lock?name=db%2Fmigrations",
  { colorScheme: "dark", width: 390, height: 844 });
await fixture.close();
await take_login();

function pause(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

/// Starts the workload: steady traffic, long holds, and waiters.
async function run_workload(to) {
  await to.do("traffic", { who: "api", clients: 6, hold_s: 0.02, pause_s: 0.12, shared: 0.5,
    names: ["shop/cart/1881", "shop/cart/1902", "shop/stock/umbrella", "shop/stock/teapot"] });
  await to.do("traffic", { who: "indexer", clients: 2, hold_s: 0.4, pause_s: 0.3, shared: 0,
    names: ["search/shard/0", "search/shard/1", "search/shard/2"] });
  await to.do("traffic", { who: "mailer", clients: 2, hold_s: 0.8, pause_s: 0.5, shared: 0.2,
    names: ["mail/outbox", "mail/digest"] });
  for (const [name, as] of [["cron/nightly-report", "report@batch-2"],
    ["cron/backup", "backup@db-1"], ["leader/scheduler", "scheduler-1"],
    ["cache/rates", "rates@edge-4"],
    ["db/users/42", "support@desk"], ["files/export.csv", "export@batch-1"]]) {
    await to.do("lock", { name, as });
  }
  // Successive deployments with waiters.
  const name = "db/migrations";
  const acquire = (as, mode, note) => to.do("lock", { name, as, mode, note });
  for (const [as, mode, seconds] of [["deploy@ci-1", "X", 14], ["api@web-2", "S", 9],
    ["deploy@ci-2", "X", 22], ["api@web-1", "S", 6]]) {
    const { token } = await acquire(as, mode, "");
    await to.do("wait", { name, as: "audit@batch-1" });
    await pause(seconds * pace);
    await to.do("unlock", { as, token });
    const turn = await eventually(() => to.api(`/v1/locks/${encodeURIComponent(name)}`),
      (lock) => lock.holders[0]?.owner === "audit@batch-1", "the audit's turn");
    await pause(3 * pace);
    await to.do("unlock", { as: "audit@batch-1", token: turn.holders[0].token });
  }
  await acquire("deploy@ci-3", "X", "release 4.2");
  await pause(8 * pace);
  await to.do("wait", { name, as: "api@web-1", mode: "S" });
  await to.do("wait", { name, as: "api@web-2", mode: "S" });
  await pause(8 * pace);
  await to.do("wait", { name, as: "report@batch-2" });
  await to.do("wait", { name: "cron/nightly-report", as: "mailer@out" });
  await to.do("wait", { name: "leader/scheduler", as: "scheduler-2" });
  await to.do("wait", { name: "leader/scheduler", as: "scheduler-3" });
}

/// Screenshot of the login of a server with users.
async function take_login() {
  const users = join(mkdtempSync(join(tmpdir(), "tenure_users.")), "users.toml");
  const digest = createHash("sha256").update("tenure_ann").digest("hex");
  writeFileSync(users, `[users.ann]\ntokens = ["sha256:${digest}"]\nrights = { "" = "admin" }\n`);
  const guarded = await Fixture.open("--token", "tenure_ann", "--auth-file", users);
  await take("login", "#/", { colorScheme: "light", height: 460, address: guarded.address,
    ready: "form.login" });
  await guarded.close();
}

async function take(name, hash, { colorScheme, width = 1240, height = 940, before, address,
  ready = "main .card, main .row" }) {
  const viewer = await Viewer.open({ colorScheme, viewport: { width, height },
    deviceScaleFactor: width < 600 ? 2 : 1.5, reducedMotion: "reduce" });
  const page = await viewer.visit(address ?? (await fixture.do("where")).leader, hash);
  if (!address) {
    await page.waitForSelector(".health.is-good");
  }
  await page.waitForSelector(ready);
  await before?.(page);
  await page.waitForTimeout(2_500);
  const file = join(folder, `${name}.png`);
  await page.screenshot({ path: file });
  viewer.expect_no_errors();
  await viewer.close();
  // Flat colours need a small palette: a quarter of the size without a visible difference.

  spawnSync("pngquant", ["--force", "--speed", "1", "--output", file, "--", file],
    { stdio: "inherit" });
  console.log(`${file} ${Math.round(statSync(file).size / 1024)} KiB`);
}
