/** Transfers by the thousand from a few keys (Ishai et al. 2003, Kolesnikov and Kumaresan 2013), checked. */

import { sha256 } from "@noble/hashes/sha2.js";
import { ascii, joined, same } from "./bytes.ts";
import { ProtocolError } from "./errors.ts";
import type { Kernel } from "./kernel.ts";
import { drawn, type Random } from "./random.ts";
import { RunningHash } from "./running_hash.ts";
import type { Channel } from "./wire.ts";

const PORTION = 65536;
const CHECK_ROWS = 128;
const ROUND_KEYS = 11 * 8 * 16; // bytes of eight keys in `assembly/aes.ts`

/** Streams of bits, one a column: AES-128 in counter mode, read on from where it was left. */
class Streams {
  private readonly keys: number;
  private readonly count: number;
  private counter = 0n;

  constructor(private readonly kernel: Kernel, keys: Uint8Array[]) {
    this.count = keys.length;
    this.keys = kernel.take((keys.length / 8) * ROUND_KEYS);
    kernel.aside(() => {
      const plain = kernel.put(joined(...keys));
      for (let at = 0; at < keys.length; at += 8) kernel.run.expandKeys(plain + 16 * at, this.keys + (at / 8) * ROUND_KEYS);
    });
  }

  /** The next `rows` bits of every column, one after the other, at `out`. */
  read(rows: number, out: number): void {
    const size = rows / 8;
    for (let at = 0; at < this.count; at += 8) {
      this.kernel.run.streams(this.keys + (at / 8) * ROUND_KEYS, this.counter, size / 16, out + at * size, size);
    }
    this.counter += BigInt(size / 16);
  }
}

/** H of rows, which turns them into random values: of 16 or 32 bytes, under a public key. */
export class BlockHash {
  private readonly keys: number;

  constructor(private readonly kernel: Kernel, key: Uint8Array) {
    this.keys = kernel.take(ROUND_KEYS);
    kernel.aside(() => kernel.run.expandKeys(kernel.put(joined(...Array<Uint8Array>(8).fill(key))), this.keys));
  }

  /** 16 bytes each, from rows of `width` bytes; `first` is the number of the first transfer. */
  of(rows: Uint8Array, width: 16 | 32, first: number): Uint8Array {
    return this.kernel.aside(() => {
      const count = rows.length / width;
      const whole = 8 * Math.ceil(count / 8);
      const at = this.kernel.take(whole * width);
      this.kernel.write(at, rows);
      if (width === 16) {
        this.kernel.run.hashNarrow(this.keys, at, whole, BigInt(first));
        return this.kernel.read(at, 16 * count);
      }
      const out = this.kernel.take(16 * whole);
      this.kernel.run.hashWide(this.keys, at, whole, BigInt(first), out);
      return this.kernel.read(out, 16 * count);
    });
  }
}

/** What both ends of a direction hold: how far they are, and the hash of what was said. */
abstract class End {
  done = 0;
  readonly hash: BlockHash;
  protected readonly running: RunningHash;

  constructor(protected readonly kernel: Kernel, key: Uint8Array, label: Uint8Array) {
    this.hash = new BlockHash(kernel, key);
    this.running = new RunningHash(kernel).update(ascii("ppspeech transfers")).update(label);
  }

  /** SHA-256 of all columns so far. */
  get said(): Uint8Array {
    return this.running.digest();
  }

  /** L at the challenge, of columns given as rows of `width` bytes, 16 of which count: 16 bytes for each of 128. */
  protected hashes(key: number, rows: number, width: number, count: number): Uint8Array {
    return this.kernel.aside(() => {
      const found = this.kernel.take(128 * 16);
      const turned = this.kernel.take(128 * 16);
      this.kernel.run.columnHashes(rows, width, count / 128, key, found);
      this.kernel.run.transpose(found, 16, 128, 128, turned);
      return this.kernel.read(turned, 128 * 16);
    });
  }

  /** The key that columns are hashed with: of the challenge, all of which is public. */
  protected hashKey(): number {
    const at = this.kernel.take(16);
    this.kernel.run.zeroUnder(this.kernel.put(this.said), at);
    return at;
  }
}

/** Chooses: one bit each with 128 columns, eight with 256. */
export class Receiver extends End {
  private readonly streams: [Streams, Streams];
  private readonly columns: number;

  constructor(kernel: Kernel, pairs: [Uint8Array, Uint8Array][], key: Uint8Array, label: Uint8Array) {
    super(kernel, key, label);
    this.columns = pairs.length;
    this.streams = [0, 1].map((side) => new Streams(kernel, pairs.map((pair) => pair[side]!))) as [Streams, Streams];
  }

