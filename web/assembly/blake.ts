/** Uniform polynomials from seeds, bit for bit SEAL's: Blake2xb (Blake2X, 2016) in blocks of 4,096 bytes. */

import { Q } from "./ring";

const IV = memory.data<u64>([
  0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
  0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
]);
/** In which order the rounds of RFC 7693 take the words of a message; the first two again for rounds 10 and 11. */
const ORDER = memory.data<u8>([
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3,
  11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4, 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8,
  9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13, 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9,
  12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11, 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10,
  6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5, 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3,
]);
const LENGTH: u64 = 4096 << 32;
const ROOT = memory.data(64, 16);
const MESSAGE = memory.data(128, 16);
const MORE = memory.data(4096, 16);

// @ts-ignore: decorator
@inline
function said(order: usize, place: usize): u64 {
  return load<u64>(MESSAGE + (<usize>load<u8>(order + place) << 3));
}

/** F of RFC 7693: `state` and the message become the new state at `out`. */
function compress(state: usize, out: usize, counted: u64, last: bool): void {
  let v0 = load<u64>(state), v1 = load<u64>(state, 8), v2 = load<u64>(state, 16), v3 = load<u64>(state, 24);
  let v4 = load<u64>(state, 32), v5 = load<u64>(state, 40), v6 = load<u64>(state, 48), v7 = load<u64>(state, 56);
  let v8 = load<u64>(IV), v9 = load<u64>(IV, 8), va = load<u64>(IV, 16), vb = load<u64>(IV, 24);
  let vc = load<u64>(IV, 32) ^ counted, vd = load<u64>(IV, 40), ve = load<u64>(IV, 48), vf = load<u64>(IV, 56);
  if (last) ve = ~ve;
  for (let round: usize = 0; round < 12; round++) {
    const o = ORDER + 16 * round;
    v0 += v4 + said(o, 0), vc = rotr<u64>(vc ^ v0, 32), v8 += vc, v4 = rotr<u64>(v4 ^ v8, 24);
    v0 += v4 + said(o, 1), vc = rotr<u64>(vc ^ v0, 16), v8 += vc, v4 = rotr<u64>(v4 ^ v8, 63);
    v1 += v5 + said(o, 2), vd = rotr<u64>(vd ^ v1, 32), v9 += vd, v5 = rotr<u64>(v5 ^ v9, 24);
    v1 += v5 + said(o, 3), vd = rotr<u64>(vd ^ v1, 16), v9 += vd, v5 = rotr<u64>(v5 ^ v9, 63);
    v2 += v6 + said(o, 4), ve = rotr<u64>(ve ^ v2, 32), va += ve, v6 = rotr<u64>(v6 ^ va, 24);
    v2 += v6 + said(o, 5), ve = rotr<u64>(ve ^ v2, 16), va += ve, v6 = rotr<u64>(v6 ^ va, 63);
    v3 += v7 + said(o, 6), vf = rotr<u64>(vf ^ v3, 32), vb += vf, v7 = rotr<u64>(v7 ^ vb, 24);
    v3 += v7 + said(o, 7), vf = rotr<u64>(vf ^ v3, 16), vb += vf, v7 = rotr<u64>(v7 ^ vb, 63);
    v0 += v5 + said(o, 8), vf = rotr<u64>(vf ^ v0, 32), va += vf, v5 = rotr<u64>(v5 ^ va, 24);
    v0 += v5 + said(o, 9), vf = rotr<u64>(vf ^ v0, 16), va += vf, v5 = rotr<u64>(v5 ^ va, 63);
    v1 += v6 + said(o, 10), vc = rotr<u64>(vc ^ v1, 32), vb += vc, v6 = rotr<u64>(v6 ^ vb, 24);
    v1 += v6 + said(o, 11), vc = rotr<u64>(vc ^ v1, 16), vb += vc, v6 = rotr<u64>(v6 ^ vb, 63);
    v2 += v7 + said(o, 12), vd = rotr<u64>(vd ^ v2, 32), v8 += vd, v7 = rotr<u64>(v7 ^ v8, 24);
    v2 += v7 + said(o, 13), vd = rotr<u64>(vd ^ v2, 16), v8 += vd, v7 = rotr<u64>(v7 ^ v8, 63);
    v3 += v4 + said(o, 14), ve = rotr<u64>(ve ^ v3, 32), v9 += ve, v4 = rotr<u64>(v4 ^ v9, 24);
    v3 += v4 + said(o, 15), ve = rotr<u64>(ve ^ v3, 16), v9 += ve, v4 = rotr<u64>(v4 ^ v9, 63);
  }
  store<u64>(out, load<u64>(state) ^ v0 ^ v8);
  store<u64>(out, load<u64>(state, 8) ^ v1 ^ v9, 8);
  store<u64>(out, load<u64>(state, 16) ^ v2 ^ va, 16);
  store<u64>(out, load<u64>(state, 24) ^ v3 ^ vb, 24);
  store<u64>(out, load<u64>(state, 32) ^ v4 ^ vc, 32);
  store<u64>(out, load<u64>(state, 40) ^ v5 ^ vd, 40);
  store<u64>(out, load<u64>(state, 48) ^ v6 ^ ve, 48);
  store<u64>(out, load<u64>(state, 56) ^ v7 ^ vf, 56);
}

/** Block `counter` of the stream of a seed, 4,096 bytes. */
function streamBlock(seed: usize, counter: u64, out: usize): void {
  memory.copy(ROOT, IV, 64);
  store<u64>(ROOT, load<u64>(ROOT) ^ (64 | (64 << 8) | (1 << 16) | (1 << 24)));
  store<u64>(ROOT, load<u64>(ROOT, 8) ^ LENGTH, 8);
  memory.fill(MESSAGE, 0, 128);
  memory.copy(MESSAGE, seed, 64);
  compress(ROOT, ROOT, 128, false);
  memory.fill(MESSAGE, 0, 128);
  store<u64>(MESSAGE, counter);
  compress(ROOT, ROOT, 136, true);
  memory.copy(MESSAGE, ROOT, 64);
  for (let node: usize = 0; node < 64; node++) {
    const leaf = out + 64 * node;
    memory.copy(leaf, IV, 64);
    store<u64>(leaf, load<u64>(leaf) ^ (64 | (<u64>64 << 32)));
    store<u64>(leaf, load<u64>(leaf, 8) ^ (<u64>node | LENGTH), 8);
    store<u64>(leaf, load<u64>(leaf, 16) ^ (64 << 8), 16);
    compress(leaf, leaf, 64, true);
  }
}

/** 2,048 residues mod q from a seed of 64 bytes; a word that is too large is replaced by the next of later blocks. */
export function expandSeed(seed: usize, out: usize): void {
  const largest: u64 = u64.MAX_VALUE - (u64.MAX_VALUE % Q) - 1;
  for (let block: usize = 0; block < 4; block++) streamBlock(seed, block, out + 4096 * block);
  let more: usize = 512, block: u64 = 4;
  for (let at = out; at < out + 8 * 2048; at += 8) {
    let word = load<u64>(at);
    while (word >= largest) {
      if (more == 512) {
        streamBlock(seed, block++, MORE);
        more = 0;
      }
      word = load<u64>(MORE + 8 * more++);
    }
    store<u64>(at, word % Q);
  }
}
