/**
 * Small numbers as bytes, lowest bits first: up to 8 bits in one stream of bits, wider ones in whole bytes each.
 *
 * A number of up to 64 bits is held as its low and its high 32 bits.
 */

export type Numbers = { low: Uint32Array; high: Uint32Array };

export function packedSize(count: number, width: number): number {
  return width <= 8 ? Math.ceil((count * width) / 8) : count * Math.ceil(width / 8);
}

/** Numbers of up to 32 bits, packed; `width` up to 32. */
export function pack(numbers: ArrayLike<number>, width: number): Uint8Array {
  const out = new Uint8Array(packedSize(numbers.length, width));
  if (width > 8) {
    const size = Math.ceil(width / 8);
    for (let i = 0; i < numbers.length; i++) {
      for (let b = 0; b < size; b++) out[i * size + b] = numbers[i]! >>> (8 * b);
    }
    return out;
  }
  for (let i = 0, at = 0; i < numbers.length; i++, at += width) {
    const both = numbers[i]! << (at & 7);
    out[at >> 3]! |= both;
    if ((at & 7) + width > 8) out[(at >> 3) + 1]! |= both >> 8;
  }
  return out;
}

/** The low 32 bits of one of packed numbers. */
export function lowAt(data: Uint8Array, place: number, width: number): number {
  if (width <= 8) {
    const at = place * width;
    const both = data[at >> 3]! | ((data[(at >> 3) + 1] ?? 0) << 8);
    return (both >> (at & 7)) & ((1 << width) - 1);
  }
  const size = Math.ceil(width / 8);
  let found = 0;
  for (let b = Math.min(size, 4) - 1; b >= 0; b--) found = (found << 8) | data[place * size + b]!;
  return (found & mask(width)) >>> 0;
}

/** The bits of one of packed numbers above the lowest 32. */
export function highAt(data: Uint8Array, place: number, width: number): number {
  if (width <= 32) return 0;
  const size = Math.ceil(width / 8);
  let found = 0;
  for (let b = size - 1; b >= 4; b--) found = (found << 8) | data[place * size + b]!;
  return (found & mask(width - 32)) >>> 0;
}

/** The lowest `bits` of 32, as ones. */
export function mask(bits: number): number {
  return bits >= 32 ? 0xffffffff : (1 << bits) - 1;
}
