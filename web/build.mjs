/**
 * Assemble `assembly/` to WebAssembly, and put it with `src/` into one ES module: `node build.mjs [folder]`.
 * `node build.mjs --tests` puts the tests into `build/test` instead.
 */

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const asc = `${here}node_modules/assemblyscript/bin/asc.js`;
const flags = ["-O3", "--enable", "simd", "--runtime", "stub", "--use", "abort=", "-o", "build/ring.wasm"];
mkdirSync(`${here}build`, { recursive: true });
execFileSync(process.execPath, [asc, "assembly/index.ts", ...flags], { cwd: here, stdio: "inherit" });

const options = { absWorkingDir: here, bundle: true, format: "esm", target: "es2022", loader: { ".wasm": "binary" } };
if (process.argv[2] === "--tests") {
  const tests = readdirSync(`${here}test`).filter((name) => name.endsWith(".test.ts"));
  const entryPoints = tests.map((name) => `test/${name}`);
  await build({ ...options, entryPoints, outdir: "build/test", outExtension: { ".js": ".mjs" }, platform: "node" });
} else {
  const js = "/* ppspeech-client, Apache-2.0; built from web/ with parts of @noble/hashes (MIT, Paul Miller). */";
  const outfile = `${process.argv[2] ?? "../ppspeech/service/page"}/client.js`;
  await build({ ...options, entryPoints: ["src/index.ts"], outfile, minify: true, legalComments: "none", banner: { js } });
}
