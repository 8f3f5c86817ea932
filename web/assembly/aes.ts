/**
 * AES-128 on eight blocks at once, bitsliced (Käsper and Schwabe 2009): no table is looked up and nothing branches on a
 * secret, so time and caches tell nothing of keys or blocks.
 *
 * Plane b of eight registers has in byte p, bit j: bit b of byte p of block j. Each block may have a key of its own.
 */

export const PLANES: usize = 8 * 16;
/** Bytes of the round keys of eight blocks. */
export const ROUND_KEYS: usize = 11 * PLANES;

const STATE = memory.data(128, 16);
const WIDE_KEYS = memory.data(15 * 128, 16);
const RCON = memory.data<u8>([1, 2, 4, 8, 16, 32, 64, 128, 27, 54]);

/** Exchange bits between two registers: those under the mask of the second, and those `n` above it of the first. */
// @ts-ignore: decorator
@inline
function exchange(at: usize, one: usize, other: usize, n: i32, mask: v128): void {
  let a = v128.load(at + 16 * one), b = v128.load(at + 16 * other);
  const t = v128.and(v128.xor(v128.shr<u64>(a, n), b), mask);
  v128.store(at + 16 * one, v128.xor(a, v128.shl<u64>(t, n)));
  v128.store(at + 16 * other, v128.xor(b, t));
}

/** Eight blocks to planes, or back. */
function turn(at: usize): void {
  const ones = v128.splat<u8>(0x55), twos = v128.splat<u8>(0x33), fours = v128.splat<u8>(0x0f);
  for (let i: usize = 0; i < 8; i += 2) exchange(at, i, i + 1, 1, ones);
  for (let i: usize = 0; i < 8; i += 4) {
    exchange(at, i, i + 2, 2, twos);
    exchange(at, i + 1, i + 3, 2, twos);
  }
  for (let i: usize = 0; i < 4; i++) exchange(at, i, i + 4, 4, fours);
}

/** SubBytes on planes: the circuit of Boyar and Peralta (2010), inverse in a tower of fields, 115 gates. */
function substitute(at: usize): void {
  const x0 = v128.load(at, 112), x1 = v128.load(at, 96), x2 = v128.load(at, 80), x3 = v128.load(at, 64);
  const x4 = v128.load(at, 48), x5 = v128.load(at, 32), x6 = v128.load(at, 16), x7 = v128.load(at);

  const y14 = v128.xor(x3, x5), y13 = v128.xor(x0, x6), y9 = v128.xor(x0, x3), y8 = v128.xor(x0, x5);
  const t0 = v128.xor(x1, x2), y1 = v128.xor(t0, x7), y4 = v128.xor(y1, x3), y12 = v128.xor(y13, y14);
  const y2 = v128.xor(y1, x0), y5 = v128.xor(y1, x6), y3 = v128.xor(y5, y8), t1 = v128.xor(x4, y12);
  const y15 = v128.xor(t1, x5), y20 = v128.xor(t1, x1), y6 = v128.xor(y15, x7), y10 = v128.xor(y15, t0);
  const y11 = v128.xor(y20, y9), y7 = v128.xor(x7, y11), y17 = v128.xor(y10, y11), y19 = v128.xor(y10, y8);
  const y16 = v128.xor(t0, y11), y21 = v128.xor(y13, y16), y18 = v128.xor(x0, y16);

  const t2 = v128.and(y12, y15), t3 = v128.and(y3, y6), t4 = v128.xor(t3, t2), t5 = v128.and(y4, x7);
  const t6 = v128.xor(t5, t2), t7 = v128.and(y13, y16), t8 = v128.and(y5, y1), t9 = v128.xor(t8, t7);
  const t10 = v128.and(y2, y7), t11 = v128.xor(t10, t7), t12 = v128.and(y9, y11), t13 = v128.and(y14, y17);
  const t14 = v128.xor(t13, t12), t15 = v128.and(y8, y10), t16 = v128.xor(t15, t12);
  const t21 = v128.xor(v128.xor(t4, t14), y20), t22 = v128.xor(v128.xor(t6, t16), y19);
  const t23 = v128.xor(v128.xor(t9, t14), y21), t24 = v128.xor(v128.xor(t11, t16), y18);

  const t25 = v128.xor(t21, t22), t26 = v128.and(t21, t23), t27 = v128.xor(t24, t26), t28 = v128.and(t25, t27);
  const t29 = v128.xor(t28, t22), t30 = v128.xor(t23, t24), t31 = v128.xor(t22, t26), t32 = v128.and(t31, t30);
  const t33 = v128.xor(t32, t24), t34 = v128.xor(t23, t33), t35 = v128.xor(t27, t33), t36 = v128.and(t24, t35);
  const t37 = v128.xor(t36, t34), t38 = v128.xor(t27, t36), t39 = v128.and(t29, t38), t40 = v128.xor(t25, t39);
  const t41 = v128.xor(t40, t37), t42 = v128.xor(t29, t33), t43 = v128.xor(t29, t40), t44 = v128.xor(t33, t37);
  const t45 = v128.xor(t42, t41);

  const z0 = v128.and(t44, y15), z1 = v128.and(t37, y6), z2 = v128.and(t33, x7), z3 = v128.and(t43, y16);
  const z4 = v128.and(t40, y1), z5 = v128.and(t29, y7), z6 = v128.and(t42, y11), z7 = v128.and(t45, y17);
  const z8 = v128.and(t41, y10), z9 = v128.and(t44, y12), z10 = v128.and(t37, y3), z11 = v128.and(t33, y4);
  const z12 = v128.and(t43, y13), z13 = v128.and(t40, y5), z14 = v128.and(t29, y2), z15 = v128.and(t42, y9);
  const z16 = v128.and(t45, y14), z17 = v128.and(t41, y8);

  const t46 = v128.xor(z15, z16), t47 = v128.xor(z10, z11), t48 = v128.xor(z5, z13), t49 = v128.xor(z9, z10);
  const t50 = v128.xor(z2, z12), t51 = v128.xor(z2, z5), t52 = v128.xor(z7, z8), t53 = v128.xor(z0, z3);
  const t54 = v128.xor(z6, z7), t55 = v128.xor(z16, z17), t56 = v128.xor(z12, t48), t57 = v128.xor(t50, t53);
  const t58 = v128.xor(z4, t46), t59 = v128.xor(z3, t54), t60 = v128.xor(t46, t57), t61 = v128.xor(z14, t57);
  const t62 = v128.xor(t52, t58), t63 = v128.xor(t49, t58), t64 = v128.xor(z4, t59), t65 = v128.xor(t61, t62);
  const t66 = v128.xor(z1, t63), t67 = v128.xor(t64, t65), s3 = v128.xor(t53, t66);
  v128.store(at, v128.xor(t59, t63), 112);
  v128.store(at, v128.xor(t64, v128.not(s3)), 96);
  v128.store(at, v128.xor(t55, v128.not(t67)), 80);
  v128.store(at, s3, 64);
  v128.store(at, v128.xor(t51, t66), 48);
  v128.store(at, v128.xor(t47, t65), 32);
  v128.store(at, v128.xor(t56, v128.not(t62)), 16);
  v128.store(at, v128.xor(t48, v128.not(t60)));
}

