/** Base transfers (Masny and Rindal 2019) on ed25519, as their sender: two keys each, of which the server knows one. */

import { sha256, sha512 } from "@noble/hashes/sha2.js";
import { ascii, joined, same } from "./bytes.ts";
import { ProtocolError } from "./errors.ts";
import type { Kernel } from "./kernel.ts";
import { BASE_POINT, BASE_REPLY } from "./kinds.ts";
import { drawn, type Random } from "./random.ts";
import type { Channel } from "./wire.ts";

const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const NEUTRAL = Uint8Array.from({ length: 32 }, (_, i) => (i === 0 ? 1 : 0));
const PAUSE = 16; // transfers between which a page may draw

/** Pairs of keys of 16 bytes, and the hash of what was said. */
export type BaseKeys = { pairs: [Uint8Array, Uint8Array][]; said: Uint8Array };

export async function offerKeys(kernel: Kernel, channel: Channel, count: number, random: Random): Promise<BaseKeys> {
  const secret = scalarOf(drawn(random, 64));
  const point = kernel.aside(() => {
    const [scalar, out] = [kernel.put(secret), kernel.take(32)];
    kernel.run.basePointTimes(scalar, out);
    return kernel.read(out, 32);
  });
  channel.send(BASE_POINT, point);
  const reply = await channel.receive(BASE_REPLY, { exactly: 64 * count });
  const pairs: [Uint8Array, Uint8Array][] = [];
  for (let number = 0; number < count; number++) {
    const answer = reply.subarray(64 * number, 64 * number + 64);
    for (const half of [answer.subarray(0, 32), answer.subarray(32)]) {
      if (!kernel.aside(() => kernel.run.isValidPoint(kernel.put(half)))) {
        throw new ProtocolError("the server sent what is no point of the group");
      }
    }
    pairs.push([baseKey(kernel, number, 0, secret, point, answer), baseKey(kernel, number, 1, secret, point, answer)]);
    if (number % PAUSE === PAUSE - 1) await new Promise((resolve) => setTimeout(resolve));
  }
  return { pairs, said: sha256(joined(point, reply)) };
}

function baseKey(
  kernel: Kernel, number: number, side: 0 | 1, secret: Uint8Array, point: Uint8Array, answer: Uint8Array,
): Uint8Array {
  const place = Uint8Array.of(number >>> 24, number >>> 16, number >>> 8, number, side);
  const [own, other] = side === 0 ? [answer.subarray(0, 32), answer.subarray(32)] : [answer.subarray(32), answer.subarray(0, 32)];
  const hashed = hashToGroup(kernel, joined(ascii("ppspeech base ot, half"), place, point, other));
  const shared = kernel.aside(() => {
    const [one, two, scalar, out] = [kernel.put(own), kernel.put(hashed), kernel.put(secret), kernel.take(32)];
    kernel.run.addPoints(one, two, out);
    kernel.run.pointTimes(out, scalar, out);
    return kernel.read(out, 32);
  });
  if (same(shared, NEUTRAL)) throw new ProtocolError("the server sent points that give nothing");
  return sha256(joined(ascii("ppspeech base ot, key"), place, point, answer, shared)).slice(0, 16);
}

export function hashToGroup(kernel: Kernel, data: Uint8Array): Uint8Array {
  return kernel.aside(() => {
    const [digest, out] = [kernel.put(sha512(data)), kernel.take(64)];
    kernel.run.fromUniform(digest, out);
    kernel.run.fromUniform(digest + 32, out + 32);
    kernel.run.addPoints(out, out + 32, out);
    return kernel.read(out, 32);
  });
}

/** 64 bytes, little-endian, mod the group's order: 32 bytes. */
function scalarOf(wide: Uint8Array): Uint8Array {
  let number = 0n;
  for (let i = wide.length - 1; i >= 0; i--) number = (number << 8n) | BigInt(wide[i]!);
  number %= ORDER;
  return Uint8Array.from({ length: 32 }, (_, i) => Number((number >> BigInt(8 * i)) & 255n));
}
