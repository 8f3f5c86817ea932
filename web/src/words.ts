/** Which word it is: the program on shares, from scores to labels (wire.md, section 11). Runs on a Recorder too. */

import { bestPlaces, bitLength, choose } from "./choose.ts";
import { isNegative, maximum, walkingCarry } from "./compare.ts";
import { type Cost, type Engine, Recorder } from "./engine.ts";
import { logAdd } from "./log_add.ts";
import { mask } from "./packing.ts";
import { follow } from "./recursion.ts";
import { columnsOf, type Shape, shortest } from "./shape.ts";
import { type Plan, planTrellis, type Trellis } from "./trellis.ts";

const LETTERS = 7; // bytes of a label in one residue
const TEXT_BITS = 8 * LETTERS;

/** What is public about a question: sizes, and which operations run together. */
export type Job = { shape: Shape; utterances: number; plan: Plan };

export function jobOf(shape: Shape, utterances: number, ahead: number): Job {
  return { shape, utterances, plan: planTrellis(wordTrellis(shape), shape.frames, ahead) };
}

/** Frames a step: 8 for the order `ahead`; for `frames` 2 where that pays. */
export function framesAStep(shape: Shape, utterances: number, order: "frames" | "ahead"): number {
  if (order === "ahead") return 8;
  const few = utterances * shape.words * shape.states <= 200 && shape.frames > 64;
  return few && shape.operation === "viterbi" && shape.moves[0] === 0 ? 2 : 1;
}

/** Words side by side. */
function wordTrellis({ words, states, moves, starts }: Shape): Trellis {
  const firsts = Array.from({ length: words }, (_, word) => word * states);
  const within = Array.from({ length: states }, (_, source) => moves.map((move) => [source, source + move] as const)).flat();
  const inside = within.filter(([, target]) => target >= 0 && target < states);
  return {
    columns: Array.from({ length: words * states }, (_, vertex) => vertex),
    arcs: firsts.flatMap((first) => inside.map(([source, target]) => ({ source: first + source, target: first + target, keep: 0 }))),
    starts: firsts.flatMap((first) => starts.map((state) => first + state)),
  };
}

/** What the program takes, from sizes alone. */
export async function costOf(job: Job): Promise<Cost> {
  const recorder = new Recorder();
  const scores = new Uint32Array(job.utterances * job.shape.frames * columnsOf(job.shape));
  await nameWords(recorder, job, scores, new Array<number>(job.utterances).fill(0));
  return recorder.cost;
}

/**
 * Labels of the best words, as bytes, from our shares of scores `(utterances, frames, columns)`; `last`: the number of
 * each last frame, from the shortest utterance's. Nothing here depends on what a label says.
 */
export async function nameWords(engine: Engine, job: Job, scores: Uint32Array, last: number[]): Promise<Uint8Array[]> {
  const { shape, utterances } = job;
  const { bits: k, words, states, frames } = shape;
  const [size, columns, reject] = [words * states, columnsOf(shape), Number(shape.reject)];
  if (shape.reach !== null) scores = await floored(engine, shape, scores);
  const emissions = await emissionsOf(engine, shape, scores);
  const gamma = await recursion(engine, job, emissions);

  const first = shortest(shape) - 1;
  const [candidates, width] = [frames - first, size + reject];
  const rows = new Uint32Array(utterances * width * candidates);
  for (let u = 0; u < utterances; u++) {
    for (let t = first; t < frames; t++) {
      for (let v = 0; v < size; v++) rows[(u * width + v) * candidates + t - first] = gamma[(t * size + v) * utterances + u]!;
    }
    for (let t = 0, sum = 0; reject && t < frames; t++) {
      sum = (sum + scores[(u * frames + t) * columns + columns - 1]!) & mask(k);
      if (t >= first) rows[(u * width + size) * candidates + t - first] = sum;
    }
  }
  const index = last.flatMap((place) => Array<number>(width).fill(place));
  const ended = (await choose(engine, rows, candidates, index, k)).low;
  const atEnds = new Uint32Array(utterances * words * shape.ends.length);
  for (let u = 0, at = 0; u < utterances; u++) {
    for (let w = 0; w < words; w++) for (const end of shape.ends) atEnds[at++] = ended[u * width + w * states + end]!;
  }
  const found = await reduced(engine, shape, atEnds, shape.ends.length);
  const compared = last.map((_, u) =>
    Uint32Array.from([...found.subarray(u * words, (u + 1) * words), ...ended.subarray(u * width + size, (u + 1) * width)]),
  );
  return labels(engine, shape, await bestPlaces(engine, compared, k));
}

