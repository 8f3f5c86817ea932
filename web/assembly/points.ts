/**
 * The group of ed25519 in extended coordinates (Hisil et al. 2008): formulas without exceptions, and a product with a
 * scalar whose time and addresses do not depend on it. Points are 32 bytes, compressed as in RFC 8032.
 */

import { SIZE, add, choose, copy, fromBytes, invert, isNoSquare, multiply, rootPower, small, subtract, toBytes } from "./field";

const POINT: usize = 4 * SIZE; // X, Y, Z, T
const D = memory.data(80, 16), TWICE_D = memory.data(80, 16), ROOT = memory.data(80, 16), ONE = memory.data(80, 16);
const D_BYTES = memory.data<u8>([
  163, 120, 89, 19, 202, 77, 235, 117, 171, 216, 65, 65, 77, 10, 112, 0,
  152, 232, 121, 119, 121, 64, 199, 140, 115, 254, 111, 43, 238, 108, 3, 82,
]);
const ROOT_BYTES = memory.data<u8>([
  176, 160, 14, 74, 39, 27, 238, 196, 120, 228, 47, 173, 6, 24, 67, 47,
  167, 215, 251, 61, 153, 0, 77, 43, 11, 223, 193, 79, 128, 36, 131, 43,
]); // of -1
const BASE_BYTES = memory.data<u8>([
  88, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102,
  102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102, 102,
]);
const ORDER_BYTES = memory.data<u8>([
  237, 211, 245, 92, 26, 99, 18, 88, 214, 156, 247, 162, 222, 249, 222, 20,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16,
]);
const MONTGOMERY: i64 = 486662;

const E = memory.data(80, 16), F = memory.data(80, 16), G = memory.data(80, 16), H = memory.data(80, 16);
const I = memory.data(80, 16), J = memory.data(80, 16);
const ONE_POINT = memory.data(320, 16), OTHER_POINT = memory.data(320, 16), SUM = memory.data(320, 16);
const TABLE = memory.data(16 * 320, 16), CHOSEN = memory.data(320, 16);
const TRIED = memory.data(32, 16);

/** Constants; to be called once. */
export function beginPoints(): void {
  fromBytes(D, D_BYTES);
  add(TWICE_D, D, D);
  fromBytes(ROOT, ROOT_BYTES);
  small(ONE, 1);
}

function neutral(p: usize): void {
  small(p, 0), small(p + SIZE, 1), small(p + 2 * SIZE, 1), small(p + 3 * SIZE, 0);
}

/** p + q */
function sum(out: usize, p: usize, q: usize): void {
  subtract(E, p + SIZE, p), subtract(F, q + SIZE, q), multiply(E, E, F); // A
  add(F, p + SIZE, p), add(G, q + SIZE, q), multiply(F, F, G); // B
  multiply(G, p + 3 * SIZE, q + 3 * SIZE), multiply(G, G, TWICE_D); // C
  multiply(H, p + 2 * SIZE, q + 2 * SIZE), add(H, H, H); // D
  finish(out);
}

/** Of A, B, C, D in E, F, G, H: X = (B - A)(D - C), Y = (D + C)(B + A), Z = (D - C)(D + C), T = (B - A)(B + A). */
function finish(out: usize): void {
  subtract(I, F, E), add(J, F, E);
  subtract(E, H, G), add(F, H, G);
  multiply(out, I, E), multiply(out + SIZE, F, J), multiply(out + 2 * SIZE, E, F), multiply(out + 3 * SIZE, I, J);
}

function doubled(p: usize): void {
  sum(p, p, p);
}

/** All ones where f is zero. */
function isZero(f: usize): i64 {
  toBytes(f, TRIED);
  let any: u64 = 0;
  for (let i: usize = 0; i < 32; i += 8) any |= load<u64>(TRIED + i);
  return <i64>((any | (0 - any)) >> 63) - 1;
}

function isOdd(f: usize): i64 {
  toBytes(f, TRIED);
  return <i64>(load<u8>(TRIED) & 1);
}

function negate(f: usize, mask: i64): void {
  small(J, 0), subtract(J, J, f);
  choose(f, J, mask);
}

