/**
 * The ring Z_q[x] / (x^2048 + 1), q = 2^50 - 2^14 + 1: transforms, and what a holder of a key does in it.
 *
 * A product a w mod q is a w - t q in 64 bits, t the quotient as a double: a < 2^50, so t is wrong by at most one, and
 * the difference is exact. No branch or address depends on a residue.
 */

import { expandSeed } from "./blake";

export const N: usize = 2048;
export const Q: u64 = 1125899906826241;
const PSI: u64 = 1080667890455;

const ROOTS = memory.data(8 * 2048, 16);
const ROOT_PARTS = memory.data(8 * 2048, 16);
const BACK = memory.data(8 * 2048, 16);
const BACK_PARTS = memory.data(8 * 2048, 16);
const WORK = memory.data(8 * 2048, 16);
let lastScale: u64 = 0;

/** Of a number in [-q, 2q). */
// @ts-ignore: decorator
@inline
function reduced(x: i64): u64 {
  x += Q & (x >> 63);
  x -= Q;
  return <u64>(x + (Q & (x >> 63)));
}

/** a w mod q, `part` being w / q. */
// @ts-ignore: decorator
@inline
function times(a: u64, w: u64, part: f64): u64 {
  return reduced(<i64>(a * w - <u64>(<i64>(<f64>(<i64>a) * part)) * Q));
}

function product(a: u64, b: u64): u64 {
  return times(a, b, <f64>(<i64>b) / <f64>Q);
}

function power(base: u64, exponent: u64): u64 {
  let found: u64 = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) found = product(found, base);
    base = product(base, base);
  }
  return found;
}

/** Tables of roots; to be called once. */
export function begin(): void {
  const back = power(PSI, Q - 2);
  for (let i: usize = 0; i < N; i++) {
    let turned: u64 = 0;
    for (let bit: usize = 0; bit < 11; bit++) turned |= <u64>((i >> bit) & 1) << (10 - bit);
    setFactor(ROOTS, ROOT_PARTS, i, power(PSI, turned));
    setFactor(BACK, BACK_PARTS, i, power(back, turned));
  }
  lastScale = power(<u64>N, Q - 2);
}

function setFactor(values: usize, parts: usize, i: usize, value: u64): void {
  store<u64>(values + 8 * i, value);
  store<f64>(parts + 8 * i, <f64>value / <f64>Q);
}

/** Coefficients to values, in place. */
export function forward(x: usize): void {
  for (let gap: usize = N / 2, blocks: usize = 1; gap; gap >>= 1, blocks <<= 1) {
    for (let block: usize = 0; block < blocks; block++) {
      const w = load<u64>(ROOTS + 8 * (blocks + block)), part = load<f64>(ROOT_PARTS + 8 * (blocks + block));
      const from = x + 16 * block * gap;
      for (let at = from; at < from + 8 * gap; at += 8) {
        const u = load<u64>(at), t = times(load<u64>(at + 8 * gap), w, part);
        store<u64>(at, reduced(<i64>(u + t)));
        store<u64>(at + 8 * gap, reduced(<i64>(u - t)));
      }
    }
  }
}

/** Values to coefficients, in place. */
export function inverse(x: usize): void {
  for (let gap: usize = 1, blocks: usize = N / 2; blocks; gap <<= 1, blocks >>= 1) {
    for (let block: usize = 0; block < blocks; block++) {
      const w = load<u64>(BACK + 8 * (blocks + block)), part = load<f64>(BACK_PARTS + 8 * (blocks + block));
      const from = x + 16 * block * gap;
      for (let at = from; at < from + 8 * gap; at += 8) {
        const u = load<u64>(at), v = load<u64>(at + 8 * gap);
        store<u64>(at, reduced(<i64>(u + v)));
        store<u64>(at + 8 * gap, times(reduced(<i64>(u - v)), w, part));
      }
    }
  }
  const part = <f64>lastScale / <f64>Q;
  for (let at = x; at < x + 8 * N; at += 8) store<u64>(at, times(load<u64>(at), lastScale, part));
}

/** Values x become those of x s, `secret` having s, then s / q. */
function timesSecret(x: usize, secret: usize): void {
  for (let at: usize = 0; at < 8 * N; at += 8) {
    store<u64>(x + at, times(load<u64>(x + at), load<u64>(secret + at), load<f64>(secret + 8 * N + at)));
  }
}

