/**
 * Whether the tests notice each change that takes away what protects someone: `node mutants.mjs`.
 * A text occurs once in its file; with another in its place one of the tests must fail.
 */

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));

/** What a server may do with it, the test that must notice, the file, the text, and what takes its place. */
const MUTANTS = [
  ["learns our secret of transfers, bit by bit", "vectors", "extension.ts", "if (!same(digest(found)", "if (false && !same(digest(found)"],
  ["sends points of small order, and knows both keys", "refusals", "base_transfer.ts", "if (!kernel.aside(", "if (false && kernel.aside("],
  ["plays frames of another session back", "refusals", "wire.ts", "if (!same(header.subarray(4, 20), session))", "if (false)"],
  ["plays frames of this session again", "refusals", "wire.ts", "if (view.getUint32(20) !== sequence)", "if (false)"],
  ["sends more than was agreed on", "refusals", "wire.ts", '"exactly" in size ? length !== size.exactly : length > size.atMost', "false"],
  ["is asked with parameters it did not agree to", "refusals", "wire.ts", "|| !same(answer, encodeHello(nonce, protocol, params))", ""],
  ["sends what no step asked for", "refusals", "flights.ts", "if (this.at !== this.incoming.length) {", "if (false) {"],
  ["makes us compute on scores that wrap round", "refusals", "shape.ts", "if ((shape.floor ?? 1) > deepest)", "if (false)"],
  ["sees which of two labels it was, by an error", "refusals", "words.ts", "{ ignoreBOM: true }", "{ fatal: true }"],
  ["learns which label it was, as we leave after one that is empty", "refusals", "word_question.ts", 'throw new AudioError("no word', 'throw new ProtocolError("no word'],
  ["takes all memory by a model of many arcs", "refusals", "word_question.ts", "arcs > MOST_ARCS || arcs * shape.frames > MOST_CELLS", "false"],
  ["takes all memory by messages without bytes", "refusals", "carrier.ts", " || this.parts.length > MOST_PARTS", ""],
  ["hears a direction that is longer than all others", "refusals", "speaker_terms.ts", "!(length <= LONGER)", "false"],
  ["sees our indices", "vectors", "engine.ts", "choices.map((choice, i) => choice ^ indices[i]!)", "choices.map((_, i) => indices[i]!)"],
  ["sees two indices under one choice", "secrets", "engine.ts", "(tables.used += length)", "tables.used + length"],
  ["sees two residues under one pad", "secrets", "engine.ts", "this.products.used += bits.length;", ""],
  ["sees what tokens know", "sentences", "engine.ts", "loads[n]! ^ above(one, i, k) ^ above(zero, i, k)", "loads[n]!"],
  ["sees how many words there were, by how many it is asked for", "sentences", "sentences.ts", "while (told.length < shape.most_words)", "while (goesOn && told.length < shape.most_words)"],
  ["sees what was opened, by an error", "sentences", "sentences.ts", "told.push({ word, start, end, counts });", "told.push({ word, start, end, counts }); if (goesOn && !counts) throw new Error();"],
  ["makes us show a word that is none", "sentences", "sentences.ts", "& isLess(word, shape.words.length)", ""],
  ["makes us show a word that ends before it begins", "sentences", "sentences.ts", "& isLess(start, end)", ""],
  ["leaves out the first words", "sentences", "sentence_question.ts", "if (heard[0]?.start !== 0)", "if (false)"],
  ["sees how long a sentence was to a frame", "sentences", "sentence_terms.ts", "return Math.ceil(frames / step);", "return frames / step;"],
  ["is asked on terms that it did not agree to", "sentences", "sentence_terms.ts", "shape: plainShape(shape), mfcc: plainMfcc(mfcc)", "mfcc: plainMfcc(mfcc)"],
  ["makes us walk in a circle for ever", "sentences", "sentence_shape.ts", "if (hasCircle(columns.length, joined))", "if (false)"],
  ["takes two encryptions of zero from one another", "secrets", "lattice.ts", "this.zeros.shift()!", "this.zeros[0]!"],
  ["finds the voice in a query without errors", "secrets", "lattice.ts", "kernel.put(drawn(random, 8 * N))", "kernel.put(new Uint8Array(8 * N))"],
  ["guesses a secret that is seldom 0", "secrets", "lattice.ts", "(byte % 3) - 1", "(byte & 2) - 1"],
  ["knows the choices that blind the check", "secrets", "extension.ts", "drawn(random, padded(part.length) - part.length)", "new Uint8Array(padded(part.length) - part.length)"],
  ["shows a certificate that an authority vouches for, and is another", "pinned", "pinned.ts", "{ allowPooling: false, serverCertificateHashes }", "{ allowPooling: false, serverCertificateHashes: [] }"],
  ["is not pinned, by a pin that was left empty", "pinned", "door.ts", "if (pins.length === 0 || wrong !== undefined) {", "if (wrong !== undefined) {"],
  ["guesses bytes beyond the first 65,536", "secrets", "random.ts", "at < bytes.length; at += AT_ONCE", "at < 1; at += AT_ONCE"],
  ["is told bit after bit of one key, and reads it", "secrets", "asking.ts", "this.told + told > LEAKABLE_BITS", "false"],
  ["is told bits of a key that nobody counts", "secrets", "speakers.ts", 'told: terms.decision === "server" ? 1 : 0', "told: 0"],
  ["is met by a client that was closed, and whose secrets stay", "secrets", "asking.ts", "if (this.isClosed) session.close(); // while we met", ""],
  ["reads secrets in memory that was used before", "secrets", "kernel.ts", "this.bytes.fill(0, before, this.top);", ""],
];

function changed(file, old, other) {
  const name = "changed";
  return { name, setup: (esbuild) => esbuild.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
    const source = readFileSync(path, "utf-8");
    if (!path.endsWith(`/src/${file}`)) return { contents: source, loader: "ts" };
    if (source.split(old).length !== 2) throw new Error(`${file} has ${source.split(old).length - 1} times, not once: ${old}`);
    return { contents: source.replace(old, () => other), loader: "ts" };
  }) };
}

/** Whether a test fails with a change. */
async function fails(test, ...change) {
  const outfile = `${here}build/mutant/${test}.mjs`; // as far from the vectors as the tests are
  await build({
    absWorkingDir: here, bundle: true, format: "esm", target: "es2022", platform: "node", loader: { ".wasm": "binary" },
    entryPoints: [`test/${test}.test.ts`], outfile, plugins: [changed(...change)], logLevel: "silent",
  });
  return spawnSync(process.execPath, ["--test", outfile], { timeout: 120_000 }).status !== 0;
}

for (const test of new Set(MUTANTS.map((each) => each[1]))) {
  if (await fails(test, "no file", "", "")) throw new Error(`${test} fails where nothing was changed`);
}
let survivors = 0;
for (const [breaks, ...change] of MUTANTS) {
  const killed = await fails(...change);
  survivors += Number(!killed);
  console.log(`${killed ? "killed  " : "SURVIVED"}  a server that ${breaks}`);
}
console.log(`${MUTANTS.length - survivors} of ${MUTANTS.length} mutants are killed`);
process.exit(survivors ? 1 : 0);
