/** One session: frames out, frames in, each checked before its payload is read, and one way to end. */

import { sha256 } from "@noble/hashes/sha2.js";
import { ascii, fromHex, hex, joined, same } from "./bytes.ts";
import { canonical, type Plain } from "./canonical.ts";
import type { Carrier } from "./carrier.ts";
import { ProtocolError } from "./errors.ts";
import { ABORT, HELLO } from "./kinds.ts";
import { drawn, type Random } from "./random.ts";

const MAGIC = 0x5053;
const VERSION = 1;
const HEADER = 28;
const LAST_SEQUENCE = 0xffffffff;
const LONGEST_HELLO = 4096;
const LARGEST = 1 << 26;
const HELLO_SECONDS = 10;
const MESSAGE_SECONDS = 60;

/** How long the next message may be. */
export type Size = { exactly: number } | { atMost: number };

/** What protocols need of a session. */
export interface Channel {
  send(kind: number, payload: Uint8Array): void;
  receive(kind: number, size: Size): Promise<Uint8Array>;
}

export class Wire implements Channel {
  private session: Uint8Array = new Uint8Array(16);
  private sent = 0;
  private received = 0;
  /** Times that the direction of messages turned back to us. */
  rounds = 0;
  private spoke = false;

  constructor(readonly carrier: Carrier) {}

  /** Greet the server: the service's name and its parameters, which the server must answer with to the byte. */
  async greet(protocol: string, params: { [key: string]: Plain }, random: Random): Promise<void> {
    const nonce = drawn(random, 16);
    this.send(HELLO, encodeHello(nonce, protocol, params));
    const answer = await this.frame(HELLO, { atMost: LONGEST_HELLO }, HELLO_SECONDS);
    const theirs = readNonce(answer, protocol, params);
    if (same(theirs, nonce)) throw this.failed(new ProtocolError("the server sent our own nonce back"));
    this.session = sessionName(nonce, theirs, protocol, params);
  }

  send(kind: number, payload: Uint8Array): void {
    if (this.sent >= LAST_SEQUENCE || payload.length > LARGEST) {
      throw this.failed(new ProtocolError(`cannot send ${payload.length} bytes as frame ${this.sent}`));
    }
    this.carrier.send(joined(packHeader(kind, this.session, this.sent, payload.length), payload));
    this.sent += 1;
    this.spoke = true;
  }

  async receive(kind: number, size: Size): Promise<Uint8Array> {
    return this.frame(kind, size, MESSAGE_SECONDS);
  }

  /** End the session early: the server gets the constant ABORT and nothing more. Returns the reason, to be thrown. */
  failed<E extends Error>(reason: E): E {
    try {
      if (!this.carrier.isOver) {
        this.carrier.send(joined(packHeader(ABORT, this.session, this.sent, 1), new Uint8Array(1)));
      }
    } catch {
      // it is gone, and needs no telling
    }
    this.carrier.close();
    return reason;
  }

  close(): void {
    this.carrier.close();
  }

  private async frame(kind: number, size: Size, seconds: number): Promise<Uint8Array> {
    if (this.spoke) this.rounds += 1;
    this.spoke = false;
    const header = await this.carrier.read(HEADER, seconds);
    const why = whyRefused(header, kind, this.session, this.received, size);
    if (why !== null) throw this.failed(new ProtocolError(why));
    this.received += 1;
    return this.carrier.read(new DataView(header.buffer).getUint32(24), seconds);
  }
}

export function packHeader(kind: number, session: Uint8Array, sequence: number, length: number): Uint8Array {
  const header = new Uint8Array(HEADER);
  const view = new DataView(header.buffer);
  view.setUint16(0, MAGIC);
  view.setUint8(2, VERSION);
  view.setUint8(3, kind);
  header.set(session, 4);
  view.setUint32(20, sequence);
  view.setUint32(24, length);
  return header;
}

/** What is wrong with a header, in the order of the page; null if nothing is. */
export function whyRefused(
  header: Uint8Array, kind: number, session: Uint8Array, sequence: number, size: Size,
): string | null {
  const view = new DataView(header.buffer, header.byteOffset);
  if (view.getUint16(0) !== MAGIC) return "the server does not speak this protocol";
  if (view.getUint8(2) !== VERSION) return `the server speaks version ${view.getUint8(2)}, this client ${VERSION}`;
  const got = view.getUint8(3);
  if (got === ABORT) return "the server ended the session, and does not say why";
  if (got !== kind) return `expected a message of kind ${kind}, got kind ${got}`;
  if (!same(header.subarray(4, 20), session)) return "the server answers in another session";
  if (view.getUint32(20) !== sequence) return `expected frame ${sequence}, got ${view.getUint32(20)}`;
  const length = view.getUint32(24);
  if ("exactly" in size ? length !== size.exactly : length > size.atMost) {
    const allowed = "exactly" in size ? `exactly ${size.exactly}` : `at most ${size.atMost}`;
    return `a message of kind ${kind} has ${length} bytes where ${allowed} may come`;
  }
  return null;
}

export function encodeHello(nonce: Uint8Array, protocol: string, params: { [key: string]: Plain }): Uint8Array {
  return ascii(canonical({ nonce: hex(nonce), params, protocol, version: 1 }));
}

/** The nonce of an answer that agrees with what we asked for, to the byte. */
export function readNonce(answer: Uint8Array, protocol: string, params: { [key: string]: Plain }): Uint8Array {
  const said = String.fromCharCode(...answer);
  const found = /^\{"nonce":"([0-9a-f]{32})",/.exec(said);
  const nonce = fromHex(found?.[1] ?? "");
  if (found === null || !same(answer, encodeHello(nonce, protocol, params))) {
    throw new ProtocolError(`the server does not agree to ${protocol} with these parameters`);
  }
  return nonce;
}

export function sessionName(
  ours: Uint8Array, theirs: Uint8Array, protocol: string, params: { [key: string]: Plain },
): Uint8Array {
  return sha256(joined(ours, theirs, ascii(protocol), ascii(canonical(params)))).slice(0, 16);
}