// @ts-ignore: decorator
@inline
function shiftedRows(x: v128): v128 {
  return v128.shuffle<u8>(x, x, 0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11);
}

/** Every column's next byte in place of each. */
// @ts-ignore: decorator
@inline
function next(x: v128): v128 {
  return v128.shuffle<u8>(x, x, 1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12);
}

// @ts-ignore: decorator
@inline
function afterNext(x: v128): v128 {
  return v128.shuffle<u8>(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
}

function addKey(at: usize, key: usize): void {
  for (let b: usize = 0; b < PLANES; b += 16) v128.store(at + b, v128.xor(v128.load(at + b), v128.load(key + b)));
}

/** A plane of MixColumns: 2 (a + a') + a' + (a'' + a'''), `above` being what doubling brings in. */
// @ts-ignore: decorator
@inline
function mixed(at: usize, key: usize, b: usize, after: v128, sum: v128, above: v128): void {
  const found = v128.xor(v128.xor(after, afterNext(sum)), above);
  v128.store(at + 16 * b, v128.xor(found, v128.load(key + 16 * b)));
}

/** ShiftRows, MixColumns and a round key. */
function mix(at: usize, key: usize): void {
  const a0 = shiftedRows(v128.load(at)), a1 = shiftedRows(v128.load(at, 16)), a2 = shiftedRows(v128.load(at, 32));
  const a3 = shiftedRows(v128.load(at, 48)), a4 = shiftedRows(v128.load(at, 64)), a5 = shiftedRows(v128.load(at, 80));
  const a6 = shiftedRows(v128.load(at, 96)), a7 = shiftedRows(v128.load(at, 112));
  const n0 = next(a0), n1 = next(a1), n2 = next(a2), n3 = next(a3), n4 = next(a4), n5 = next(a5), n6 = next(a6);
  const n7 = next(a7);
  const s0 = v128.xor(a0, n0), s1 = v128.xor(a1, n1), s2 = v128.xor(a2, n2), s3 = v128.xor(a3, n3);
  const s4 = v128.xor(a4, n4), s5 = v128.xor(a5, n5), s6 = v128.xor(a6, n6), s7 = v128.xor(a7, n7);
  mixed(at, key, 0, n0, s0, s7);
  mixed(at, key, 1, n1, s1, v128.xor(s0, s7));
  mixed(at, key, 2, n2, s2, s1);
  mixed(at, key, 3, n3, s3, v128.xor(s2, s7));
  mixed(at, key, 4, n4, s4, v128.xor(s3, s7));
  mixed(at, key, 5, n5, s5, s4);
  mixed(at, key, 6, n6, s6, s5);
  mixed(at, key, 7, n7, s7, s6);
}

/** Encrypt planes in place. */
function encryptPlanes(at: usize, keys: usize, rounds: usize): void {
  addKey(at, keys);
  for (let round: usize = 1; round < rounds; round++) {
    substitute(at);
    mix(at, keys + round * PLANES);
  }
  substitute(at);
  for (let b: usize = 0; b < PLANES; b += 16) v128.store(at + b, shiftedRows(v128.load(at + b)));
  addKey(at, keys + rounds * PLANES);
}

/** Encrypt eight blocks in place, block j under key j. */
export function encryptEight(at: usize, keys: usize): void {
  turn(at);
  encryptPlanes(at, keys, 10);
  turn(at);
}

/** Planes of the next round key: `before`, each column added to all after it, and what the `last` column gives. */
function nextKey(before: usize, last: usize, after: usize, constant: u8): void {
  const zero = v128.splat<u8>(0);
  memory.copy(STATE, last, PLANES);
  substitute(STATE);
  for (let b: usize = 0; b < 8; b++) {
    let given = v128.load(STATE + 16 * b);
    if (constant) {
      given = v128.shuffle<u8>(given, given, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12);
      const added = v128.splat<u8>(<u8>(0 - ((constant >> <u8>b) & 1)));
      given = v128.xor(given, v128.and(v128.splat<u32>(0xff), added));
    } else {  // every other one of AES-256
      given = v128.shuffle<u8>(given, given, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15);
    }
    let x = v128.load(before + 16 * b);
    x = v128.xor(x, v128.shuffle<u8>(zero, x, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27));
    x = v128.xor(x, v128.shuffle<u8>(zero, x, 0, 0, 0, 0, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23));
    v128.store(after + 16 * b, v128.xor(x, given));
  }
}

/** The round keys of eight keys of 16 bytes each, as planes. */
export function expandKeys(keys: usize, out: usize): void {
  memory.copy(out, keys, PLANES);
  turn(out);
  for (let round: usize = 0; round < 10; round++) {
    const before = out + round * PLANES;
    nextKey(before, before, before + PLANES, load<u8>(RCON + round));
  }
}

/** AES-256 of the zero block under one key: what GCM hashes with. */
export function zeroUnder(key: usize, out: usize): void {
  for (let half: usize = 0; half < 2; half++) {
    memory.fill(WIDE_KEYS + half * PLANES, 0, PLANES);
    memory.copy(WIDE_KEYS + half * PLANES, key + 16 * half, 16);
    turn(WIDE_KEYS + half * PLANES);
  }
  for (let i: usize = 2; i < 15; i++) {
    const after = WIDE_KEYS + i * PLANES;
    nextKey(after - 2 * PLANES, after - PLANES, after, i & 1 ? 0 : load<u8>(RCON + (i >> 1) - 1));
  }
  memory.fill(STATE, 0, PLANES);
  encryptPlanes(STATE, WIDE_KEYS, 14);
  turn(STATE);
  memory.copy(out, STATE, 16);
}

// @ts-ignore: decorator
@inline
function counterBlock(counter: u64): v128 {
  return v128.replace_lane<u64>(v128.splat<u64>(0), 1, bswap<u64>(counter));
}

/** Counter mode: `blocks` of each of eight streams from `counter` on, stream j at `out + j * stride`. */
export function streams(keys: usize, counter: u64, blocks: usize, out: usize, stride: usize): void {
  for (let block: usize = 0; block < blocks; block++) {
    const first = counterBlock(counter + block);
    for (let j: usize = 0; j < 8; j++) v128.store(STATE + 16 * j, first);
    encryptEight(STATE, keys);
    for (let j: usize = 0; j < 8; j++) v128.store(out + j * stride + 16 * block, v128.load(STATE + 16 * j));
  }
}

/** H of rows of 16 bytes, in place: pi(pi(x) + j) + pi(x). `count` is a multiple of 8. */
export function hashNarrow(keys: usize, rows: usize, count: usize, first: u64): void {
  for (let row: usize = 0; row < count; row += 8) {
    const at = rows + 16 * row;
    encryptEight(at, keys);
    finishHash(keys, at, first + row);
  }
}

/** H of rows of 32 bytes into 16 each: u = pi(x) + y, pi(u + j) + u. `count` is a multiple of 8. */
export function hashWide(keys: usize, rows: usize, count: usize, first: u64, out: usize): void {
  for (let row: usize = 0; row < count; row += 8) {
    const from = rows + 32 * row, at = out + 16 * row;
    for (let j: usize = 0; j < 8; j++) v128.store(at + 16 * j, v128.load(from + 32 * j));
    encryptEight(at, keys);
    for (let j: usize = 0; j < 8; j++) {
      v128.store(at + 16 * j, v128.xor(v128.load(at + 16 * j), v128.load(from + 32 * j, 16)));
    }
    finishHash(keys, at, first + row);
  }
}

function finishHash(keys: usize, at: usize, first: u64): void {
  for (let j: usize = 0; j < 8; j++) {
    const tweak = v128.replace_lane<u64>(v128.splat<u64>(0), 0, first + j);
    v128.store(STATE + 16 * j, v128.xor(v128.load(at + 16 * j), tweak));
  }
  encryptEight(STATE, keys);
  for (let j: usize = 0; j < PLANES; j += 16) v128.store(at + j, v128.xor(v128.load(at + j), v128.load(STATE + j)));
}
