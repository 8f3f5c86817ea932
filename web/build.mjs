/**
 * Assemble `assembly/` to WebAssembly, and put it with `src/` into one ES module: `node build.mjs [folder]`.
 * With `--tests` also the tests, into `build/test`.
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
const js = "/* ppspeech-client, Apache-2.0; built from web/ with parts of @noble/hashes (MIT, Paul Miller). */";
const folder = process.argv.slice(2).find((each) => !each.startsWith("--")) ?? "../ppspeech/service/page";
const entryPoints = ["src/index.ts"];
await build({ ...options, entryPoints, outfile: `${folder}/client.js`, minify: true, legalComments: "none", banner: { js } });

if (process.argv.includes("--tests")) {
  const tests = readdirSync(`${here}test`).filter((name) => name.endsWith(".test.ts"));
  const all = tests.map((name) => `test/${name}`);
  await build({ ...options, entryPoints: all, outdir: "build/test", outExtension: { ".js": ".mjs" }, platform: "node" });
}
