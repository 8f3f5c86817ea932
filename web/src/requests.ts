/** What a client asks of a session, and what it is told before a protocol begins. */

import { BudgetSpentError, NotNowError, ProtocolError } from "./errors.ts";
import { READY, REQUEST } from "./kinds.ts";
import type { Channel } from "./wire.ts";

export const PING = 0;
export const WORDS = 1;
export const BYE = 3;
export const VERIFY = 4;
export const SENTENCE = 9;
export const ORDERS = ["frames", "garbled", "average", "ahead"];
const UNCOUNTED = 0xffffffff;
const NOT_NOW = 0xfffffffe; // where the answer is no

export function encodeRequest(what: number, order = "frames", utterances = 1, steps = 0): Uint8Array {
  return Uint8Array.of(what, ORDERS.indexOf(order), utterances >> 8, utterances, steps >> 8, steps);
}

/** Ask, and wait for the word to begin: queries left after this one, null where they are not counted. */
export async function ask(channel: Channel, request: Uint8Array): Promise<number | null> {
  channel.send(REQUEST, request);
  const { ready, left } = readReady(await channel.receive(READY, { exactly: 5 }));
  if (!ready && left === NOT_NOW) throw new NotNowError();
  if (!ready) throw new BudgetSpentError("the server answers no more queries of this client: ask whoever runs it for more");
  return left;
}

export function readReady(payload: Uint8Array): { ready: boolean; left: number | null } {
  if (payload[0]! > 1) throw new ProtocolError(`READY says yes (1) or no (0), got ${payload[0]}`);
  const left = new DataView(payload.buffer, payload.byteOffset).getUint32(1);
  return { ready: payload[0] === 1, left: left === UNCOUNTED ? null : left };
}
