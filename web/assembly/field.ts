/**
 * Numbers mod p = 2^255 - 19, in ten limbs of 26 and 25 bits in turn, 80 bytes each (Bernstein et al. 2011).
 *
 * Sums are not reduced: what is multiplied is a sum of at most four products. Nothing branches on a value.
 */

export const SIZE: usize = 80;

const A = memory.data(80, 16);
const B = memory.data(80, 16);
const C = memory.data(80, 16);
const D = memory.data(80, 16);
const LIMBS = memory.data(80, 16);
const BYTES = memory.data(32, 16);

export function copy(out: usize, f: usize): void {
  memory.copy(out, f, SIZE);
}

export function small(out: usize, value: i64): void {
  memory.fill(out, 0, SIZE);
  store<i64>(out, value);
}

export function add(out: usize, f: usize, g: usize): void {
  for (let i: usize = 0; i < SIZE; i += 8) store<i64>(out + i, load<i64>(f + i) + load<i64>(g + i));
}

export function subtract(out: usize, f: usize, g: usize): void {
  for (let i: usize = 0; i < SIZE; i += 8) store<i64>(out + i, load<i64>(f + i) - load<i64>(g + i));
}

/** `f` becomes `g` where `mask` is all ones, and stays where it is zero. */
export function choose(f: usize, g: usize, mask: i64): void {
  for (let i: usize = 0; i < SIZE; i += 8) {
    const own = load<i64>(f + i);
    store<i64>(f + i, own ^ ((own ^ load<i64>(g + i)) & mask));
  }
}

export function multiply(out: usize, f: usize, g: usize): void {
  const f0 = load<i64>(f, 0), f1 = load<i64>(f, 8), f2 = load<i64>(f, 16), f3 = load<i64>(f, 24), f4 = load<i64>(f, 32);
  const f5 = load<i64>(f, 40), f6 = load<i64>(f, 48), f7 = load<i64>(f, 56), f8 = load<i64>(f, 64), f9 = load<i64>(f, 72);
  const g0 = load<i64>(g, 0), g1 = load<i64>(g, 8), g2 = load<i64>(g, 16), g3 = load<i64>(g, 24), g4 = load<i64>(g, 32);
  const g5 = load<i64>(g, 40), g6 = load<i64>(g, 48), g7 = load<i64>(g, 56), g8 = load<i64>(g, 64), g9 = load<i64>(g, 72);
  const n1 = 19 * g1, n2 = 19 * g2, n3 = 19 * g3, n4 = 19 * g4, n5 = 19 * g5, n6 = 19 * g6, n7 = 19 * g7, n8 = 19 * g8, n9 = 19 * g9;
  const d1 = 2 * f1, d3 = 2 * f3, d5 = 2 * f5, d7 = 2 * f7, d9 = 2 * f9;
  let h0 = f0 * g0 + d1 * n9 + f2 * n8 + d3 * n7 + f4 * n6 + d5 * n5 + f6 * n4 + d7 * n3 + f8 * n2 + d9 * n1;
  let h1 = f0 * g1 + f1 * g0 + f2 * n9 + f3 * n8 + f4 * n7 + f5 * n6 + f6 * n5 + f7 * n4 + f8 * n3 + f9 * n2;
  let h2 = f0 * g2 + d1 * g1 + f2 * g0 + d3 * n9 + f4 * n8 + d5 * n7 + f6 * n6 + d7 * n5 + f8 * n4 + d9 * n3;
  let h3 = f0 * g3 + f1 * g2 + f2 * g1 + f3 * g0 + f4 * n9 + f5 * n8 + f6 * n7 + f7 * n6 + f8 * n5 + f9 * n4;
  let h4 = f0 * g4 + d1 * g3 + f2 * g2 + d3 * g1 + f4 * g0 + d5 * n9 + f6 * n8 + d7 * n7 + f8 * n6 + d9 * n5;
  let h5 = f0 * g5 + f1 * g4 + f2 * g3 + f3 * g2 + f4 * g1 + f5 * g0 + f6 * n9 + f7 * n8 + f8 * n7 + f9 * n6;
  let h6 = f0 * g6 + d1 * g5 + f2 * g4 + d3 * g3 + f4 * g2 + d5 * g1 + f6 * g0 + d7 * n9 + f8 * n8 + d9 * n7;
  let h7 = f0 * g7 + f1 * g6 + f2 * g5 + f3 * g4 + f4 * g3 + f5 * g2 + f6 * g1 + f7 * g0 + f8 * n9 + f9 * n8;
  let h8 = f0 * g8 + d1 * g7 + f2 * g6 + d3 * g5 + f4 * g4 + d5 * g3 + f6 * g2 + d7 * g1 + f8 * g0 + d9 * n9;
  let h9 = f0 * g9 + f1 * g8 + f2 * g7 + f3 * g6 + f4 * g5 + f5 * g4 + f6 * g3 + f7 * g2 + f8 * g1 + f9 * g0;
  let c: i64;
  c = (h0 + (1 << 25)) >> 26, h1 += c, h0 -= c << 26;
  c = (h4 + (1 << 25)) >> 26, h5 += c, h4 -= c << 26;
  c = (h1 + (1 << 24)) >> 25, h2 += c, h1 -= c << 25;
  c = (h5 + (1 << 24)) >> 25, h6 += c, h5 -= c << 25;
  c = (h2 + (1 << 25)) >> 26, h3 += c, h2 -= c << 26;
  c = (h6 + (1 << 25)) >> 26, h7 += c, h6 -= c << 26;
  c = (h3 + (1 << 24)) >> 25, h4 += c, h3 -= c << 25;
  c = (h7 + (1 << 24)) >> 25, h8 += c, h7 -= c << 25;
  c = (h4 + (1 << 25)) >> 26, h5 += c, h4 -= c << 26;
  c = (h8 + (1 << 25)) >> 26, h9 += c, h8 -= c << 26;
  c = (h9 + (1 << 24)) >> 25, h0 += c * 19, h9 -= c << 25;
  c = (h0 + (1 << 25)) >> 26, h1 += c, h0 -= c << 26;
  store<i64>(out, h0), store<i64>(out, h1, 8), store<i64>(out, h2, 16), store<i64>(out, h3, 24);
  store<i64>(out, h4, 32), store<i64>(out, h5, 40), store<i64>(out, h6, 48), store<i64>(out, h7, 56);
  store<i64>(out, h8, 64), store<i64>(out, h9, 72);
}

