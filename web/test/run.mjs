// Bundles the tests of this folder like Vite bundles the sources, and runs them with the test
// runner of Node.js.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const out = mkdtempSync(join(tmpdir(), "tenure_web."));
try {
  await build({
    entryPoints: readdirSync(here).filter((name) => name.endsWith(".test.ts"))
      .map((name) => join(here, name)),
    bundle: true, platform: "node", format: "esm", outdir: out, outExtension: { ".js": ".mjs" },
    logLevel: "warning",
    // Browser globals that modules access while they are loaded.
    banner: {
      js: "globalThis.location ??= { hash: '' }; globalThis.addEventListener ??= () => {};",
    },
  });
  const files = readdirSync(out).map((name) => join(out, name));
  process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status;
} finally {
  rmSync(out, { recursive: true });
}
