// Bundles the tests beside this file, as Vite would the sources, and runs them with node's own
// runner.

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
    // What a page has and node has not, as far as modules ask for it when they are loaded.
    banner: {
      js: "globalThis.location ??= { hash: '' }; globalThis.addEventListener ??= () => {};",
    },
  });
  const files = readdirSync(out).map((name) => join(out, name));
  process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status;
} finally {
  rmSync(out, { recursive: true });
}
