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

/** Residues, and what rides with them. */
export type Loaded = { residues: Uint32Array; loads: Uint32Array };

export interface Engine {
  /** The entries of tables that the server offers, one list a group, in one round. */
  ask(groups: Group[]): Promise<Numbers[]>;
  /** Shares mod 2^k of bits times residues and, by exclusive or, of bits times loads of `width` bits; k + width < 64. */
  times(bits: ArrayLike<number>, residues: Uint32Array, k: number, loads?: Uint32Array, width?: number): Promise<Loaded>;
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

  async times({ length }: ArrayLike<number>, _: Uint32Array, k: number, __?: Uint32Array, width = 0): Promise<Loaded> {
    this.cost.products += length;
    this.count(length * productSize(k + width), length * productSize(k + width));
    return { residues: new Uint32Array(length), loads: new Uint32Array(length) };
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
/** Of products: choices, the 64 bits that they gave, and those for choice 0 and 1 the other way. */
export type Products = { choices: Uint8Array; got: Numbers; zero: Numbers; one: Numbers; used: number };

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

  async times(bits: ArrayLike<number>, residues: Uint32Array, k: number, loads = new Uint32Array(bits.length), width = 0): Promise<Loaded> {
    const [{ choices, got, zero, one }, first] = [this.products, this.products.used];
    if (first + bits.length > choices.length) throw new ProtocolError("more products are needed than were prepared");
    this.products.used += bits.length;
    const [size, ring, loaded] = [productSize(k + width), mask(k), mask(width)];
    const message = new Uint8Array(bits.length * size);
    for (let n = 0, i = first; n < bits.length; n++, i++) {
      const choice = choices[i]!;
      const turned = (residues[n]! ^ -choice) + choice; // -v where the choice is 1
      const sent = (turned - one.low[i]! + zero.low[i]!) & ring;
      write(message, n * size, size, sent, (loads[n]! ^ above(one, i, k) ^ above(zero, i, k)) & loaded, k);
      message[n * size + ((k + width) >> 3)]! |= (bits[n]! ^ choice) << ((k + width) & 7);
    }
    const other = await this.channel.receive(PRODUCT, { exactly: message.length });
    this.channel.send(PRODUCT, message);
    const found = { residues: new Uint32Array(bits.length), loads: new Uint32Array(bits.length) };
    const theirs = { low: new Uint32Array(1), high: new Uint32Array(1) };
    for (let n = 0, i = first; n < bits.length; n++, i++) {
      const choice = choices[i]!;
      read(other, n * size, size, theirs);
      const product = got.low[i]! - zero.low[i]! + (-choice & (residues[n]! + theirs.low[0]!));
      const load = above(got, i, k) ^ above(zero, i, k) ^ (-choice & (loads[n]! ^ above(theirs, 0, k)));
      const flipped = bits[n]! ^ choice ^ ((other[n * size + ((k + width) >> 3)]! >> ((k + width) & 7)) & 1);
      found.residues[n] = ((product ^ -flipped) + flipped + (-flipped & residues[n]!)) & ring; // v - p where it is flipped
      found.loads[n] = (load ^ (-flipped & loads[n]!)) & loaded;
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

/** Bytes of a product's residue and load of so many bits, and its bit. */
function productSize(bits: number): number {
  return Math.ceil((bits + 1) / 8);
}

/** The 32 bits above the lowest k of one of numbers of 64. */
function above({ low, high }: Numbers, i: number, k: number): number {
  return k === 32 ? high[i]! : (low[i]! >>> k) | (high[i]! << (32 - k));
}

/** A residue of k bits, and above it a load of up to 32. */
function write(out: Uint8Array, at: number, size: number, residue: number, load: number, k: number): void {
  const low = k === 32 ? residue : residue | (load << k);
  const high = k === 32 ? load : load >>> (32 - k);
  for (let b = 0; b < size; b++) out[at + b] = b < 4 ? low >>> (8 * b) : high >>> (8 * (b - 4));
}

/** One number of up to 64 bits. */
function read(data: Uint8Array, at: number, size: number, out: Numbers): void {
  out.low[0] = out.high[0] = 0;
  for (let b = 0; b < size; b++) (b < 4 ? out.low : out.high)[0]! |= data[at + b]! << (8 * (b & 3));
}

/** Offline: what a cost says, by transfers of the meeting; the client's messages first. */
export async function prepare(channel: Channel, flights: Channel, setup: Setup, cost: Cost, random: Random): Promise<ShareEngine> {
  const tables = new Map<string, Asked>();
  const shapes = [...cost.tables].map(([shape, count]) => [...shape.split(",").map(Number), count] as [number, number, number]);
  shapes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const total = shapes.reduce((sum, [, , count]) => sum + count, 0);
  if (total) askTables(channel, setup, shapes, total, tables, random);
  const choices = drawn(random, cost.products).map((byte) => byte & 1);
  const none = { low: new Uint32Array(0), high: new Uint32Array(0) };
  const products: Products = { choices, got: none, zero: none, one: none, used: 0 };
  if (cost.products) {
    const { forth, back } = setup;
    const numbers: [number, number] = [forth.done, back.done];
    products.got = residuesOf(forth.hash.of(forth.rows(channel, choices, COLUMNS, random), 16, numbers[0]));
    const rows = await back.rows(channel, cost.products, COLUMNS);
    products.zero = residuesOf(back.hash.of(rows, 16, numbers[1]));
    products.one = residuesOf(back.hash.of(plus(rows, back.delta), 16, numbers[1]));
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

/** The lowest 64 bits of every block of 16 bytes. */
function residuesOf(blocks: Uint8Array): Numbers {
  const words = new Uint32Array(blocks.buffer);
  const part = (from: number) => Uint32Array.from({ length: words.length / 4 }, (_, i) => words[4 * i + from]!);
  return { low: part(0), high: part(1) };
}
