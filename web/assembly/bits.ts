/** Matrices of bits: rows of columns, columns of choices, and the linear hash by which columns are checked. */

const SUM = memory.data(256 * 16, 16);

/** Columns of `rows / 8` bytes, one every `stride`, to rows of `columns / 8` bytes; `columns` is a multiple of 16. */
export function transpose(from: usize, stride: usize, columns: usize, rows: usize, out: usize): void {
  const width = columns >> 3;
  for (let column: usize = 0; column < columns; column += 16) {
    for (let byte: usize = 0; byte < rows >> 3; byte++) {
      const at = from + column * stride + byte;
      let x = v128.splat<u8>(0);
      x = v128.load_lane<u8>(at, x, 0);
      x = v128.load_lane<u8>(at + stride, x, 1);
      x = v128.load_lane<u8>(at + 2 * stride, x, 2);
      x = v128.load_lane<u8>(at + 3 * stride, x, 3);
      x = v128.load_lane<u8>(at + 4 * stride, x, 4);
      x = v128.load_lane<u8>(at + 5 * stride, x, 5);
      x = v128.load_lane<u8>(at + 6 * stride, x, 6);
      x = v128.load_lane<u8>(at + 7 * stride, x, 7);
      x = v128.load_lane<u8>(at + 8 * stride, x, 8);
      x = v128.load_lane<u8>(at + 9 * stride, x, 9);
      x = v128.load_lane<u8>(at + 10 * stride, x, 10);
      x = v128.load_lane<u8>(at + 11 * stride, x, 11);
      x = v128.load_lane<u8>(at + 12 * stride, x, 12);
      x = v128.load_lane<u8>(at + 13 * stride, x, 13);
      x = v128.load_lane<u8>(at + 14 * stride, x, 14);
      x = v128.load_lane<u8>(at + 15 * stride, x, 15);
      for (let bit: i32 = 7; bit >= 0; bit--) {
        store<u16>(out + (8 * byte + <usize>bit) * width + (column >> 3), <u16>v128.bitmask<u8>(x));
        x = v128.add<u8>(x, x);
      }
    }
  }
}

/** Bit b of `rows` choices of a byte each, as column b of `rows / 8` bytes. */
export function choiceColumns(choices: usize, rows: usize, bits: usize, out: usize): void {
  for (let row: usize = 0; row < rows; row += 16) {
    const x = v128.load(choices + row);
    for (let bit: usize = 0; bit < bits; bit++) {
      const high = v128.shl<u8>(x, 7 - <i32>bit);
      store<u16>(out + bit * (rows >> 3) + (row >> 3), <u16>v128.bitmask<u8>(high));
    }
  }
}

/**
 * What a receiver sends: both streams of every column, in place of the second, and the code's column. With 8 parts that
 * is the exclusive or of parts b where bit b of the column's number is 1; else the one part.
 */
export function codedColumns(own: usize, other: usize, part: usize, parts: usize, columns: usize, size: usize): void {
  for (let column: usize = 0; column < columns; column++) {
    const which: usize = parts == 1 ? 1 : column;
    for (let at: usize = 0; at < size; at += 16) {
      const place = column * size + at;
      let x = v128.xor(v128.load(own + place), v128.load(other + place));
      for (let b: usize = 0; b < parts; b++) {
        if ((which >> b) & 1) x = v128.xor(x, v128.load(part + b * size + at));
      }
      v128.store(other + place, x);
    }
  }
}

/** Add columns to others where a secret bit (bytes of 0 or 255) says so; nothing branches on it. */
export function addChosen(columns: usize, given: usize, secret: usize, count: usize, size: usize): void {
  for (let column: usize = 0; column < count; column++) {
    const mask = v128.splat<u8>(load<u8>(secret + column));
    for (let at: usize = column * size; at < (column + 1) * size; at += 16) {
      v128.store(columns + at, v128.xor(v128.load(columns + at), v128.and(v128.load(given + at), mask)));
    }
  }
}

/**
 * L of 128 columns at once, from their rows: of GHASH (NIST SP 800-38D) under `key`, the part that is linear.
 *
 * A column is a polynomial over GF(2^128), bit j % 128 of a block the coefficient of x^(8 (j / 8) + 7 - j % 8). The
 * rows of a block are thus the coefficients of all columns, and a product with the key, which is public, adds rows.
 * `rows` have `width` bytes, of which 16 from the first count. `out` has 128 rows of 16 bytes: bit j of every L.
 */
export function columnHashes(rows: usize, width: usize, blocks: usize, key: usize, out: usize): void {
  memory.fill(SUM, 0, 256 * 16);
  for (let block: usize = 0; block < blocks; block++) {
    for (let j: usize = 0; j < 128; j++) {
      const at = SUM + 16 * coefficient(j);
      v128.store(at, v128.xor(v128.load(at), v128.load(rows + (128 * block + j) * width)));
    }
    timesKey(key, out);
  }
  timesKey(key, out);
  for (let j: usize = 0; j < 128; j++) v128.store(out + 16 * j, v128.load(SUM + 16 * coefficient(j)));
}

// @ts-ignore: decorator
@inline
function coefficient(j: usize): usize {
  return j ^ 7;
}

/** SUM becomes SUM times the key, mod x^128 + x^7 + x^2 + x + 1; `aside` has room for 128 rows. */
function timesKey(key: usize, aside: usize): void {
  memory.copy(aside, SUM, 128 * 16);
  memory.fill(SUM, 0, 256 * 16);
  for (let i: usize = 0; i < 128; i++) {
    const j = coefficient(i);
    if (!((load<u8>(key + (j >> 3)) >> <u8>(j & 7)) & 1)) continue;
    for (let at: usize = 0; at < 128 * 16; at += 16) {
      const to = SUM + 16 * i + at;
      v128.store(to, v128.xor(v128.load(to), v128.load(aside + at)));
    }
  }
  for (let i: usize = 254; i >= 128; i--) {
    const high = v128.load(SUM + 16 * i), low = SUM + 16 * (i - 128);
    v128.store(low, v128.xor(v128.load(low), high));
    v128.store(low, v128.xor(v128.load(low, 16), high), 16);
    v128.store(low, v128.xor(v128.load(low, 32), high), 32);
    v128.store(low, v128.xor(v128.load(low, 112), high), 112);
  }
}
