/**
 * Words by a head on public embeddings. The network that computes them is megabytes, and the caller's: this client takes
 * embeddings, and does the rest. They stay here.
 */

import { Asking } from "./asking.ts";
import type { Word } from "./client.ts";
import { Door, type DoorOptions, type Where } from "./door.ts";
import { ProtocolError } from "./errors.ts";
import { headAgreement, headInput, type HeadOffer, readHeads } from "./head_terms.ts";
import { chooseOffer } from "./offer.ts";
import { WordQuestion } from "./word_question.ts";

export type HeadOptions = DoorOptions & {
  /** SHA-256 of the file of weights of the network that you run, in hexadecimal digits. */
  weights: string;
};

/** Ask a server for its heads, and be ready to use one. Refuses one of other embeddings, or that tells the server alone. */
export async function connectHead(where: Where, options: HeadOptions): Promise<HeadClient> {
  const door = Door.to(where, options);
  const offer = chooseOffer(readHeads(await door.describe()), options.model, "has no heads on embeddings");
  if (offer.terms.weights !== options.weights) {
    const [theirs, ours] = [offer.terms.weights, options.weights].map((each) => `${String(each).slice(0, 12)}…`);
    throw new ProtocolError(`${offer.name} listens through embeddings of weights ${theirs}, and you have those of ${ours}`);
  }
  return HeadClient.of(door, offer);
}

export class HeadClient {
  private constructor(private readonly asking: Asking, private readonly words: WordQuestion, readonly offer: HeadOffer) {}

  static async of(door: Door, offer: HeadOffer): Promise<HeadClient> {
    if (offer.terms.outcome !== "client") {
      throw new ProtocolError(`${offer.name} tells the word to the server alone, and not to you: this client does not ask it`);
    }
    const words = await WordQuestion.of(offer.name, offer.terms.shape, "frames");
    const asking = new Asking(door, { name: offer.name, params: headAgreement(offer) });
    return new HeadClient(asking, words, offer);
  }

  /** Queries that the server has left for this client, as it said last; null where they are not counted. */
  get queriesLeft(): number | null {
    return this.asking.queriesLeft ?? this.offer.queriesLeft;
  }

  /** Meet the server, and do what needs no voice, for the next word. Takes a query. */
  prepare(): Promise<void> {
    return this.asking.prepare(this.words.question);
  }

  /**
   * The word of one utterance: its embeddings, 96 numbers every 80 ms, of the spoken part with what is around it, or of
   * the last two seconds (`offer.terms.pooling.over`). They are pooled here as the head takes them.
   */
  async recognize(embeddings: ArrayLike<number>[]): Promise<Word> {
    const { value, spent } = await this.asking.ask(() => this.words.about([headInput(this.offer.terms, embeddings)]));
    return { value: this.words.read(value), ...spent };
  }

  /** Say goodbye; secrets of the meeting end with it. */
  close(): void {
    this.asking.close();
  }
}
