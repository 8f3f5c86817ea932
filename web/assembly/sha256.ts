/** SHA-256 (FIPS 180-4) of whole blocks: by it both parties hash all columns, a megabyte a word. */

const CONSTANTS = memory.data<u32>([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
]);
const INITIAL = memory.data<u32>([0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]);
const SCHEDULE = memory.data(4 * 64, 16);

/** The state before anything is hashed, 32 bytes. */
export function beginHash(state: usize): void {
  memory.copy(state, INITIAL, 32);
}

// @ts-ignore: decorator
@inline
function added(i: usize, offset: usize): u32 {
  return load<u32>(CONSTANTS + i + offset) + load<u32>(SCHEDULE + i + offset);
}

/** A state becomes that after more blocks of 64 bytes. */
export function hashBlocks(state: usize, data: usize, blocks: usize): void {
  for (let block: usize = 0; block < blocks; block++) compress(state, data + 64 * block);
}

function compress(state: usize, block: usize): void {
  for (let i: usize = 0; i < 64; i += 4) store<u32>(SCHEDULE + i, bswap<u32>(load<u32>(block + i)));
  for (let at = SCHEDULE + 64; at < SCHEDULE + 256; at += 4) {
    const x = load<u32>(at - 60), y = load<u32>(at - 8);
    const low = rotr<u32>(x, 7) ^ rotr<u32>(x, 18) ^ (x >> 3), high = rotr<u32>(y, 17) ^ rotr<u32>(y, 19) ^ (y >> 10);
    store<u32>(at, load<u32>(at - 64) + low + load<u32>(at - 28) + high);
  }
  let a = load<u32>(state), b = load<u32>(state, 4), c = load<u32>(state, 8), d = load<u32>(state, 12);
  let e = load<u32>(state, 16), f = load<u32>(state, 20), g = load<u32>(state, 24), h = load<u32>(state, 28);
  for (let i: usize = 0; i < 256; i += 32) {
    h += (rotr<u32>(e, 6) ^ rotr<u32>(e, 11) ^ rotr<u32>(e, 25)) + (g ^ (e & (f ^ g))) + added(i, 0);
    d += h, h += (rotr<u32>(a, 2) ^ rotr<u32>(a, 13) ^ rotr<u32>(a, 22)) + ((a & b) | (c & (a | b)));
    g += (rotr<u32>(d, 6) ^ rotr<u32>(d, 11) ^ rotr<u32>(d, 25)) + (f ^ (d & (e ^ f))) + added(i, 4);
    c += g, g += (rotr<u32>(h, 2) ^ rotr<u32>(h, 13) ^ rotr<u32>(h, 22)) + ((h & a) | (b & (h | a)));
    f += (rotr<u32>(c, 6) ^ rotr<u32>(c, 11) ^ rotr<u32>(c, 25)) + (e ^ (c & (d ^ e))) + added(i, 8);
    b += f, f += (rotr<u32>(g, 2) ^ rotr<u32>(g, 13) ^ rotr<u32>(g, 22)) + ((g & h) | (a & (g | h)));
    e += (rotr<u32>(b, 6) ^ rotr<u32>(b, 11) ^ rotr<u32>(b, 25)) + (d ^ (b & (c ^ d))) + added(i, 12);
    a += e, e += (rotr<u32>(f, 2) ^ rotr<u32>(f, 13) ^ rotr<u32>(f, 22)) + ((f & g) | (h & (f | g)));
    d += (rotr<u32>(a, 6) ^ rotr<u32>(a, 11) ^ rotr<u32>(a, 25)) + (c ^ (a & (b ^ c))) + added(i, 16);
    h += d, d += (rotr<u32>(e, 2) ^ rotr<u32>(e, 13) ^ rotr<u32>(e, 22)) + ((e & f) | (g & (e | f)));
    c += (rotr<u32>(h, 6) ^ rotr<u32>(h, 11) ^ rotr<u32>(h, 25)) + (b ^ (h & (a ^ b))) + added(i, 20);
    g += c, c += (rotr<u32>(d, 2) ^ rotr<u32>(d, 13) ^ rotr<u32>(d, 22)) + ((d & e) | (f & (d | e)));
    b += (rotr<u32>(g, 6) ^ rotr<u32>(g, 11) ^ rotr<u32>(g, 25)) + (a ^ (g & (h ^ a))) + added(i, 24);
    f += b, b += (rotr<u32>(c, 2) ^ rotr<u32>(c, 13) ^ rotr<u32>(c, 22)) + ((c & d) | (e & (c | d)));
    a += (rotr<u32>(f, 6) ^ rotr<u32>(f, 11) ^ rotr<u32>(f, 25)) + (h ^ (f & (g ^ h))) + added(i, 28);
    e += a, a += (rotr<u32>(b, 2) ^ rotr<u32>(b, 13) ^ rotr<u32>(b, 22)) + ((b & c) | (d & (b | c)));
  }
  store<u32>(state, load<u32>(state) + a), store<u32>(state, load<u32>(state, 4) + b, 4);
  store<u32>(state, load<u32>(state, 8) + c, 8), store<u32>(state, load<u32>(state, 12) + d, 12);
  store<u32>(state, load<u32>(state, 16) + e, 16), store<u32>(state, load<u32>(state, 20) + f, 20);
  store<u32>(state, load<u32>(state, 24) + g, 24), store<u32>(state, load<u32>(state, 28) + h, 28);
}
