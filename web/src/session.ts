/** A connection over which client and server have met: one question after the other, prepared before there is a voice. */

import { same } from "./bytes.ts";
import { Carrier, type WebSocketLike } from "./carrier.ts";
import type { Cut } from "./cut.ts";
import { type Cost, type Engine, prepare, type ShareEngine } from "./engine.ts";
import { BudgetSpentError, NotNowError, ProtocolError } from "./errors.ts";
import { Flights } from "./flights.ts";
import { Kernel } from "./kernel.ts";
import { LATTICE_KEY, QUERY, REPLY, REQUEST, RESUME } from "./kinds.ts";
import { LatticeKey } from "./lattice.ts";
import type { Random } from "./random.ts";
import { ask, BYE, encodeRequest, PING } from "./requests.ts";
import { Setup } from "./setup.ts";
import { Wire } from "./wire.ts";

const OPEN_SECONDS = 10;
const PINGS = 3;

/**
 * What a question needs: how it is asked, what its program takes, how its product is cut, and whether the program's
 * messages travel in flights or one by one. `told`: bits that the server is told, where the outcome is its own.
 */
export type Question = { request: Uint8Array; cost: Cost; cut: Cut; flies: boolean; told?: number };

/** What is done with our shares of the product. */
export type Program<T> = (engine: Engine, shares: Uint32Array) => Promise<T>;

/** What both parties mean, by a service's name and public parameters. */
export type Agreed = { name: string; params: { [key: string]: string } };

/** How far a session is: milliseconds, of which some were waited for the server, bytes and rounds. */
export type Meter = { ms: number; waited: number; bytesUp: number; bytesDown: number; rounds: number };

type Prepared = { question: Question; engine: ShareEngine; flights: Flights | null };

export class Session {
  private prepared: Prepared | null = null;
  queriesLeft: number | null = null;
  /** The shortest of a few pings, in milliseconds. */
  roundTrip = Infinity;

  private constructor(
    private readonly wire: Wire, private readonly setup: Setup, private readonly key: LatticeKey, private readonly random: Random,
  ) {}

  /** Greet, agree on transfers, show a fresh key. */
  static async meet(socket: WebSocketLike, { name, params }: Agreed, random: Random): Promise<Session> {
    const kernel = await Kernel.load();
    const wire = new Wire(await Carrier.open(socket, OPEN_SECONDS));
    try {
      await wire.greet(name, params, random);
      const setup = await Setup.agree(kernel, wire, random);
      const key = new LatticeKey(kernel, setup.id, random);
      wire.send(LATTICE_KEY, key.shown);
      const session = new Session(wire, setup, key, random);
      for (let i = 0; i < PINGS; i++) await session.ping();
      return session;
    } catch (error) {
      throw wire.failed(error as Error);
    }
  }

  get isOver(): boolean {
    return this.wire.carrier.isOver;
  }

  get isPrepared(): boolean {
    return this.prepared !== null && !this.isOver;
  }

  get meter(): Meter {
    const { carrier, rounds } = this.wire;
    return { ms: performance.now(), waited: carrier.waited, bytesUp: carrier.bytesSent, bytesDown: carrier.bytesReceived, rounds };
  }

  /** Ask, and do all that needs no voice. A spent budget, or one that cannot be counted, does not end the session; anything else does. */
  async prepare(question: Question): Promise<void> {
    if (this.prepared) return;
    const { request, cost, cut, flies } = question;
    await this.guarded(async () => {
      this.queriesLeft = await ask(this.wire, request);
      const { position } = this.setup;
      this.wire.send(RESUME, position);
      if (!same(await this.wire.receive(RESUME, { exactly: position.length }), position)) {
        throw new ProtocolError("the two parties are at different places of their transfers: connect again");
      }
      const flights = flies ? new Flights(this.wire) : null;
      const engine = await prepare(this.wire, flights ?? this.wire, this.setup, cost, this.random);
      this.key.prepare(cut);
      this.prepared = { question, engine, flights };
    });
  }

  /** The answer of a prepared question; `rows`: our factor of its product, row by row. */
  async finish<T>(question: Question, rows: Float64Array, program: Program<T>): Promise<T> {
    const [prepared, { cut }] = [this.prepared, question];
    if (prepared?.question !== question) throw new Error("a question is prepared first");
    this.prepared = null;
    return this.guarded(async () => {
      this.wire.send(QUERY, this.key.query(cut, rows));
      const shares = this.key.shares(cut, await this.wire.receive(REPLY, { exactly: cut.replyBytes }));
      const found = await program(prepared.engine, shares);
      prepared.flights?.finish();
      return found;
    });
  }

  close(): void {
    if (!this.isOver && !this.prepared) this.wire.send(REQUEST, encodeRequest(BYE));
    this.wire.close();
  }

  private async ping(): Promise<void> {
    const began = performance.now();
    this.queriesLeft = await ask(this.wire, encodeRequest(PING));
    this.roundTrip = Math.min(this.roundTrip, performance.now() - began);
  }

  private async guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof BudgetSpentError || error instanceof NotNowError) throw error;
      this.prepared = null;
      throw this.wire.failed(error as Error);
    }
  }
}
