/** The lattice, as the party with the key: encryptions of zero ahead, queries, and shares from replies. */

import { blake2b } from "@noble/hashes/blake2.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { ascii, joined, same } from "./bytes.ts";
import { type Cut, HEADER, N, Q } from "./cut.ts";
import { ProtocolError } from "./errors.ts";
import type { Kernel } from "./kernel.ts";
import { mask } from "./packing.ts";
import { drawn, type Random } from "./random.ts";

const SEED = 64;
const PUBLIC = 7 * N;

/** Bits of a key that may be told before it is left, and no fewer than 128 bits of security stay: as in Python. */
export const LEAKABLE_BITS = 239;

/** An encryption of zero, used once: its seed, and where its first part is. */
type Zero = { seed: Uint8Array; first: Uint8Array };

export class LatticeKey {
  private readonly secret: number;
  private zeros: Zero[] = [];
  /** LATTICE_KEY's payload. */
  readonly shown: Uint8Array;
  readonly identity: Uint8Array;

  /** `ternary`: 2,048 of -1, 0, 1; `errors`: draws as many errors. */
  constructor(
    private readonly kernel: Kernel, coins: Uint8Array, private readonly random: Random,
    ternary: Int8Array = drawnTernary(random), private readonly errors: () => Int8Array = () => drawnErrors(kernel, random),
  ) {
    this.secret = kernel.take(16 * N);
    this.shown = kernel.aside(() => {
      kernel.run.makeSecret(kernel.put(new Uint8Array(ternary.buffer)), this.secret);
      const seed = kernel.put(blake2b(joined(ascii(`ppspeech lattice key ${N} ${Q} `), coins)));
      const out = kernel.take(PUBLIC);
      kernel.run.makeKey(seed, this.secret, this.putErrors(), out);
      return kernel.read(out, PUBLIC);
    });
    this.identity = sha256(joined(this.shown, coins)).slice(0, 8);
  }

  /** Make, before there is a voice, the zeros that a query of this cut takes. */
  prepare(cut: Cut): void {
    while (this.zeros.length < cut.groups * cut.terms) this.zeros.push(this.zero());
  }

  /** The QUERY of features, row by row. */
  query(cut: Cut, features: Float64Array): Uint8Array {
    const { kernel } = this;
    const scale = Q / 2 ** (cut.bits - cut.fraction + cut.weights.fraction);
    const [m, n, q] = cut.block;
    const message = new Uint8Array(cut.queryBytes);
    message.set(joined(ascii("LATQ"), cut.identity, this.identity));
    this.prepare(cut);
    for (let group = 0, at = HEADER; group < cut.groups; group++) {
      for (let term = 0; term < cut.terms; term++, at += SEED + 6 * N) {
        const polynomial = new Float64Array(N);
        for (let i = 0; i < Math.min(m, cut.rows - group * m); i++) {
          for (let j = 0; j < Math.min(n, cut.inner - term * n); j++) {
            polynomial[i * n * q + n - 1 - j] = features[(group * m + i) * cut.inner + term * n + j]! * scale;
          }
        }
        const { seed, first } = this.zeros.shift()!;
        message.set(seed, at);
        kernel.aside(() => {
          const out = kernel.take(6 * N);
          kernel.run.addMessage(kernel.put(first), kernel.put(new Uint8Array(polynomial.buffer)), out);
          message.set(kernel.bytes.subarray(out, out + 6 * N), at + SEED);
        });
      }
    }
    return message;
  }

  /** Our shares mod 2^bits, `(rows, columns)`, from a REPLY. */
  shares(cut: Cut, reply: Uint8Array): Uint32Array {
    const { kernel } = this;
    const begins = joined(ascii("LATR"), cut.identity, this.identity);
    if (reply.length !== cut.replyBytes || !same(reply.subarray(0, HEADER), begins)) {
      throw new ProtocolError("the server's reply is not of this product and key");
    }
    const [m, n, q] = cut.block;
    const found = new Uint32Array(cut.rows * cut.columns);
    const drop = 32 - cut.bits;
    const half = drop ? 2 ** (drop - 1) : 0;
    for (let group = 0, from = HEADER; group < cut.groups; group++) {
      for (let output = 0; output < cut.outputs; output++, from += 4 * (m * q + N)) {
        kernel.aside(() => {
          const at = kernel.put(reply.subarray(from, from + 4 * (m * q + N)));
          kernel.run.openReply(at, m * q, at + 4 * m * q, this.secret, n - 1, n);
          const words = new Uint32Array(kernel.run.memory.buffer, at, m * q);
          for (let i = 0; i < Math.min(m, cut.rows - group * m); i++) {
            for (let column = 0; column < Math.min(q, cut.columns - output * q); column++) {
              const share = ((words[i * q + column]! + half) >>> 0) >>> drop;
              found[(group * m + i) * cut.columns + output * q + column] = share & mask(cut.bits);
            }
          }
        });
      }
    }
    return found;
  }

  private zero(): Zero {
    const seed = drawn(this.random, SEED);
    const first = this.kernel.aside(() => {
      const out = this.kernel.take(8 * N);
      this.kernel.run.encryptZero(this.kernel.put(seed), this.secret, this.putErrors(), out);
      return this.kernel.read(out, 8 * N);
    });
    return { seed, first };
  }

  private putErrors(): number {
    return this.kernel.put(new Uint8Array(this.errors().buffer));
  }
}

/** Uniform in -1, 0, 1: bytes below 255 mod 3. */
export function drawnTernary(random: Random): Int8Array {
  const found = new Int8Array(N);
  for (let count = 0; count < N; ) {
    for (const byte of drawn(random, N)) if (byte < 255 && count < N) found[count++] = (byte % 3) - 1;
  }
  return found;
}

export function drawnErrors(kernel: Kernel, random: Random): Int8Array {
  return kernel.aside(() => {
    const out = kernel.take(N);
    kernel.run.makeErrors(kernel.put(drawn(random, 8 * N)), out);
    return new Int8Array(kernel.read(out, N).buffer);
  });
}
