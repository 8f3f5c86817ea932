/** The question which words an utterance is, of any length that a model hears. */

import { type Asked, bytesOf, checkBytes, checkProduct } from "./asking.ts";
import { AudioError, ProtocolError } from "./errors.ts";
import { encodeRequest, SENTENCE } from "./requests.ts";
import { cutOfSentence, fieldsOf, scoresOf, shapeAtLength } from "./sentence_shape.ts";
import { type SentenceOffer, stepsOf } from "./sentence_terms.ts";
import { followWords, sentenceCost, type SentenceJob, sentenceJob, type Told } from "./sentences.ts";
import type { Question } from "./session.ts";
import { monomialRows } from "./shape.ts";

/** A word, and when it began and ended, in seconds. */
export type Spoken = { word: string; start: number; end: number };

const TOKEN_BITS = 32; // of what a token knows
const MOST_ARCS = 1 << 14;
const LEAST = 50; // bytes of one operation

type OfLength = { question: Question; job: SentenceJob };

export class SentenceQuestion {
  private readonly byLength = new Map<number, OfLength>();

  private constructor(private readonly name: string, private readonly terms: SentenceOffer["terms"]) {}

  /** Count what the longest takes; refuses what is more than a client is ready for, and models that are networks. */
  static async of({ name, terms }: SentenceOffer): Promise<SentenceQuestion> {
    const { shape, hasNetwork, step } = terms;
    if (hasNetwork) {
      throw new ProtocolError(`${name} scores frames by a network: this client asks models of Gaussians; ask with ppspeech transcribe`);
    }
    if (fieldsOf(shape).reduce((sum, bits) => sum + bits, 0) > TOKEN_BITS || shape.arcs.length > MOST_ARCS) {
      throw new ProtocolError(`${name} has a larger graph of words than this client follows; ask with ppspeech transcribe`);
    }
    checkProduct(name, cutOfSentence(shape));
    const joined = new Set(shape.arcs.map(([, target]) => target)).size;
    checkBytes(name, LEAST * shape.frames * (shape.arcs.length - joined));
    const found = new SentenceQuestion(name, terms);
    await found.ofLength(shape.frames / step);
    return found;
  }

  /** About one utterance, of frames as the model takes them. What is asked depends on its length in steps alone. */
  async about(rows: ArrayLike<number>[]): Promise<Asked<Told[]>> {
    const { question, job } = await this.ofLength(stepsOf(this.terms, rows.length));
    const monomials = monomialRows(job.shape, rows, job.shape.frames);
    return { question, rows: monomials, program: (engine, scores) => followWords(engine, job, scores, rows.length) };
  }

  /** The words, without silence. Raises AudioError where the beginning is missing; when all that would be said has been. */
  read(told: Told[]): Spoken[] {
    const { shape, mfcc } = this.terms;
    const heard = told.filter(({ counts }) => counts).reverse();
    if (heard[0]?.start !== 0) {
      throw new AudioError(
        `more than ${told.length} words and pauses were heard, or the server does not follow the protocol: ` +
          "speak more slowly, and check that the sound is speech",
      );
    }
    const spoken = heard.map(({ word, start, end }) => ({ word: shape.words[word]!, start: start * mfcc.hop_s, end: end * mfcc.hop_s }));
    return spoken.filter(({ word }) => word);
  }

  private async ofLength(steps: number): Promise<OfLength> {
    const known = this.byLength.get(steps);
    if (known) return known;
    const shape = shapeAtLength(this.terms.shape, steps * this.terms.step);
    const job = sentenceJob(shape);
    const request = encodeRequest(SENTENCE, "frames", 1, steps);
    const question = { request, cost: await sentenceCost(job), cut: cutOfSentence(shape), flies: true };
    checkBytes(this.name, bytesOf(question));
    this.byLength.set(steps, { question, job });
    return { question, job };
  }
}
