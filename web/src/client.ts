/** The client people call. The voice becomes features here, is encrypted here, and the answer is opened here. */

import { Carrier, type WebSocketLike } from "./carrier.ts";
import { ProtocolError } from "./errors.ts";
import { FrontEnd } from "./front_end.ts";
import { READY } from "./kinds.ts";
import { chooseOffer, LONGEST, type Offer, readOffers } from "./offer.ts";
import { type Random, systemRandom } from "./random.ts";
import { type Question, Session } from "./session.ts";
import { columnsOf, cutOf, paddedMonomials, shortest } from "./shape.ts";
import type { Samples } from "./sound.ts";
import { framesAStep } from "./trellis.ts";
import { Wire } from "./wire.ts";
import { costOf, jobOf, readLabel } from "./words.ts";

const SUBPROTOCOL = "ppspeech.1";
const OPEN_SECONDS = 10;
const MOST_BYTES = 256 * 2 ** 20; // what a client is ready to exchange for one question
const MOST_STEPS = 4e6; // scores of a question above which it is not even counted

type SocketMaker = new (address: string, protocols: string) => WebSocketLike;

export type Options = {
  /** Which of the server's models; may be left out where it has one. */
  model?: string;
  /** How words are computed: a step a frame, or, where the server offers it and round trips are dear, several. */
  order?: "frames" | "ahead";
  /** Opens a connection in place of a WebSocket to the address; two are opened, one after the other. */
  socket?: () => WebSocketLike | Promise<WebSocketLike>;
  /** The constructor, where there is no global one. */
  WebSocket?: SocketMaker;
  /** For tests alone: in place of the system's generator. */
  random?: Random;
};

/** A word, and what it took. */
export type Word = {
  /** null: the server's garbage model won, and none of its words was said. */
  value: string | null;
  /** Milliseconds of what was prepared before there was a voice. */
  offlineMs: number;
  /** From the features to the word. */
  onlineMs: number;
  /** What this client computed: features, and of both the above what was not waited for the server. */
  workMs: number;
  bytesUp: number;
  bytesDown: number;
  rounds: number;
};

/** Ask a server what it offers, and be ready to use one of its models. `wss://host:port/ws`; `ws:` on loopback alone. */
export async function connect(address: string, options: Options = {}): Promise<Client> {
  const open = opener(address, options);
  const random = options.random ?? systemRandom;
  const offers = await describe(await open(), random);
  return Client.of(open, offers, chooseOffer(offers, options.model), options.order ?? "frames", random);
}

