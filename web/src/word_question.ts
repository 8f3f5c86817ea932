/** The question which word an utterance is, of any shape. */

import { type Asked, bytesOf, checkBytes, checkProduct } from "./asking.ts";
import { AudioError, ProtocolError } from "./errors.ts";
import { encodeRequest, WORDS } from "./requests.ts";
import type { Question } from "./session.ts";
import { arcsOf, columnsOf, cutOf, paddedMonomials, type Shape, shortest } from "./shape.ts";
import { costOf, framesAStep, type Job, jobOf, nameWords, readLabel } from "./words.ts";

const MOST_STEPS = 4e6; // scores of a question above which it is not even counted
const [MOST_ARCS, MOST_CELLS] = [1 << 18, 1 << 23]; // the same of arcs, and of arcs over all frames

export class WordQuestion {
  private constructor(readonly question: Question, private readonly job: Job) {}

  /** Count what it takes; refuses what is more than a client is ready for. */
  static async of(name: string, shape: Shape, order: "frames" | "ahead"): Promise<WordQuestion> {
    const cut = cutOf(shape, 1);
    checkProduct(name, cut);
    if (shape.frames * columnsOf(shape) > MOST_STEPS) throw new ProtocolError(`${name} has more scores than this client follows`);
    const arcs = arcsOf(shape);
    if (arcs > MOST_ARCS || arcs * shape.frames > MOST_CELLS) throw new ProtocolError(`${name} has more arcs than this client follows`);
    const job = jobOf(shape, 1, framesAStep(shape, 1, order));
    const question = { request: encodeRequest(WORDS, order), cost: await costOf(job), cut, flies: true };
    checkBytes(name, bytesOf(question));
    return new WordQuestion(question, job);
  }

  /** About one utterance, of rows as the shape takes them. */
  about(rows: ArrayLike<number>[]): Asked<Uint8Array> {
    const { shape } = this.job;
    const monomials = paddedMonomials(shape, rows);
    const last = rows.length - shortest(shape);
    return { question: this.question, rows: monomials, program: async (engine, scores) => (await nameWords(engine, this.job, scores, [last]))[0]! };
  }

  /**
   * Which word a label says; null: the server's garbage model won. Raises AudioError where no word did: whoever left then
   * would tell the server which label it was.
   */
  read(label: Uint8Array): string | null {
    const value = readLabel(label);
    if (value === null && !this.job.shape.reject) {
      throw new AudioError("no word beat all others: the server does not keep to the protocol");
    }
    return value;
  }
}
