/**
 * Operations on shares, as the second party. Correlations are prepared, and each is used once, in order.
 *
 * A Recorder runs the same program on nothing, every answer zero, and counts what must be prepared.
 */

import { ProtocolError } from "./errors.ts";
import { plus } from "./extension.ts";
import { ASK, CODE_COLUMNS, COLUMNS, OPEN, PRODUCT, TABLES } from "./kinds.ts";
import { highAt, lowAt, mask, type Numbers, pack, packedSize } from "./packing.ts";
import { drawn, type Random } from "./random.ts";
import type { Setup } from "./setup.ts";
import type { Channel } from "./wire.ts";

const IN_FLIGHT = 5; // bytes before each message

/** Tables of `2^bits` entries of `width` bits, and the indices to look up in them, each in one. */
export type Group = { bits: number; width: number; indices: ArrayLike<number> };

/** What a program takes: tables by `bits,width`, products, and the bytes that travel meanwhile. */
export type Cost = { tables: Map<string, number>; products: number; bytesUp: number; bytesDown: number };

export interface Engine {
  /** The entries of tables that the server offers, one list a group, in one round. */
  ask(groups: Group[]): Promise<Numbers[]>;
  /** Shares mod 2^k of bits times residues. */
  times(bits: ArrayLike<number>, residues: Uint32Array, k: number): Promise<Uint32Array>;
  /** The server's shares, of `k` bits, of what is opened to us. */
  opened(count: number, k: number): Promise<Numbers>;
  /** Our shares, of `k` bits, of what is opened to the server. */
  tell(shares: ArrayLike<number>, k: number): void;
}

export class Recorder implements Engine {
  readonly cost: Cost = { tables: new Map(), products: 0, bytesUp: 0, bytesDown: 0 };

  async ask(groups: Group[]): Promise<Numbers[]> {
    this.count(0, 0);
    return groups.map(({ bits, width, indices: { length } }) => {
      const shape = `${bits},${width}`;
      this.cost.tables.set(shape, (this.cost.tables.get(shape) ?? 0) + length);
      this.cost.bytesUp += packedSize(length, bits);
      this.cost.bytesDown += packedSize(length << bits, width);
      return { low: new Uint32Array(length), high: new Uint32Array(length) };
    });
  }

  async times(bits: ArrayLike<number>, _: Uint32Array, k: number): Promise<Uint32Array> {
    this.cost.products += bits.length;
    this.count(bits.length * productSize(k), bits.length * productSize(k));
    return new Uint32Array(bits.length);
  }

  async opened(count: number, k: number): Promise<Numbers> {
    this.cost.bytesDown += packedSize(count, k);
    this.cost.bytesDown += IN_FLIGHT;
    return { low: new Uint32Array(count), high: new Uint32Array(count) };
  }

  tell({ length }: ArrayLike<number>, k: number): void {
    this.cost.bytesUp += IN_FLIGHT + packedSize(length, k);
  }

  private count(up: number, down: number): void {
    this.cost.bytesUp += IN_FLIGHT + up;
    this.cost.bytesDown += IN_FLIGHT + down;
  }
}

/** The client's halves of tables of one shape: random choices and the pads that they open. */
export type Asked = { choices: Uint8Array; pads: Numbers; used: number };
/** Of products: choices, the residues that they gave, those for choice 0 the other way, and the step to choice 1. */
export type Products = { choices: Uint8Array; got: Uint32Array; zero: Uint32Array; step: Uint32Array; used: number };

export class ShareEngine implements Engine {
  constructor(private readonly channel: Channel, private readonly tables: Map<string, Asked>, private readonly products: Products) {}

  async ask(groups: Group[]): Promise<Numbers[]> {
    const taken = groups.map((group) => this.take(group));
    const parts = groups.map(({ bits, indices }, i) => pack(added(indices, taken[i]!.choices), bits));
    const message = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    parts.reduce((at, part) => (message.set(part, at), at + part.length), 0);
    this.channel.send(ASK, message);
    const sizes = groups.map(({ bits, width, indices }) => packedSize(indices.length << bits, width));
    const reply = await this.channel.receive(TABLES, { exactly: sizes.reduce((sum, size) => sum + size, 0) });
    let at = 0;
    return groups.map((group, i) => {
      const part = reply.subarray(at, at + sizes[i]!);
      at += sizes[i]!;
      return entries(group, part, taken[i]!.pads);
    });
  }

  async times(bits: ArrayLike<number>, residues: Uint32Array, k: number): Promise<Uint32Array> {
    const own = this.products;
    const first = own.used;
    if (first + bits.length > own.choices.length) throw new ProtocolError("more products are needed than were prepared");
    own.used += bits.length;
    const size = productSize(k);
    const message = new Uint8Array(bits.length * size);
    const ring = mask(k);
    for (let n = 0, at = 0; n < bits.length; n++, at += size) {
      const choice = own.choices[first + n]!;
      const sent = ((residues[n]! ^ -choice) + choice - own.step[first + n]!) & ring; // -v where the choice is 1
      for (let b = 0; b < Math.min(size, 4); b++) message[at + b] = sent >>> (8 * b);
      message[at + (k >> 3)]! |= (bits[n]! ^ choice) << (k & 7);
    }
    const other = await this.channel.receive(PRODUCT, { exactly: message.length });
    this.channel.send(PRODUCT, message);
    const found = new Uint32Array(bits.length);
    for (let n = 0, at = 0; n < bits.length; n++, at += size) {
      const choice = own.choices[first + n]!;
      let theirs = 0;
      for (let b = Math.min(size, 4) - 1; b >= 0; b--) theirs = (theirs << 8) | other[at + b]!;
      const product = own.got[first + n]! - own.zero[first + n]! + (-choice & (residues[n]! + theirs));
      const flipped = bits[n]! ^ choice ^ ((other[at + (k >> 3)]! >> (k & 7)) & 1);
      found[n] = ((product ^ -flipped) + flipped + (-flipped & residues[n]!)) & ring; // v - p where it is flipped
    }
    return found;
  }

