/** A meeting: base transfers, and the three directions that are extended from them. It ends with the connection. */

import { sha256 } from "@noble/hashes/sha2.js";
import { offerKeys } from "./base_transfer.ts";
import { ascii, joined } from "./bytes.ts";
import { plus, Receiver, Sender } from "./extension.ts";
import type { Kernel } from "./kernel.ts";
import { BASE_COLUMNS } from "./kinds.ts";
import { drawn, type Random } from "./random.ts";
import type { Channel } from "./wire.ts";

const PAIRS = 128;
const CODED = 256;

export class Setup {
  private constructor(
    readonly id: Uint8Array,
    /** 1-of-2 transfers from the server. */
    readonly forth: Receiver,
    /** 1-of-2 transfers to the server. */
    readonly back: Sender,
    /** 1-of-n transfers from the server. */
    readonly code: Receiver,
  ) {}

  static async agree(kernel: Kernel, channel: Channel, random: Random): Promise<Setup> {
    const { pairs, said } = await offerKeys(kernel, channel, PAIRS, random);
    const id = sha256(joined(ascii("ppspeech setup"), said)).slice(0, 16);
    const forth = new Receiver(kernel, pairs, hashKey(id, "0"), id);
    const secret = drawn(random, PAIRS).map((byte) => byte & 1);
    const keys = cut(forth.hash.of(forth.rows(channel, secret, BASE_COLUMNS, random), 16, 0));
    const back = new Sender(kernel, secret, keys, hashKey(id, "1"), forth.said);
    const rows = await back.rows(channel, CODED + PAIRS, BASE_COLUMNS); // the last 128 are for garbled circuits
    const [zero, one] = [cut(back.hash.of(rows, 16, 0)), cut(back.hash.of(plus(rows, back.delta), 16, 0))];
    const both = zero.slice(0, CODED).map((key, i): [Uint8Array, Uint8Array] => [key, one[i]!]);
    return new Setup(id, forth, back, new Receiver(kernel, both, hashKey(id, "n"), back.said));
  }

  /** Where both parties are, as RESUME says it: the id, transfers done of each direction, labels and gates. */
  get position(): Uint8Array {
    const counters = new DataView(new ArrayBuffer(40));
    [this.forth.done, this.back.done, this.code.done].forEach((done, i) => counters.setBigUint64(8 * i, BigInt(done)));
    return joined(this.id, new Uint8Array(counters.buffer));
  }
}

export function hashKey(id: Uint8Array, use: string): Uint8Array {
  return sha256(joined(id, ascii(use))).slice(0, 16);
}

function cut(blocks: Uint8Array): Uint8Array[] {
  return Array.from({ length: blocks.length / 16 }, (_, i) => blocks.slice(16 * i, 16 * i + 16));
}
