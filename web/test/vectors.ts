/** Test vectors of the wire, and the bytes that they speak of. */

import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { fromHex, hex } from "../src/bytes.ts";
import { Kernel } from "../src/kernel.ts";
import type { Channel } from "../src/wire.ts";

export function vectors(name: string): any {
  return JSON.parse(readFileSync(new URL(`../../../tests/vectors/${name}.json`, import.meta.url), "utf-8"));
}

/** SHAKE-128 of a label. */
export function shaken(label: string, count: number): Uint8Array {
  return new Uint8Array(createHash("shake128", { outputLength: count }).update(label).digest());
}

export function sha256Hex(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** A channel that keeps what is sent, and gives what was written before. */
export class Script implements Channel {
  sent: Uint8Array[] = [];
  private replies: Uint8Array[];
  constructor(...replies: Uint8Array[]) {
    this.replies = replies;
  }
  send(_: number, payload: Uint8Array): void {
    this.sent.push(payload);
  }
  async receive(): Promise<Uint8Array> {
    return this.replies.shift()!;
  }
}

/** Gives bytes that are written down, one after the other. */
export function written(...bytes: Uint8Array[]): (out: Uint8Array) => void {
  const all = Uint8Array.from(bytes.flatMap((part) => [...part]));
  let at = 0;
  return (out) => {
    if (at + out.length > all.length) throw new Error("more randomness is asked for than was written down");
    out.set(all.subarray(at, (at += out.length)));
  };
}

export const kernel = await Kernel.load();
export { fromHex, hex };
