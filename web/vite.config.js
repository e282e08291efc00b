import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// Adds the licenses of the bundled packages.
const licenses = () => ({
  name: "licenses",
  generateBundle() {
    const parts = ["preact", "@preact/signals", "@preact/signals-core", "uplot", "@dagrejs/dagre",
      "@dagrejs/graphlib"];
    const source = parts.map((part) => {
      const folder = new URL(`node_modules/${part}/`, import.meta.url);
      const { version } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
      return `${part} ${version}\n\n${readFileSync(new URL("LICENSE", folder), "utf8").trim()}\n`;
    }).join("\n" + "-".repeat(80) + "\n\n");
    this.emitFile({ type: "asset", fileName: "licenses.txt", source });
  },
});

// `npm run dev` serves the sources and proxies all other requests to a tenured.
const tenured = process.env.TENURED_HTTP ?? "http://127.0.0.1:7421";

export default defineConfig({
  base: "/",
  plugins: [licenses()],
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": tenured, "/metrics": tenured, "/healthz": tenured } },
});
