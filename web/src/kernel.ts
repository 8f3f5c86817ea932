/** The WebAssembly module, and its memory: what is put there is gone with the client. */

import binary from "../build/ring.wasm";

/** What `assembly/` exports; addresses and counts are numbers, tweaks and counters big ones. */
export interface Exports {
  memory: WebAssembly.Memory;
  begin(): void;
  forward(x: number): void;
  inverse(x: number): void;
  expandSeed(seed: number, out: number): void;
  makeSecret(ternary: number, secret: number): void;
  makeErrors(random: number, errors: number): void;
  makeKey(seed: number, secret: number, errors: number, out: number): void;
  encryptZero(seed: number, secret: number, errors: number, out: number): void;
  addMessage(zero: number, message: number, out: number): void;
  openReply(kept: number, count: number, second: number, secret: number, first: number, step: number): void;
  fromWord(word: number): bigint;
  toWord(c: bigint): number;
  beginHash(state: number): void;
  hashBlocks(state: number, data: number, blocks: number): void;
  expandKeys(keys: number, out: number): void;
  encryptEight(at: number, keys: number): void;
  zeroUnder(key: number, out: number): void;
  streams(keys: number, counter: bigint, blocks: number, out: number, stride: number): void;
  hashNarrow(keys: number, rows: number, count: number, first: bigint): void;
  hashWide(keys: number, rows: number, count: number, first: bigint, out: number): void;
  transpose(from: number, stride: number, columns: number, rows: number, out: number): void;
  choiceColumns(choices: number, rows: number, bits: number, out: number): void;
  codedColumns(own: number, other: number, part: number, parts: number, columns: number, size: number): void;
  addChosen(columns: number, given: number, secret: number, count: number, size: number): void;
  columnHashes(rows: number, width: number, blocks: number, key: number, out: number): void;
  pointTimes(point: number, scalar: number, out: number): void;
  basePointTimes(scalar: number, out: number): void;
  addPoints(one: number, other: number, out: number): void;
  beginPoints(): void;
  fromUniform(bytes: number, out: number): void;
  isValidPoint(point: number): number;
  heap(): number;
}

const PAGE = 65536;

export class Kernel {
  private top: number;

  private constructor(readonly run: Exports) {
    this.top = run.heap();
    run.begin();
    run.beginPoints();
  }

  static async load(): Promise<Kernel> {
    const { instance } = await WebAssembly.instantiate(binary as Uint8Array<ArrayBuffer>, {});
    return new Kernel(instance.exports as unknown as Exports);
  }

  /** All bytes, until more is taken. */
  get bytes(): Uint8Array {
    return new Uint8Array(this.run.memory.buffer);
  }

  /** A copy of some. */
  read(at: number, size: number): Uint8Array {
    return this.bytes.slice(at, at + size);
  }

  write(at: number, bytes: Uint8Array): void {
    this.bytes.set(bytes, at);
  }

  /** Room for good, as long as the client lives. */
  take(size: number): number {
    const at = (this.top + 15) & ~15;
    this.top = at + size;
    const lacking = this.top - this.run.memory.buffer.byteLength;
    if (lacking > 0) this.run.memory.grow(Math.ceil(lacking / PAGE));
    return at;
  }

  /** Room for bytes that are put there. */
  put(bytes: Uint8Array): number {
    const at = this.take(bytes.length);
    this.write(at, bytes);
    return at;
  }

  /** Use room in `work` that is free, and zero, again afterwards. */
  aside<T>(work: () => T): T {
    const before = this.top;
    try {
      return work();
    } finally {
      this.bytes.fill(0, before, this.top);
      this.top = before;
    }
  }
}
