// What is committed in web/dist is what the sources make.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const web = fileURLToPath(new URL("../../web", import.meta.url));

function files(folder) {
  return readdirSync(folder, { recursive: true }).map(String).sort()
    .filter((name) => statSync(join(folder, name)).isFile());
}

test("web/dist is made of web/src; `make web` makes it anew", () => {
  const out = mkdtempSync(join(tmpdir(), "tenure_dist."));
  try {
    const made = spawnSync(process.execPath, ["node_modules/vite/bin/vite.js", "build", "--outDir",
      out, "--logLevel", "error"], { cwd: web, encoding: "utf8" });
    assert.equal(made.status, 0, made.stderr);
    assert.deepEqual(files(out), files(join(web, "dist")));
    for (const name of files(out)) {
      assert.ok(readFileSync(join(out, name)).equals(readFileSync(join(web, "dist", name))),
        `web/dist/${relative(".", name)} is not what the sources make: make web`);
    }
  } finally {
    rmSync(out, { recursive: true });
  }
});

test("the types of the sources are right", () => {
  const checked = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "--noEmit"],
    { cwd: web, encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout);
});

test("no host of a registry is named", () => {
  const lock = readFileSync(join(web, "package-lock.json"), "utf8");
  assert.doesNotMatch(lock, /"resolved"/);
});
