// The committed web/dist is the build of web/src.

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

test("web/dist equals a build of web/src; `make web` rebuilds it", () => {
  const out = mkdtempSync(join(tmpdir(), "tenure_dist."));
  try {
    const build = spawnSync(process.execPath, ["node_modules/vite/bin/vite.js", "build", "--outDir",
      out, "--logLevel", "error"], { cwd: web, encoding: "utf8" });
    assert.equal(build.status, 0, build.stderr);
    assert.deepEqual(files(out), files(join(web, "dist")));
    for (const name of files(out)) {
      assert.ok(readFileSync(join(out, name)).equals(readFileSync(join(web, "dist", name))),
        `web/dist/${relative(".", name)} is not a build of web/src: run make web`);
    }
  } finally {
    rmSync(out, { recursive: true });
  }
});

test("the sources pass the type check", () => {
  const checked = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "--noEmit"],
    { cwd: web, encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout);
});

test("the lock file names no registry host", () => {
  const lock = readFileSync(join(web, "package-lock.json"), "utf8");
  assert.doesNotMatch(lock, /"resolved"/);
});
