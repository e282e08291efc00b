// Fixture of the browser tests: a server with clients (fixture.py) and a browser. A test file
// starts each once, because each takes a second to start.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");

export const timeout_ms = 20_000;
const command_timeout_ms = 60_000;
const shutdown_timeout_ms = 10_000;

const open = new Set();

/// Closes every fixture and browser. An open one, left by a failed test, keeps the process alive.
export async function close_all() {
  await Promise.all([...open].map((one) => one.close()));
}

export class Fixture {
  static async open(...flags) {
    const fixture = new Fixture();
    open.add(fixture);
    const script = fileURLToPath(new URL("fixture.py", import.meta.url));
    fixture.process = spawn("/usr/bin/python3", [script, ...flags], {
      stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    });
    fixture.replies = createInterface({ input: fixture.process.stdout })[Symbol.asyncIterator]();
    const { http, leader, secret } = await fixture.do("where");
    fixture.addresses = http;
    fixture.secret = secret;
    fixture.address = leader;
    return fixture;
  }

  async do(what, fields = {}) {
    this.process.stdin.write(JSON.stringify({ do: what, ...fields }) + "\n");
    let timer;
    const timeout = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`fixture.py does not reply to: ${what}`)),
        command_timeout_ms);
    });
    const { value, done } = await Promise.race([this.replies.next(), timeout])
      .finally(() => clearTimeout(timer));
    assert.ok(!done, `fixture.py ended before it replied to ${what}`);
    const reply = JSON.parse(value);
    assert.ok(reply.ok, `${what}: ${reply.error}`);
    return reply;
  }

  /// Response of the HTTP API, the expected content of the page.
  async api(path) {
    const response = await fetch(this.address + path);
    assert.equal(response.status, 200, `${path}: ${response.status}`);
    return response.json();
  }

  async close() {
    open.delete(this);
    this.process.stdin.end();
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const timer = setTimeout(() => this.process.kill("SIGTERM"), shutdown_timeout_ms);
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
    viewer.errors = [];
    viewer.foreign = [];
    return viewer;
  }

  /// Opens a page and records script errors, violations of the content security policy, dialogs and
  /// requests to other origins.
  async visit(address, hash = "#/") {
    const page = await this.context.newPage();
    page.setDefaultTimeout(timeout_ms);
    page.on("pageerror", (error) => this.errors.push(`error: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text())) {
        this.errors.push(`console: ${message.text()}`);
      }
    });
    page.on("dialog", (dialog) => {
      this.errors.push(`dialog: ${dialog.message()}`);
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

  expect_no_errors() {
    assert.deepEqual(this.errors, []);
    assert.deepEqual(this.foreign, []);
  }

  async close() {
    open.delete(this);
    await this.browser?.close();
  }
}

/// Polls `read` until `is_expected` holds and returns the value; reports the last value on timeout.
export async function eventually(read, is_expected, what) {
  const deadline = Date.now() + timeout_ms;
  let seen;
  for (;;) {
    seen = await read();
    if (is_expected(seen)) {
      return seen;
    }
    assert.ok(Date.now() < deadline, `timeout: ${what}; last value: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export const texts = (page, selector) =>
  page.locator(selector).evaluateAll((found) => found.map((one) => one.textContent.trim()));
