/** One question, asked again and again of one service: prepared before there is a voice, one at a time. */

import type { Door } from "./door.ts";
import { ProtocolError } from "./errors.ts";
import { LEAKABLE_BITS } from "./lattice.ts";
import { type Agreed, type Meter, type Program, type Question, Session } from "./session.ts";

const MOST_BYTES = 256 * 2 ** 20; // what a client is ready to exchange for one question

/** What an answer took. */
export type Spent = {
  /** Milliseconds of what was prepared before there was a voice. */
  offlineMs: number;
  /** From the features to the answer. */
  onlineMs: number;
  /** What this client computed: features, and of both the above what was not waited for the server. */
  workMs: number;
  bytesUp: number;
  bytesDown: number;
  rounds: number;
};

/** What is asked: the question, our factor of its product, and the program on its shares. */
export type Asked<T> = { question: Question; rows: Float64Array; program: Program<T> };

export class Asking {
  private session: Session | null = null;
  /** Bits that the server has been told under the key of the session. */
  private told = 0;
  private offline: Meter = { ms: 0, waited: 0, bytesUp: 0, bytesDown: 0, rounds: 0 };
  private busy: Promise<unknown> = Promise.resolve();
  private isClosed = false;

  constructor(private readonly door: Door, private readonly agreed: Agreed) {}

  /** Queries that the server has left for this client, as it said last; null where it has not, or they are not counted. */
  get queriesLeft(): number | null {
    return this.session?.queriesLeft ?? null;
  }

  /** Meet the server, where we have not. */
  meet(): Promise<void> {
    return this.alone(async () => {
      await this.met();
    });
  }

  /** Meet the server, and do what needs no voice, for the next question. Takes a query. */
  prepare(question: Question): Promise<void> {
    return this.alone(async () => {
      await this.ready(question);
    });
  }

  /** An answer; `hear` refuses what cannot be asked before anything is sent. */
  ask<T>(hear: () => Asked<T> | Promise<Asked<T>>): Promise<{ value: T; spent: Spent }> {
    return this.alone(async () => {
      const began = performance.now();
      const { question, rows, program } = await hear();
      const heard = performance.now() - began;
      const session = await this.ready(question);
      const [before, offline] = [session.meter, this.offline];
      const value = await session.finish(question, rows, program);
      const online = since(session.meter, before);
      const workMs = heard + offline.ms - offline.waited + online.ms - online.waited;
      const spent = {
        offlineMs: offline.ms, onlineMs: online.ms, workMs, bytesUp: offline.bytesUp + online.bytesUp,
        bytesDown: offline.bytesDown + online.bytesDown, rounds: offline.rounds + online.rounds,
      };
      return { value, spent };
    });
  }

  /** Say goodbye; secrets of the meeting end with it. */
  close(): void {
    this.isClosed = true;
    this.session?.close();
    this.session = null;
  }

  /**
   * A session; a new one where the last is gone, of which no voice has been told, or where its key cannot lose as many
   * bits more as the server will be `told`: they may be bits of the key.
   */
  private async met(told = 0): Promise<Session> {
    const isWorn = !this.session?.isPrepared && this.told + told > LEAKABLE_BITS;
    if (isWorn) this.session?.close();
    if (isWorn || this.session?.isOver) this.session = null;
    if (!this.session) {
      const session = await Session.meet(await this.door.open(), this.agreed, this.door.random);
      if (this.isClosed) session.close(); // while we met
      this.checkIsOpen();
      this.session = session;
      this.told = 0;
    }
    return this.session;
  }

  /** A session with a prepared question. */
  private async ready(question: Question): Promise<Session> {
    const session = await this.met(question.told);
    if (session.isPrepared) return session;
    this.told += question.told ?? 0;
    const before = session.meter;
    await session.prepare(question);
    this.offline = since(session.meter, before);
    return session;
  }

  private checkIsOpen(): void {
    if (this.isClosed) throw new ProtocolError("the client is closed");
  }

  /** One thing after the other: a session answers one question at a time. */
  private alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.busy.then(() => {
      this.checkIsOpen();
      return work();
    });
    this.busy = turn.catch(() => undefined);
    return turn;
  }
}

function since(after: Meter, before: Meter): Meter {
  return {
    ms: after.ms - before.ms, waited: after.waited - before.waited, bytesUp: after.bytesUp - before.bytesUp,
    bytesDown: after.bytesDown - before.bytesDown, rounds: after.rounds - before.rounds,
  };
}

/** Payload of a question, offline and online, both ways; transfers by their columns. */
export function bytesOf({ cost, cut }: Question): number {
  const tables = [...cost.tables.values()].reduce((sum, count) => sum + count, 0);
  return cut.queryBytes + cut.replyBytes + cost.bytesUp + cost.bytesDown + 32 * tables + 32 * cost.products;
}

/** Refuse a product that alone is more than a question may take. */
export function checkProduct(name: string, { queryBytes, replyBytes }: Question["cut"]): void {
  checkBytes(name, queryBytes + replyBytes);
}

/** Refuse a question that would exchange more than a client is ready for. */
export function checkBytes(name: string, bytes: number): void {
  if (bytes > MOST_BYTES) throw new ProtocolError(`${name} would exchange more than ${MOST_BYTES / 2 ** 20} MiB for a question`);
}
