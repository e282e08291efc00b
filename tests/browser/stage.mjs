// A server with people who use it (stage.py), and a browser that looks at it. Each test file makes
// one of each, since both take a second.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");

export const timeout_ms = 20_000;
const order_ms = 60_000;
const goodbye_ms = 10_000;

const open = new Set();

/// For the end of a test file: what a failed test left behind would keep the process alive.
export async function close_everything() {
  await Promise.all([...open].map((one) => one.close()));
}

export class Stage {
  static async open(...flags) {
    const stage = new Stage();
    open.add(stage);
    const script = fileURLToPath(new URL("stage.py", import.meta.url));
    stage.process = spawn("/usr/bin/python3", [script, ...flags], {
      stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    });
    stage.answers = createInterface({ input: stage.process.stdout })[Symbol.asyncIterator]();
    const { http, leader, secret } = await stage.do("where");
    stage.addresses = http;
    stage.secret = secret;
    stage.address = leader;
    return stage;
  }

  async do(what, fields = {}) {
    this.process.stdin.write(JSON.stringify({ do: what, ...fields }) + "\n");
    let timer;
    const late = new Promise((_, refuse) => {
      timer = setTimeout(() => refuse(new Error(`stage.py does not answer: ${what}`)), order_ms);
    });
    const { value, done } = await Promise.race([this.answers.next(), late])
      .finally(() => clearTimeout(timer));
    assert.ok(!done, `stage.py has ended before it did ${what}`);
    const answer = JSON.parse(value);
    assert.ok(answer.ok, `${what}: ${answer.error}`);
    return answer;
  }

  /// What the API says, to compare with.
  async api(path) {
    const answer = await fetch(this.address + path);
    assert.equal(answer.status, 200, `${path}: ${answer.status}`);
    return answer.json();
  }

  async close() {
    open.delete(this);
    this.process.stdin.end();
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const timer = setTimeout(() => this.process.kill("SIGTERM"), goodbye_ms);
      await new Promise((resolve) => this.process.once("exit", resolve));
      clearTimeout(timer);
    }
  }
}

export class Viewer {
  static async open(options = {}) {
    const viewer = new Viewer();
    open.add(viewer);
    viewer.browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    });
    viewer.context = await viewer.browser.newContext({ viewport: { width: 1280, height: 800 },
      ...options });
    viewer.complaints = [];
    viewer.foreign = [];
    return viewer;
  }

  /// A page on which nothing may go wrong unseen: errors, refusals of the policy, other origins.
  async visit(address, hash = "#/") {
    const page = await this.context.newPage();
    page.setDefaultTimeout(timeout_ms);
    page.on("pageerror", (error) => this.complaints.push(`error: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text())) {
        this.complaints.push(`console: ${message.text()}`);
      }
    });
    page.on("dialog", (dialog) => {
      this.complaints.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(address) && !request.url().startsWith("data:")) {
        this.foreign.push(request.url());
      }
    });
    await page.goto(`${address}/${hash}`);
    await page.waitForSelector("main > *");
    return page;
  }

  expect_no_complaints() {
    assert.deepEqual(this.complaints, []);
    assert.deepEqual(this.foreign, []);
  }

  async close() {
    open.delete(this);
    await this.browser?.close();
  }
}

/// Waits until it is so; what it was last if it never is.
export async function eventually(look, is_so, what) {
  const deadline = Date.now() + timeout_ms;
  let seen;
  for (;;) {
    seen = await look();
    if (is_so(seen)) {
      return seen;
    }
    assert.ok(Date.now() < deadline, `never: ${what}; last: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export const texts = (page, selector) =>
  page.locator(selector).evaluateAll((found) => found.map((one) => one.textContent.trim()));