  /** Rows of 16 or 32 bytes, one a choice; columns are sent. */
  rows(channel: Channel, choices: Uint8Array, kind: number, random: Random): Uint8Array {
    const width = this.columns / 8;
    const rows = new Uint8Array(choices.length * width);
    for (let at = 0; at < choices.length; at += PORTION) {
      const part = choices.subarray(at, at + PORTION);
      const { message, own } = this.portion(part, drawn(random, padded(part.length) - part.length));
      channel.send(kind, message);
      rows.set(own, at * width);
    }
    this.done += choices.length;
    return rows;
  }

  private portion(choices: Uint8Array, blind: Uint8Array): { message: Uint8Array; own: Uint8Array } {
    const { kernel, columns } = this;
    const rows = choices.length + blind.length;
    const [size, width, parts] = [rows / 8, columns / 8, columns === 256 ? 8 : 1];
    return kernel.aside(() => {
      const own = kernel.take(columns * size);
      const other = kernel.take(columns * size);
      this.streams[0].read(rows, own);
      this.streams[1].read(rows, other);
      const chosen = kernel.put(joined(choices, blind));
      const part = kernel.take(parts * size);
      kernel.run.choiceColumns(chosen, rows, parts, part);
      kernel.run.codedColumns(own, other, part, parts, columns, size);
      const sent = kernel.read(other, columns * size);
      this.running.update(sent);

      const key = this.hashKey();
      const turned = kernel.take(rows * width);
      kernel.run.transpose(own, size, columns, rows, turned);
      const wide = kernel.take(16 * rows); // choices as rows of 16 bytes
      const bits = parts === 8 ? 255 : 1;
      const all = kernel.bytes;
      for (let row = 0; row < rows; row++) all[wide + 16 * row] = all[chosen + row]! & bits;
      const shown = this.hashes(key, wide, 16, rows).subarray(0, 16 * parts);
      const owned = Array.from({ length: width / 16 }, (_, i) => this.hashes(key, turned + 16 * i, width, rows));
      return { message: joined(sent, shown, digest(joined(...owned))), own: kernel.read(turned, choices.length * width) };
    });
  }
}

/** Knows both messages of 1-of-2 transfers. `secret`: a bit a column; `keys`: the ones it names. */
export class Sender extends End {
  private readonly streams: Streams;
  /** The secret as a row. */
  readonly delta = new Uint8Array(16);

  constructor(kernel: Kernel, private readonly secret: Uint8Array, keys: Uint8Array[], key: Uint8Array, label: Uint8Array) {
    super(kernel, key, label);
    this.streams = new Streams(kernel, keys);
    for (let i = 0; i < 128; i++) this.delta[i >> 3]! |= secret[i]! << (i & 7);
  }

  /** Rows of 16 bytes of `count` transfers; columns are received. A server that cheats in them is refused. */
  async rows(channel: Channel, count: number, kind: number): Promise<Uint8Array> {
    const rows = new Uint8Array(16 * count);
    for (let at = 0; at < count; at += PORTION) {
      const part = Math.min(PORTION, count - at);
      const message = await channel.receive(kind, { exactly: 16 * padded(part) + 16 + 32 });
      rows.set(this.portion(message, part), 16 * at);
    }
    this.done += count;
    return rows;
  }

  private portion(message: Uint8Array, count: number): Uint8Array {
    const { kernel } = this;
    const rows = padded(count);
    const size = rows / 8;
    const given = message.subarray(0, 128 * size);
    this.running.update(given);
    return kernel.aside(() => {
      const own = kernel.take(128 * size);
      this.streams.read(rows, own);
      const masks = kernel.put(this.secret.map((bit) => -bit));
      kernel.run.addChosen(own, kernel.put(given), masks, 128, size);
      const turned = kernel.take(16 * rows);
      kernel.run.transpose(own, size, 128, rows, turned);
      const found = this.hashes(this.hashKey(), turned, 16, rows);
      const shown = message.subarray(128 * size, 128 * size + 16);
      for (let i = 0; i < 128; i++) {
        for (let b = 0; b < 16; b++) found[16 * i + b]! ^= shown[b]! & -this.secret[i]!;
      }
      if (!same(digest(found), message.subarray(128 * size + 16))) {
        throw new ProtocolError("the server's columns do not agree: it cheats");
      }
      return kernel.read(turned, 16 * count);
    });
  }
}

/** Rows of a portion: those beyond its transfers blind the check. */
function padded(count: number): number {
  return 128 * Math.ceil(count / 128) + CHECK_ROWS;
}

function digest(hashes: Uint8Array): Uint8Array {
  return sha256(joined(ascii("ppspeech columns"), hashes));
}

/** Rows of 16 bytes, each with the same row added. */
export function plus(rows: Uint8Array, row: Uint8Array): Uint8Array {
  const out = new Uint8Array(rows.length);
  for (let i = 0; i < rows.length; i++) out[i] = rows[i]! ^ row[i & 15]!;
  return out;
}
