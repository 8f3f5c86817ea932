/** Messages that travel together: held until this party waits for an answer. */

import { joined } from "./bytes.ts";
import { ProtocolError } from "./errors.ts";
import { FLIGHT } from "./kinds.ts";
import type { Channel, Size } from "./wire.ts";

const HEADER = 5;
const ROOM = 65536;

export class Flights implements Channel {
  private outgoing: Uint8Array[] = [];
  private held = 0;
  private incoming: Uint8Array = new Uint8Array(0);
  private at = 0;

  constructor(private readonly channel: Channel) {}

  send(kind: number, payload: Uint8Array): void {
    const size = HEADER + payload.length;
    if (this.held + size > ROOM) this.flush();
    const header = new Uint8Array(HEADER);
    header[0] = kind;
    new DataView(header.buffer).setUint32(1, payload.length);
    this.outgoing.push(header, payload);
    this.held += size;
  }

  async receive(kind: number, size: Size): Promise<Uint8Array> {
    this.flush();
    const allowed = "exactly" in size ? size.exactly : size.atMost;
    if (this.at === this.incoming.length) {
      this.incoming = await this.channel.receive(FLIGHT, { atMost: Math.max(HEADER + allowed, ROOM) });
      this.at = 0;
    }
    const start = this.at + HEADER;
    if (start > this.incoming.length) throw new ProtocolError("a flight ends inside the header of a message");
    const view = new DataView(this.incoming.buffer, this.incoming.byteOffset);
    const got = view.getUint8(this.at);
    const length = view.getUint32(this.at + 1);
    if (got !== kind) throw new ProtocolError(`expected a message of kind ${kind}, got kind ${got}`);
    if (length > allowed || ("exactly" in size && length !== allowed) || start + length > this.incoming.length) {
      throw new ProtocolError(`a message of kind ${kind} announces ${length} bytes where ${allowed} may come`);
    }
    this.at = start + length;
    return this.incoming.subarray(start, this.at);
  }

  /** Send what is held. */
  flush(): void {
    if (this.outgoing.length) this.channel.send(FLIGHT, joined(...this.outgoing));
    this.outgoing = [];
    this.held = 0;
  }

  /** Send what is held; the last flight must be used up. */
  finish(): void {
    this.flush();
    if (this.at !== this.incoming.length) {
      throw new ProtocolError(`a flight holds ${this.incoming.length - this.at} bytes that no step asked for`);
    }
  }
}