/** Scores below the floor raised to it; the server knows the floor, and adds it. */
async function floored(engine: Engine, shape: Shape, scores: Uint32Array): Promise<Uint32Array> {
  const fraction = 32 - shape.reach!;
  const [vague, fewer] = [fraction + 4, fraction - shape.fraction];
  const below = await isNegative(engine, scores.map((value) => value >>> vague), 32 - vague, walkingCarry);
  const half = fewer ? 2 ** (fewer - 1) : 0;
  const taken = scores.map((value) => Math.floor((value + half) / 2 ** fewer) & mask(shape.bits));
  return (await engine.times(below, taken, shape.bits)).residues;
}

/** ln b of every vertex from the scores of its components, `(frames, vertices, utterances)`. */
async function emissionsOf(engine: Engine, shape: Shape, scores: Uint32Array): Promise<Uint32Array> {
  const [size, columns, parts] = [shape.words * shape.states, columnsOf(shape), shape.components];
  const rows = scores.length / columns;
  const utterances = rows / shape.frames;
  const given = new Uint32Array(rows * size * parts);
  for (let row = 0; row < rows; row++) given.set(scores.subarray(row * columns, row * columns + size * parts), row * size * parts);
  const flat = await reduced(engine, shape, given, parts);
  const out = new Uint32Array(flat.length);
  for (let u = 0; u < utterances; u++) {
    for (let t = 0; t < shape.frames; t++) {
      for (let v = 0; v < size; v++) out[(t * size + v) * utterances + u] = flat[(u * shape.frames + t) * size + v]!;
    }
  }
  return out;
}

/** Log-add or maximum. */
function combined(engine: Engine, shape: Shape, left: Uint32Array, right: Uint32Array): Promise<Uint32Array> {
  return shape.operation === "viterbi" ? maximum(engine, left, right, shape.bits) : logAdd(engine, left, right, shape.bits, shape.fraction);
}

/** Rows of `n` values, each to one, in a tree. */
async function reduced(engine: Engine, shape: Shape, rows: Uint32Array, n: number): Promise<Uint32Array> {
  const count = rows.length / n;
  while (n > 1) {
    const half = n >> 1;
    const left = new Uint32Array(count * half);
    const right = new Uint32Array(count * half);
    for (let row = 0; row < count; row++) {
      left.set(rows.subarray(row * n, row * n + half), row * half);
      right.set(rows.subarray(row * n + half, row * n + 2 * half), row * half);
    }
    const both = await combined(engine, shape, left, right);
    const after = n - half;
    const next = new Uint32Array(count * after);
    for (let row = 0; row < count; row++) {
      next.set(both.subarray(row * half, (row + 1) * half), row * after);
      next.set(rows.subarray(row * n + 2 * half, (row + 1) * n), row * after + half);
    }
    [rows, n] = [next, after];
  }
  return rows;
}

/** γ of every frame and vertex, `(frames, vertices, utterances)`; 0 where no path can be. */
async function recursion(engine: Engine, { shape, utterances, plan }: Job, emissions: Uint32Array): Promise<Uint32Array> {
  const { scores } = await follow(plan, emissions, utterances, shape.bits, async (left, right) => {
    return { scores: await combined(engine, shape, left.scores, right.scores), fields: left.fields };
  });
  const [size, count, ring] = [shape.words * shape.states, plan.nodes.length, mask(shape.bits)];
  return emissions.map((emission, at) => {
    const [lane, vertex, t] = [at % utterances, Math.floor(at / utterances) % size, Math.floor(at / utterances / size)];
    return plan.reached[t]![vertex] ? (scores[(t * count + vertex) * utterances + lane]! + emission) & ring : 0;
  });
}

async function labels(engine: Engine, shape: Shape, places: number[]): Promise<Uint8Array[]> {
  const residues = Math.ceil(shape.label_bytes / LETTERS);
  const table = 2 ** bitLength(shape.words + Number(shape.reject));
  const index = places.flatMap((place) => Array<number>(residues).fill(place % table));
  const own = await choose(engine, null, table, index, TEXT_BITS);
  const other = await engine.opened(index.length, TEXT_BITS);
  return places.map((_, u) => {
    const letters = new Uint8Array(LETTERS * residues);
    for (let r = 0; r < residues; r++) {
      const n = u * residues + r;
      const low = own.low[n]! + other.low[n]!;
      const high = own.high[n]! + other.high[n]! + Number(low > 0xffffffff);
      for (let b = 0; b < LETTERS; b++) letters[LETTERS * r + b] = b < 4 ? low >>> (8 * b) : high >>> (8 * (b - 4));
    }
    return letters;
  });
}

/** A label as text; null for none. What is no text is shown as such, and never refused: that would tell which it was. */
export function readLabel(letters: Uint8Array): string | null {
  let size = letters.length;
  while (size && letters[size - 1] === 0) size--;
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(letters.subarray(0, size));
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, "\ufffd") || null;
}
