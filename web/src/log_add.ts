/** ln(e^a + e^b) of shared residues with `fraction` bits after the point. */

import type { Engine, Group } from "./engine.ts";
import { mask } from "./packing.ts";

const LOW = 6; // bits of the index of the table of corrections
const MANY = 400; // additions up to which blocks may have 8 bits

/** Bits of the blocks above the six lowest. */
export function upperBlocks(k: number, fraction: number, count: number): number[] {
  const bits = k - Math.max(0, fraction - 3) - LOW;
  if (bits > 12 && bits <= 2 * (count <= MANY ? 8 : 7)) return [Math.floor(bits / 2), Math.ceil(bits / 2)];
  return [...Array<number>(Math.floor((bits - 1) / 6)).fill(6), ((bits - 1) % 6) + 1];
}

export async function logAdd(
  engine: Engine, left: Uint32Array, right: Uint32Array, k: number, fraction: number,
): Promise<Uint32Array> {
  const [ring, step, count] = [mask(k), Math.max(0, fraction - 3), left.length];
  const difference = left.map((one, i) => (one - right[i]!) & ring);
  const groups: Group[] = [{ bits: LOW, width: k + 2, indices: difference.map((value) => (value >>> step) & mask(LOW)) }];
  let at = step + LOW;
  for (const bits of upperBlocks(k, fraction, count)) {
    const from = at;
    groups.push({ bits, width: 3, indices: difference.map((value) => (value >>> from) & mask(bits)) });
    at += bits;
  }
  const [found, ...parts] = await engine.ask(groups);
  const corrections = found!.low.map((value) => value & ring);
  const place = found!.low.map((value, i) => (k === 32 ? found!.high[i]! : (value >>> k) | (found!.high[i]! << (32 - k))) & 3);
  const top = parts.pop()!.low;
  let middle = parts.map((part) => part.low);
  while (middle.length > 1) {
    const pairs: Group[] = [];
    for (let n = 0; n + 1 < middle.length; n += 2) {
      pairs.push({ bits: 6, width: 3, indices: middle[n]!.map((low, i) => low | (middle[n + 1]![i]! << 3)) });
    }
    middle = [...(await engine.ask(pairs)).map((pair) => pair.low), ...middle.slice(2 * pairs.length)];
  }
  const index = place.map((low, i) => low | (top[i]! << 2) | ((middle[0]?.[i] ?? 0) << 5));
  const last = (await engine.ask([{ bits: middle.length ? 8 : 5, width: 2, indices: index }]))[0]!.low;
  const bits = new Uint32Array(2 * count);
  const values = new Uint32Array(2 * count);
  for (let i = 0; i < count; i++) {
    bits[i] = last[i]! & 1;
    bits[count + i] = last[i]! >> 1;
    values[i] = difference[i]!;
    values[count + i] = corrections[i]!;
  }
  const products = (await engine.times(bits, values, k)).residues;
  return right.map((one, i) => (one + products[i]! + products[count + i]!) & ring);
}