/** A secret from 2,048 numbers of -1, 0 or 1 (bytes): its values, then their parts of q. */
export function makeSecret(ternary: usize, secret: usize): void {
  for (let i: usize = 0; i < N; i++) {
    const x = <i64>load<i8>(ternary + i);
    store<u64>(secret + 8 * i, <u64>(x + (<i64>Q & (x >> 63))));
  }
  forward(secret);
  for (let i: usize = 0; i < N; i++) setFactor(secret, secret + 8 * N, i, load<u64>(secret + 8 * i));
}

/** Centered binomial errors, a byte each, from 8 random bytes each: ones of 21 bits less ones of 21 others. */
export function makeErrors(random: usize, errors: usize): void {
  for (let i: usize = 0; i < N; i++) {
    const one = load<u32>(random + 8 * i) & 0x1fffff, other = load<u32>(random + 8 * i, 4) & 0x1fffff;
    store<i8>(errors + i, <i8>(popcnt<u32>(one) - popcnt<u32>(other)));
  }
}

/** -x s plus or less errors, by `sign`, as coefficients, in place of the values x. */
function hidden(x: usize, secret: usize, errors: usize, sign: i64): void {
  timesSecret(x, secret);
  inverse(x);
  for (let i: usize = 0; i < N; i++) {
    store<u64>(x + 8 * i, reduced(sign * <i64>load<i8>(errors + i) - <i64>load<u64>(x + 8 * i)));
  }
}

/** A public key, 7 bytes a value: its other half is the expansion of `seed`, taken as values. */
export function makeKey(seed: usize, secret: usize, errors: usize, out: usize): void {
  expandSeed(seed, WORK);
  hidden(WORK, secret, errors, -1);
  forward(WORK);
  for (let i: usize = 0; i < N; i++) {
    const value = load<u64>(WORK + 8 * i);
    store<u32>(out + 7 * i, <u32>value);
    store<u16>(out + 7 * i, <u16>(value >> 32), 4);
    store<u8>(out + 7 * i, <u8>(value >> 48), 6);
  }
}

/** An encryption of zero: coefficients of its first part; the second is the expansion of `seed`. */
export function encryptZero(seed: usize, secret: usize, errors: usize, out: usize): void {
  expandSeed(seed, out);
  forward(out);
  hidden(out, secret, errors, 1);
}

/** A zero and a message, of doubles that are rounded, as they travel: the upper 48 bits of every sum. */
export function addMessage(zero: usize, message: usize, out: usize): void {
  for (let i: usize = 0; i < N; i++) {
    const rounded = <i64>nearest<f64>(load<f64>(message + 8 * i));
    const sum = reduced(<i64>load<u64>(zero + 8 * i) + <i64>reduced(rounded)) >> 2;
    store<u32>(out + 6 * i, <u32>sum);
    store<u16>(out + 6 * i, <u16>(sum >> 32), 4);
  }
}

/** Words that were kept, with words of a second part times the secret at the same places added: mod 2^32, in place. */
export function openReply(kept: usize, count: usize, second: usize, secret: usize, first: usize, step: usize): void {
  for (let i: usize = 0; i < N; i++) store<u64>(WORK + 8 * i, fromWord(load<u32>(second + 4 * i)));
  forward(WORK);
  timesSecret(WORK, secret);
  inverse(WORK);
  for (let i: usize = 0; i < count; i++) {
    store<u32>(kept + 4 * i, load<u32>(kept + 4 * i) + toWord(load<u64>(WORK + 8 * (first + i * step))));
  }
}

/** round(w q / 2^32) mod q, exactly: q is 2^50 - 2^14 + 1. */
export function fromWord(word: u32): u64 {
  const w = <i64>word;
  return reduced((w << 18) + ((w - (w << 14) + 0x80000000) >> 32));
}

/** round(c 2^32 / q) mod 2^32, halves up: the quotient of c 2^33 as a double, put right by its remainder. */
export function toWord(c: u64): u32 {
  let t = <i64>(<f64>(<i64>c) * (<f64>((<u64>1) << 33) / <f64>Q));
  const rest = <i64>((c << 33) - <u64>t * Q);
  t += rest >> 63;
  t += <i64>(rest >= <i64>Q);
  return <u32>((t + 1) >> 1);
}
