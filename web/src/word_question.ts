/** The question which word an utterance is, of any shape. */

import { type Asked, checkProduct, tooLarge } from "./asking.ts";
import { ProtocolError } from "./errors.ts";
import { encodeRequest, WORDS } from "./requests.ts";
import type { Question } from "./session.ts";
import { columnsOf, cutOf, paddedMonomials, type Shape, shortest } from "./shape.ts";
import { costOf, framesAStep, type Job, jobOf, nameWords, readLabel } from "./words.ts";

const MOST_STEPS = 4e6; // scores of a question above which it is not even counted

export class WordQuestion {
  private constructor(readonly question: Question, private readonly job: Job) {}

  /** Count what it takes; refuses what is more than a client is ready for. */
  static async of(name: string, shape: Shape, order: "frames" | "ahead"): Promise<WordQuestion> {
    const cut = cutOf(shape, 1);
    if (shape.frames * columnsOf(shape) > MOST_STEPS) throw tooLarge(name);
    checkProduct(name, cut);
    const job = jobOf(shape, 1, framesAStep(shape, 1, order));
    return new WordQuestion({ request: encodeRequest(WORDS, order), cost: await costOf(job), cut, flies: true }, job);
  }

  /** About one utterance, of rows as the shape takes them. */
  about(rows: ArrayLike<number>[]): Asked<Uint8Array> {
    const { shape } = this.job;
    const monomials = paddedMonomials(shape, rows);
    const last = rows.length - shortest(shape);
    return { rows: monomials, program: async (engine, scores) => (await nameWords(engine, this.job, scores, [last]))[0]! };
  }

  /** Which word a label says; null: the server's garbage model won. */
  read(label: Uint8Array): string | null {
    const value = readLabel(label);
    if (value === null && !this.job.shape.reject) {
      throw new ProtocolError("no word beat all others: the server does not keep to the protocol");
    }
    return value;
  }
}