/** f^(2^n) */
function squared(out: usize, f: usize, n: i32): void {
  multiply(out, f, f);
  for (let i: i32 = 1; i < n; i++) multiply(out, out, out);
}

/** f^(2^250 - 1) into A, and f^11 into B. */
function chain(f: usize): void {
  squared(A, f, 1);
  squared(B, A, 2);
  multiply(B, B, f); // 9
  multiply(A, A, B); // 11
  squared(C, A, 1); // 22
  multiply(C, C, B); // 2^5 - 1
  copy(B, A);
  squared(A, C, 5), multiply(C, A, C); // 2^10 - 1
  squared(A, C, 10), multiply(A, A, C); // 2^20 - 1
  copy(D, A);
  squared(A, A, 20), multiply(A, A, D); // 2^40 - 1
  squared(A, A, 10), multiply(C, A, C); // 2^50 - 1
  squared(A, C, 50), multiply(A, A, C); // 2^100 - 1
  copy(D, A);
  squared(A, A, 100), multiply(A, A, D); // 2^200 - 1
  squared(A, A, 50), multiply(A, A, C); // 2^250 - 1
}

/** 1 / f; 0 for 0. */
export function invert(out: usize, f: usize): void {
  chain(f);
  squared(A, A, 5);
  multiply(out, A, B);
}

/** f^((p - 5) / 8) */
export function rootPower(out: usize, f: usize): void {
  chain(f);
  squared(A, A, 2);
  multiply(out, A, f);
}

/** All ones where f is neither 0 nor a square: f^((p - 1) / 2) = -1. */
export function isNoSquare(f: usize): i64 {
  chain(f);
  squared(A, A, 4);
  squared(C, f, 1), multiply(A, A, C);
  squared(C, C, 1), multiply(A, A, C);
  toBytes(A, BYTES);
  return -(<i64>((load<u8>(BYTES, 1)) & 1)); // of 1 this byte is 0, of -1 it is 255
}

/** The lowest 255 bits of 32 bytes. */
export function fromBytes(out: usize, bytes: usize): void {
  let bit: usize = 0;
  for (let i: usize = 0; i < 10; i++) {
    const width: usize = i & 1 ? 25 : 26;
    let found: i64 = 0;
    for (let b: usize = 0; b < width; b++) {
      found |= <i64>((load<u8>(bytes + ((bit + b) >> 3)) >> <u8>((bit + b) & 7)) & 1) << b;
    }
    store<i64>(out + 8 * i, found);
    bit += width;
  }
}

/** The one form in 0 .. p - 1, 32 bytes. */
export function toBytes(f: usize, bytes: usize): void {
  memory.fill(bytes, 0, 32);
  copy(LIMBS, f);
  for (let turn = 0; turn < 3; turn++) carry();
  let over: i64 = (load<i64>(LIMBS) + 19) >> 26; // whether it is p or more
  for (let i: usize = 1; i < 10; i++) over = (load<i64>(LIMBS + 8 * i) + over) >> (i & 1 ? 25 : 26);
  store<i64>(LIMBS, load<i64>(LIMBS) + 19 * over);
  carry(false);
  let bit: usize = 0;
  for (let i: usize = 0; i < 10; i++) {
    const width: usize = i & 1 ? 25 : 26, limb = load<i64>(LIMBS + 8 * i);
    for (let b: usize = 0; b < width; b++) {
      const at = bytes + ((bit + b) >> 3);
      store<u8>(at, load<u8>(at) | (<u8>((limb >> b) & 1) << <u8>((bit + b) & 7)));
    }
    bit += width;
  }
}

/** Limbs within their widths, none negative but perhaps the first; what is above the last comes in again below. */
function carry(again: bool = true): void {
  let c: i64 = 0;
  for (let i: usize = 0; i < 10; i++) {
    const width = i & 1 ? 25 : 26, limb = load<i64>(LIMBS + 8 * i) + c;
    c = limb >> width;
    store<i64>(LIMBS + 8 * i, limb - (c << width));
  }
  if (again) store<i64>(LIMBS, load<i64>(LIMBS) + 19 * c);
}