  async opened(count: number, k: number): Promise<Numbers> {
    const given = await this.channel.receive(OPEN, { exactly: packedSize(count, k) });
    const place = Array.from({ length: count }, (_, i) => i);
    return {
      low: Uint32Array.from(place, (i) => lowAt(given, i, k)), high: Uint32Array.from(place, (i) => highAt(given, i, k)),
    };
  }

  tell(shares: ArrayLike<number>, k: number): void {
    this.channel.send(OPEN, pack(shares, k));
  }

  private take({ bits, width, indices: { length } }: Group): { choices: Uint8Array; pads: Numbers } {
    const tables = this.tables.get(`${bits},${width}`);
    if (tables === undefined || tables.used + length > tables.choices.length) {
      throw new ProtocolError(`more tables of ${bits} bits and width ${width} are needed than were prepared`);
    }
    const [from, to] = [tables.used, (tables.used += length)];
    const { low, high } = tables.pads;
    return { choices: tables.choices.subarray(from, to), pads: { low: low.subarray(from, to), high: high.subarray(from, to) } };
  }
}

function added(indices: ArrayLike<number>, choices: Uint8Array): Uint8Array {
  return choices.map((choice, i) => choice ^ indices[i]!);
}

function entries({ bits, width, indices }: Group, part: Uint8Array, pads: Numbers): Numbers {
  const low = new Uint32Array(indices.length);
  const high = new Uint32Array(indices.length);
  for (let j = 0; j < indices.length; j++) {
    const place = (j << bits) + indices[j]!;
    low[j] = lowAt(part, place, width) ^ pads.low[j]!;
    if (width > 32) high[j] = highAt(part, place, width) ^ pads.high[j]!;
  }
  return { low, high };
}

function productSize(k: number): number {
  return Math.ceil((k + 1) / 8);
}

/** Offline: what a cost says, by transfers of the meeting; the client's messages first. */
export async function prepare(channel: Channel, flights: Channel, setup: Setup, cost: Cost, random: Random): Promise<ShareEngine> {
  const tables = new Map<string, Asked>();
  const shapes = [...cost.tables].map(([shape, count]) => [...shape.split(",").map(Number), count] as [number, number, number]);
  shapes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const total = shapes.reduce((sum, [, , count]) => sum + count, 0);
  if (total) askTables(channel, setup, shapes, total, tables, random);
  const choices = drawn(random, cost.products).map((byte) => byte & 1);
  const products: Products = { choices, got: new Uint32Array(0), zero: new Uint32Array(0), step: new Uint32Array(0), used: 0 };
  if (cost.products) {
    const { forth, back } = setup;
    const numbers: [number, number] = [forth.done, back.done];
    products.got = lows(forth.hash.of(forth.rows(channel, choices, COLUMNS, random), 16, numbers[0]));
    const rows = await back.rows(channel, cost.products, COLUMNS);
    products.zero = lows(back.hash.of(rows, 16, numbers[1]));
    const ones = lows(back.hash.of(plus(rows, back.delta), 16, numbers[1]));
    products.step = ones.map((one, i) => one - products.zero[i]!);
  }
  return new ShareEngine(flights, tables, products);
}

function askTables(
  channel: Channel, setup: Setup, shapes: [number, number, number][], total: number, tables: Map<string, Asked>, random: Random,
): void {
  const choices = drawn(random, total);
  let at = 0;
  for (const [bits, , count] of shapes) {
    for (const end = at + count; at < end; at++) choices[at]! &= (1 << bits) - 1;
  }
  const first = setup.code.done;
  const hashed = setup.code.hash.of(setup.code.rows(channel, choices, CODE_COLUMNS, random), 32, first);
  const words = new Uint32Array(hashed.buffer);
  at = 0;
  for (const [bits, width, count] of shapes) {
    const low = new Uint32Array(count);
    const high = new Uint32Array(count);
    const [lower, upper] = [mask(width), width > 32 ? mask(width - 32) : 0];
    for (let i = 0; i < count; i++) {
      low[i] = words[4 * (at + i)]! & lower;
      high[i] = words[4 * (at + i) + 1]! & upper;
    }
    tables.set(`${bits},${width}`, { choices: choices.subarray(at, at + count), pads: { low, high }, used: 0 });
    at += count;
  }
}

/** The lowest 32 bits of every block of 16 bytes: shares have no more. */
function lows(blocks: Uint8Array): Uint32Array {
  const words = new Uint32Array(blocks.buffer);
  const out = new Uint32Array(words.length / 4);
  for (let i = 0; i < out.length; i++) out[i] = words[4 * i]!;
  return out;
}
