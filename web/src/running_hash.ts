/** A SHA-256 that goes on: of what was said so far, and of what is said next. */

import type { Kernel } from "./kernel.ts";

export class RunningHash {
  private readonly state: number;
  private rest = new Uint8Array(64);
  private length = 0;

  constructor(private readonly kernel: Kernel) {
    this.state = kernel.take(32);
    kernel.run.beginHash(this.state);
  }

  update(bytes: Uint8Array): this {
    const held = this.length % 64;
    this.length += bytes.length;
    const first = Math.min(bytes.length, 64 - held);
    this.rest.set(bytes.subarray(0, first), held);
    if (held + first < 64) return this;
    const whole = (bytes.length - first) & ~63;
    this.kernel.aside(() => {
      this.kernel.run.hashBlocks(this.state, this.kernel.put(this.rest), 1);
      this.kernel.run.hashBlocks(this.state, this.kernel.put(bytes.subarray(first, first + whole)), whole / 64);
    });
    this.rest.set(bytes.subarray(first + whole));
    return this;
  }

  /** Of all so far; more may follow. */
  digest(): Uint8Array {
    const held = this.length % 64;
    const end = new Uint8Array(held < 56 ? 64 : 128);
    end.set(this.rest.subarray(0, held));
    end[held] = 0x80;
    new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(8 * this.length));
    return this.kernel.aside(() => {
      const state = this.kernel.put(this.kernel.read(this.state, 32));
      this.kernel.run.hashBlocks(state, this.kernel.put(end), end.length / 64);
      const words = new DataView(this.kernel.read(state, 32).buffer);
      const out = new DataView(new ArrayBuffer(32));
      for (let i = 0; i < 32; i += 4) out.setUint32(i, words.getUint32(i, true));
      return new Uint8Array(out.buffer);
    });
  }
}
