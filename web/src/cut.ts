/** How a product of X (rows x inner) and W (inner x columns) is cut into polynomials; both parties compute the same. */

import { sha256 } from "@noble/hashes/sha2.js";
import { ascii } from "./bytes.ts";
import { asDouble } from "./canonical.ts";

export const N = 2048;
export const Q = 1125899906826241;
export const HEADER = 20;
const SEED = 64;

/** Bits of the server's weights, and of those the ones after the point. */
export type Scale = { bits: number; fraction: number };

export type Cut = {
  rows: number; inner: number; columns: number;
  /** Of a block: rows, inner terms, columns. */
  block: [number, number, number];
  groups: number; terms: number; outputs: number;
  queryBytes: number; replyBytes: number;
  /** Bits and fraction of the result. */
  bits: number; fraction: number;
  weights: Scale;
  spelled: string;
  identity: Uint8Array;
};

export function cutProduct(
  rows: number, inner: number, columns: number, limit: number, bits: number, fraction: number,
  weights: Scale = { bits: 28, fraction: 13 },
): Cut {
  const numbers = new Set<number>();
  for (let size = 1; size <= Math.min(inner, N); size++) numbers.add(Math.ceil(inner / size));
  let best: { bytes: number; products: number; block: [number, number, number] } | null = null;
  for (const terms of [...numbers].sort((a, b) => a - b)) {
    const n = Math.ceil(inner / terms);
    for (const groups of [Math.ceil(rows / Math.min(rows, Math.floor(N / n))), rows]) {
      const m = Math.ceil(rows / groups);
      const fitting = Math.min(columns, Math.floor(N / (n * m)));
      const q = Math.ceil(columns / Math.ceil(columns / fitting));
      const { groups: count, terms: parts, outputs, queryBytes, replyBytes } = sizesOf([m, n, q], rows, inner, columns);
      const [bytes, products] = [queryBytes + replyBytes, count * parts * outputs];
      if (best === null || bytes < best.bytes || (bytes === best.bytes && products < best.products)) {
        best = { bytes, products, block: [m, n, q] };
      }
    }
  }
  return cutBy(best!.block, rows, inner, columns, limit, bits, fraction, weights);
}

/** A product of `rows` rows, by the blocks of one that has `part` of them. */
export function cutInParts(
  part: number, rows: number, inner: number, columns: number, limit: number, bits: number, fraction: number,
): Cut {
  const { block, weights } = cutProduct(part, inner, columns, limit, bits, fraction);
  return cutBy(block, rows, inner, columns, limit, bits, fraction, weights);
}

function cutBy(
  block: [number, number, number], rows: number, inner: number, columns: number, limit: number, bits: number, fraction: number,
  weights: Scale,
): Cut {
  const { groups, terms, outputs, queryBytes, replyBytes } = sizesOf(block, rows, inner, columns);
  const spelled = jobOf(block, groups, terms, outputs, limit, bits, fraction, weights);
  const identity = sha256(ascii(spelled)).slice(0, 8);
  return { rows, inner, columns, block, groups, terms, outputs, queryBytes, replyBytes, bits, fraction, weights, spelled, identity };
}

/** How many blocks there are, and what travels. */
function sizesOf([m, n, q]: [number, number, number], rows: number, inner: number, columns: number) {
  const [groups, terms, outputs] = [Math.ceil(rows / m), Math.ceil(inner / n), Math.ceil(columns / q)];
  return { groups, terms, outputs, queryBytes: HEADER + groups * terms * (SEED + 6 * N), replyBytes: HEADER + groups * outputs * 4 * (m * q + N) };
}

function jobOf(
  [m, n, q]: [number, number, number], groups: number, terms: number, outputs: number, limit: number, bits: number,
  fraction: number, weights: Scale,
): string {
  const kept = `range(${n - 1}, ${m * n * q}${n === 1 ? "" : `, ${n}`})`;
  return (
    `Job(precision=Precision(parameters=LatticeParameters(degree=${N}, prime=${Q}), limit=${asDouble(limit)}, ` +
    `weights=Scale(bits=${weights.bits}, fraction=${weights.fraction}), result=Scale(bits=${bits}, fraction=${fraction})), ` +
    `groups=${groups}, terms=${terms}, outputs=${outputs}, kept=${kept})`
  );
}
