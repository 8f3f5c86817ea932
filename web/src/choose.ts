/** What is chosen without being seen: an entry at an index that only we know, a row's best, all bits of a row. */

import { isNegative } from "./compare.ts";
import type { Engine } from "./engine.ts";
import { mask, type Numbers } from "./packing.ts";

/**
 * Shares mod 2^k of each row's entry at our index. `rows` has ours, `candidates` each, one row after the other; with
 * null all of them are 0. Sums go on above 32 bits.
 */
export async function choose(
  engine: Engine, rows: Uint32Array | null, candidates: number, indices: number[], k: number,
): Promise<Numbers> {
  const total = indices.map((index, n) => BigInt(rows === null ? 0 : rows[n * candidates + index]!));
  let index = indices;
  for (let left = candidates; left > 1; ) {
    const bits = Math.min(8, Math.max(1, bitLength(left - 1)));
    const tables = Math.ceil(left / 2 ** bits);
    const asked = index.flatMap((place) => Array<number>(tables).fill(place & mask(bits)));
    const found = (await engine.ask([{ bits, width: k, indices: asked }]))[0]!;
    index = index.map((place) => place >> bits);
    index.forEach((place, n) => {
      total[n]! += BigInt(found.low[n * tables + place]!) + (BigInt(found.high[n * tables + place]!) << 32n);
    });
    left = tables;
  }
  const kept = total.map((each) => BigInt.asUintN(k, each));
  return {
    low: Uint32Array.from(kept, (each) => Number(each & 0xffffffffn)), high: Uint32Array.from(kept, (each) => Number(each >> 32n)),
  };
}

/** Shares of the AND of each row's bits; rows of equal length. */
export async function allBits(engine: Engine, rows: number[][]): Promise<number[]> {
  while (rows[0]!.length > 1) {
    const count = rows[0]!.length;
    const parts = Math.ceil(count / 8);
    let at = 0;
    const groups = Array.from({ length: parts }, (_, part) => {
      const size = Math.floor(count / parts) + Number(part < count % parts);
      const from = at;
      at += size;
      return { bits: size, width: 1, indices: rows.map((row) => joinedBits(row.slice(from, from + size))) };
    });
    const found = await engine.ask(groups);
    rows = rows.map((_, i) => found.map((group) => group.low[i]!));
  }
  return rows.map((row) => row[0]!);
}

function joinedBits(bits: number[]): number {
  return bits.reduce((sum, bit, place) => sum | (bit << place), 0);
}

/** Our part of the place, counted from 1, of each row's largest; rows of `count` residues mod 2^k. */
export async function bestPlaces(engine: Engine, rows: Uint32Array[], k: number): Promise<number[]> {
  const count = rows[0]!.length;
  if (count === 1) return rows.map(() => 0);
  const pairs: [number, number][] = [];
  for (let low = 0; low < count; low++) for (let high = low + 1; high < count; high++) pairs.push([low, high]);
  const differences = rows.flatMap((row) => pairs.map(([low, high]) => row[low]! - row[high]!));
  const lost = await isNegative(engine, Uint32Array.from(differences, (each) => each & mask(k)), k);
  const place = (a: number, b: number) => a * count - (a * (a + 1)) / 2 + b - a - 1; // of the pair a < b
  const wins: number[][] = [];
  rows.forEach((_, u) => {
    for (let a = 0; a < count; a++) {
      const row: number[] = [];
      for (let b = 0; b < count; b++) {
        if (b !== a) row.push(lost[u * pairs.length + place(Math.min(a, b), Math.max(a, b))]!);
      }
      wins.push(row);
    }
  });
  const won = await allBits(engine, wins);
  return rows.map((_, u) => {
    let found = 0;
    for (let a = 0; a < count; a++) found ^= -won[u * count + a]! & (a + 1);
    return found;
  });
}

export function bitLength(value: number): number {
  return value === 0 ? 0 : Math.floor(Math.log2(value)) + 1;
}