/** The point of a y with a sign bit in the highest place. Returns 0 where there is none. */
function decompress(p: usize, bytes: usize): i32 {
  const sign = <i64>(load<u8>(bytes, 31) >> 7);
  fromBytes(p + SIZE, bytes), small(p + 2 * SIZE, 1);
  multiply(E, p + SIZE, p + SIZE);
  multiply(F, E, D), add(F, F, ONE); // v = d y^2 + 1
  subtract(E, E, ONE); // u = y^2 - 1
  multiply(G, F, F), multiply(G, G, F); // v^3
  multiply(H, G, G), multiply(H, H, F), multiply(H, H, E); // u v^7
  rootPower(H, H), multiply(H, H, G), multiply(p, H, E); // x = u v^3 (u v^7)^((p - 5) / 8)
  multiply(G, p, p), multiply(G, G, F); // v x^2
  subtract(H, G, E);
  const fits = isZero(H);
  add(H, G, E);
  const turned = isZero(H);
  multiply(I, p, ROOT);
  choose(p, I, ~fits);
  negate(p, -(isOdd(p) ^ sign));
  multiply(p + 3 * SIZE, p, p + SIZE);
  return <i32>((fits | turned) & 1);
}

function compress(p: usize, bytes: usize): void {
  invert(E, p + 2 * SIZE);
  multiply(F, p, E), multiply(G, p + SIZE, E);
  const odd = isOdd(F);
  toBytes(G, bytes);
  store<u8>(bytes, load<u8>(bytes, 31) | <u8>(odd << 7), 31);
}

/** CHOSEN becomes entry `place` of TABLE; all are looked at. */
function choosePoint(place: u32): void {
  for (let i: u32 = 0; i < 16; i++) {
    const mask = (<i64>(i ^ place) - 1) >> 63;
    const entry = TABLE + <usize>i * POINT;
    for (let part: usize = 0; part < POINT; part += SIZE) choose(CHOSEN + part, entry + part, mask);
  }
}

/** A multiple of ONE_POINT by a scalar of 32 bytes, into SUM; four bits at a time. */
function times(scalar: usize): void {
  neutral(TABLE);
  memory.copy(TABLE + POINT, ONE_POINT, POINT);
  for (let i: usize = 2; i < 16; i++) sum(TABLE + i * POINT, TABLE + (i - 1) * POINT, ONE_POINT);
  neutral(SUM);
  for (let at: i32 = 63; at >= 0; at--) {
    for (let i = 0; i < 4; i++) doubled(SUM);
    choosePoint((<u32>load<u8>(scalar + (at >> 1)) >> <u32>(4 * (at & 1))) & 15);
    sum(SUM, SUM, CHOSEN);
  }
}

/** A valid point times a scalar, no bit of which is changed. */
export function pointTimes(point: usize, scalar: usize, out: usize): void {
  decompress(ONE_POINT, point);
  times(scalar);
  compress(SUM, out);
}

/** The base point times a scalar. */
export function basePointTimes(scalar: usize, out: usize): void {
  pointTimes(BASE_BYTES, scalar, out);
}

export function addPoints(one: usize, other: usize, out: usize): void {
  decompress(ONE_POINT, one);
  decompress(OTHER_POINT, other);
  sum(SUM, ONE_POINT, OTHER_POINT);
  compress(SUM, out);
}

/** Whether 32 bytes are a point of the group in its one form, and not the neutral one. */
export function isValidPoint(point: usize): i32 {
  fromBytes(E, point);
  toBytes(E, TRIED);
  store<u8>(TRIED, load<u8>(TRIED, 31) | (load<u8>(point, 31) & 0x80), 31);
  for (let i: usize = 0; i < 32; i += 8) if (load<u64>(TRIED + i) != load<u64>(point + i)) return 0;
  if (!decompress(ONE_POINT, point) || isNeutral(ONE_POINT)) return 0;
  times(ORDER_BYTES);
  return isNeutral(SUM);
}

function isNeutral(p: usize): i32 {
  subtract(E, p + SIZE, p + 2 * SIZE);
  return <i32>(isZero(p) & isZero(E) & 1);
}

/** 32 uniform bytes to a point as libsodium does it: Elligator 2 (Bernstein et al. 2013), and the cofactor cleared. */
export function fromUniform(bytes: usize, out: usize): void {
  fromBytes(E, bytes);
  multiply(E, E, E), add(E, E, E), add(E, E, ONE), invert(E, E);
  small(F, -MONTGOMERY), multiply(E, E, F); // x = -A / (1 + 2 r^2)
  small(F, MONTGOMERY), add(G, E, F), multiply(G, G, E), add(G, G, ONE), multiply(G, G, E); // x^3 + A x^2 + x
  const none = isNoSquare(G);
  small(G, 0), subtract(G, G, E), subtract(G, G, F);
  choose(E, G, none); // x, or -x - A
  add(F, E, ONE), invert(F, F), subtract(E, E, ONE), multiply(E, E, F); // y = (x - 1) / (x + 1)
  toBytes(E, out);
  store<u8>(out, load<u8>(out, 31) | (load<u8>(bytes, 31) & 0x80), 31);
  decompress(SUM, out);
  for (let i = 0; i < 3; i++) doubled(SUM);
  compress(SUM, out);
}
