/** Comparisons of shared residues: carries, signs and maxima. */

import type { Engine } from "./engine.ts";
import { mask } from "./packing.ts";
import type { Tokens } from "./recursion.ts";

/** Shares of the carry out of the lowest `width` bits of both parties' values. */
export async function carry(engine: Engine, values: Uint32Array, width: number): Promise<Uint32Array> {
  const size = width <= 24 && Math.ceil(width / 6) < Math.ceil(width / 5) ? 6 : 5;
  let blocks = Math.ceil(width / size);
  const shift = blocks * size - width;
  const indices = new Uint8Array(values.length * blocks);
  for (let i = 0, at = 0; i < values.length; i++) {
    const value = values[i]! & mask(width);
    for (let b = 0; b < blocks; b++, at++) {
      const from = size * b - shift; // where the block begins in the value; the first ones of the lowest are filled
      indices[at] = (from < 0 ? value << -from : value >>> from) & mask(size);
    }
  }
  let pairs = (await engine.ask([{ bits: size, width: 2, indices }]))[0]!.low;
  while (blocks > 4) {
    const after = Math.ceil(blocks / 4);
    const four = new Uint8Array(values.length * after);
    for (let i = 0; i < values.length; i++) {
      for (let b = 0; b < blocks; b++) four[i * after + (b >> 2)]! |= pairs[i * blocks + b]! << (2 * (b & 3));
    }
    pairs = (await engine.ask([{ bits: 8, width: 2, indices: four }]))[0]!.low;
    blocks = after;
  }
  const last = new Uint8Array(values.length);
  for (let i = 0; i < values.length; i++) {
    last[i] = pairs[i * blocks]! & 1;
    for (let b = 1; b < blocks; b++) last[i]! |= pairs[i * blocks + b]! << (2 * b - 1);
  }
  return (await engine.ask([{ bits: 2 * blocks - 1, width: 1, indices: last }]))[0]!.low;
}

/** The same by a few bits a round, for fewer tables. */
export async function walkingCarry(engine: Engine, values: Uint32Array, width: number): Promise<Uint32Array> {
  const steps = Math.ceil(width / 5);
  let carried: Uint32Array = new Uint32Array(values.length);
  for (let step = 0, at = 0; step < steps; step++) {
    const size = Math.floor((width - at) / (steps - step));
    const indices = values.map((value, i) => ((value >>> at) & mask(size)) | (carried[i]! << size));
    carried = (await engine.ask([{ bits: size + Number(at > 0), width: 1, indices }]))[0]!.low;
    at += size;
  }
  return carried;
}

/** Shares of the bits that say whether residues mod 2^k are negative. */
export async function isNegative(engine: Engine, values: Uint32Array, k: number, by = carry): Promise<Uint32Array> {
  if (k === 1) return values;
  const carried = await by(engine, values, k - 1);
  return carried.map((bit, i) => bit ^ ((values[i]! >>> (k - 1)) & 1));
}

/** right + [left >= right] (left - right); the server alone turns bits round. */
export async function maximum(engine: Engine, left: Uint32Array, right: Uint32Array, k: number): Promise<Uint32Array> {
  const none = new Uint32Array(left.length);
  return (await best(engine, { scores: left, fields: none }, { scores: right, fields: none }, k, 0)).scores;
}

/** The same of tokens: what the one with the higher score knows, `width` bits, comes along. */
export async function best(engine: Engine, left: Tokens, right: Tokens, k: number, width: number): Promise<Tokens> {
  const ring = mask(k);
  const difference = left.scores.map((one, i) => (one - right.scores[i]!) & ring);
  const loads = left.fields.map((one, i) => one ^ right.fields[i]!);
  const gained = await engine.times(await isNegative(engine, difference, k), difference, k, loads, width);
  return {
    scores: right.scores.map((one, i) => (one + gained.residues[i]!) & ring), fields: right.fields.map((one, i) => one ^ gained.loads[i]!),
  };
}
