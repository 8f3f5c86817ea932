/** The way to a server: how its sockets are opened, and what it says that it offers. */

import { ascii, fromHex, same } from "./bytes.ts";
import { Carrier, type WebSocketLike } from "./carrier.ts";
import { NotNowError, ProtocolError } from "./errors.ts";
import { READY } from "./kinds.ts";
import { LONGEST } from "./offer.ts";
import { PinnedSocket, type TransportMaker } from "./pinned.ts";
import { type Random, systemRandom } from "./random.ts";
import { Wire } from "./wire.ts";

const SUBPROTOCOL = "ppspeech.1";
const OPEN_SECONDS = 10;
const NOT_NOW = ascii('{"not_now":true}'); // in place of what is offered

type SocketMaker = new (address: string, protocols: string) => WebSocketLike;

/**
 * A server: `wss://host:port/ws` (`ws:` on loopback alone), which authorities vouch for, or one that is known by a
 * certificate: `https://host:port/wt` over WebTransport, with the SHA-256 of one, or those of all that it may show.
 */
export type Where = string | { url: string; pin: string | readonly string[] };

/** What every client may be told. */
export type DoorOptions = {
  /** Which of the server's models; may be left out where it has one of this kind. */
  model?: string;
  /** Opens a connection in place of a WebSocket to the address; two are opened, one after the other. */
  socket?: () => WebSocketLike | Promise<WebSocketLike>;
  /** The constructor, where there is no global one. */
  WebSocket?: SocketMaker;
  /** The same, of what a pinned server is asked by. */
  WebTransport?: TransportMaker;
  /** For tests alone: in place of the system's generator. */
  random?: Random;
};

export class Door {
  private constructor(readonly open: () => Promise<WebSocketLike>, readonly random: Random) {}

  static to(where: Where, options: DoorOptions): Door {
    const open = typeof where === "string" ? opener(where, options) : pinned(where.url, where.pin, options);
    return new Door(open, options.random ?? systemRandom);
  }

  /** What the server says of itself. Raises NotNowError while it cannot count questions. */
  async describe(): Promise<Uint8Array> {
    const wire = new Wire(await Carrier.open(await this.open(), OPEN_SECONDS));
    try {
      await wire.greet("describe", {}, this.random);
      const said = await wire.receive(READY, { atMost: LONGEST });
      wire.close();
      if (same(said, NOT_NOW)) throw new NotNowError();
      return said;
    } catch (error) {
      throw wire.failed(error as Error);
    }
  }
}

function opener(address: string, options: DoorOptions): () => Promise<WebSocketLike> {
  if (options.socket) return async () => options.socket!();
  const url = new URL(address);
  const isLoopback = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol !== "wss:" && !(url.protocol === "ws:" && isLoopback)) {
    throw new ProtocolError(`connect to wss://host:port/ws, or on loopback to ws://; got ${address}`);
  }
  const make = options.WebSocket ?? (globalThis as { WebSocket?: SocketMaker }).WebSocket;
  if (!make) throw new ProtocolError("there is no WebSocket here: give one as an option");
  return async () => new make(address, SUBPROTOCOL);
}

function pinned(address: string, pin: string | readonly string[], options: DoorOptions): () => Promise<WebSocketLike> {
  const pins = (typeof pin === "string" ? [pin] : [...pin]).map((each) => String(each).replaceAll(":", "").toLowerCase());
  const wrong = pins.find((each) => !/^[0-9a-f]{64}$/.test(each));
  if (pins.length === 0 || wrong !== undefined) {
    throw new ProtocolError(`a pin is 64 hexadecimal digits, the SHA-256 of a certificate; got ${wrong ?? "none"}`);
  }
  if (new URL(address).protocol !== "https:") throw new ProtocolError(`a pinned server is at https://host:port/wt; got ${address}`);
  const make = options.WebTransport ?? (globalThis as { WebTransport?: TransportMaker }).WebTransport;
  if (!make) throw new ProtocolError("there is no WebTransport here, without which a page cannot pin: ask by wss:// instead");
  return async () => new PinnedSocket(address, pins.map(fromHex), make);
}