function opener(address: string, options: Options): () => Promise<WebSocketLike> {
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

async function describe(socket: WebSocketLike, random: Random): Promise<Offer[]> {
  const wire = new Wire(await Carrier.open(socket, OPEN_SECONDS));
  try {
    await wire.greet("describe", {}, random);
    const offers = readOffers(await wire.receive(READY, { atMost: LONGEST }));
    wire.close();
    return offers;
  } catch (error) {
    throw wire.failed(error as Error);
  }
}

/** One model of one server; it meets the server when it prepares, or at the first word. */
export class Client {
  private session: Session | null = null;
  private offline = { ms: 0, waited: 0, bytesUp: 0, bytesDown: 0, rounds: 0 };
  private readonly frontEnd: FrontEnd;
  private busy: Promise<unknown> = Promise.resolve();
  private isClosed = false;

  private constructor(
    private readonly open: () => Promise<WebSocketLike>, readonly offers: Offer[], readonly offer: Offer,
    private readonly question: Question, private readonly random: Random,
  ) {
    this.frontEnd = new FrontEnd(offer.terms.mfcc, offer.terms.statistics);
  }

  static async of(
    open: () => Promise<WebSocketLike>, offers: Offer[], offer: Offer, order: "frames" | "ahead", random: Random,
  ): Promise<Client> {
    const { shape, modes } = offer.terms;
    if (!modes.includes(order)) throw new ProtocolError(`${offer.name} can be asked by ${modes.join(", ")}, got ${order}`);
    const cut = cutOf(shape, 1);
    const large = shape.frames * columnsOf(shape);
    if (large > MOST_STEPS || cut.queryBytes + cut.replyBytes > MOST_BYTES) throw tooLarge(offer);
    const job = jobOf(shape, 1, framesAStep(shape, 1, order));
    const cost = await costOf(job);
    const question: Question = { job, cost, cut, order };
    if (bytesOf(question) > MOST_BYTES) throw tooLarge(offer);
    return new Client(open, offers, offer, question, random);
  }

  /** Queries that the server has left for this client, as it said last; null where they are not counted. */
  get queriesLeft(): number | null {
    return this.session?.queriesLeft ?? this.offer.queriesLeft;
  }

  /** Meet the server, and do what needs no voice, for the next word. Takes a query. */
  prepare(): Promise<void> {
    return this.alone(async () => {
      await this.ready();
    });
  }

  /** The word of one utterance: samples of one channel in [-1, 1], and their rate in Hz. Nothing of it is sent openly. */
  recognize(samples: Samples, rate: number): Promise<Word> {
    return this.alone(async () => {
      const began = performance.now();
      const rows = this.frontEnd.frames(samples, rate); // refuse before anything is sent
      const { shape } = this.offer.terms;
      const monomials = paddedMonomials(shape, rows);
      const heardMs = performance.now() - began;
      const session = await this.ready();
      const [before, offline] = [session.meter, this.offline];
      const label = await session.finish(this.question, monomials, rows.length - shortest(shape));
      const after = session.meter;
      const value = readLabel(label);
      if (value === null && !shape.reject) {
        throw new ProtocolError("no word beat all others: the server does not keep to the protocol");
      }
      const onlineMs = after.ms - before.ms;
      return {
        value, offlineMs: offline.ms, onlineMs,
        workMs: heardMs + offline.ms - offline.waited + onlineMs - (after.waited - before.waited),
        bytesUp: offline.bytesUp + after.bytesUp - before.bytesUp,
        bytesDown: offline.bytesDown + after.bytesDown - before.bytesDown,
        rounds: offline.rounds + after.rounds - before.rounds,
      };
    });
  }

  /** The frames that a model hears, for pictures; they stay here. */
  features(samples: Samples, rate: number): Float64Array[] {
    return this.frontEnd.frames(samples, rate);
  }

  /** Say goodbye; secrets of the meeting end with it. */
  close(): void {
    this.isClosed = true;
    this.session?.close();
    this.session = null;
  }

  /** A session with a prepared question; a new one where the last is gone, of which no voice has been told. */
  private async ready(): Promise<Session> {
    if (this.session?.isOver) this.session = null;
    this.session ??= await Session.meet(await this.open(), this.offer, this.random);
    if (this.session.isPrepared) return this.session;
    const before = this.session.meter;
    await this.session.prepare(this.question);
    const after = this.session.meter;
    this.offline = {
      ms: after.ms - before.ms, waited: after.waited - before.waited, bytesUp: after.bytesUp - before.bytesUp,
      bytesDown: after.bytesDown - before.bytesDown, rounds: after.rounds - before.rounds,
    };
    return this.session;
  }

  /** One thing after the other: a session answers one question at a time. */
  private alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.busy.then(() => {
      if (this.isClosed) throw new ProtocolError("the client is closed");
      return work();
    });
    this.busy = turn.catch(() => undefined);
    return turn;
  }
}

/** Payload of a question, offline and online, both ways; transfers by their columns. */
function bytesOf({ cost, cut }: Question): number {
  const tables = [...cost.tables.values()].reduce((sum, count) => sum + count, 0);
  return cut.queryBytes + cut.replyBytes + cost.bytesUp + cost.bytesDown + 32 * tables + 32 * cost.products;
}

function tooLarge(offer: Offer): ProtocolError {
  return new ProtocolError(`${offer.name} would exchange more than ${MOST_BYTES / 2 ** 20} MiB for a question`);
}

