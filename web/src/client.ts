/** The client people call. The voice becomes features here, is encrypted here, and the answer is opened here. */

import { Asking, type Spent } from "./asking.ts";
import { Door, type DoorOptions, type Where } from "./door.ts";
import { ProtocolError } from "./errors.ts";
import { FrontEnd } from "./front_end.ts";
import { agreement, chooseOffer, type Offer, readOffers } from "./offer.ts";
import { SentenceQuestion, type Spoken } from "./sentence_question.ts";
import { readSentences, sentenceAgreement, type SentenceOffer } from "./sentence_terms.ts";
import type { Samples } from "./sound.ts";
import { WordQuestion } from "./word_question.ts";

export type Options = DoorOptions & {
  /** How a word is computed: a step a frame, or, where the server offers it and round trips are dear, several. */
  order?: "frames" | "ahead";
};

/** The words of a sentence, and what they took. */
export type Sentence = Spent & { value: Spoken[] };

/** A word, and what it took. */
export type Word = Spent & {
  /** null: the server's garbage model won, and none of its words was said. */
  value: string | null;
};

/** Ask a server what it offers, and be ready to use one of its models. */
export async function connect(where: Where, options: Options = {}): Promise<Client> {
  const door = Door.to(where, options);
  const said = await door.describe();
  const offers = [...readOffers(said), ...readSentences(said)];
  const offer = chooseOffer(offers, options.model, "recognizes no words and no sentences");
  return Client.of(door, offers, offer, options.order ?? "frames");
}

/** One model of one server; it meets the server when it prepares, or at the first word. */
export class Client {
  private readonly frontEnd: FrontEnd;

  private constructor(
    private readonly asking: Asking, private readonly words: WordQuestion | null, private readonly sentences: SentenceQuestion | null,
    readonly offers: (Offer | SentenceOffer)[], readonly offer: Offer | SentenceOffer,
  ) {
    this.frontEnd = new FrontEnd(offer.terms.mfcc, offer.kind === "words" ? offer.terms.statistics : null);
  }

  static async of(door: Door, offers: Client["offers"], offer: Client["offer"], order: "frames" | "ahead"): Promise<Client> {
    const { name, terms } = offer;
    if (!terms.modes.includes(order)) throw new ProtocolError(`${name} can be asked by ${terms.modes.join(", ")}, got ${order}`);
    if (offer.kind === "sentences") {
      const asking = new Asking(door, { name, params: sentenceAgreement(offer) });
      return new Client(asking, null, await SentenceQuestion.of(offer), offers, offer);
    }
    const asking = new Asking(door, { name, params: agreement(offer) });
    return new Client(asking, await WordQuestion.of(name, offer.terms.shape, order), null, offers, offer);
  }

  /** Queries that the server has left for this client, as it said last; null where they are not counted. */
  get queriesLeft(): number | null {
    return this.asking.queriesLeft ?? this.offer.queriesLeft;
  }

  /**
   * Meet the server, and do what needs no voice, for the next word: takes a query. What a sentence takes depends on how
   * long it is: for one this only meets.
   */
  prepare(): Promise<void> {
    return this.words ? this.asking.prepare(this.words.question) : this.asking.meet();
  }

  /** The word of one utterance: samples of one channel in [-1, 1], and their rate in Hz. Nothing of it is sent openly. */
  async recognize(samples: Samples, rate: number): Promise<Word> {
    const { words } = this;
    if (!words) throw new ProtocolError(`${this.offer.name} writes down sentences: ask it to transcribe`);
    const { value, spent } = await this.asking.ask(() => words.about(this.features(samples, rate)));
    return { value: words.read(value), ...spent };
  }

  /**
   * The words of one utterance with their times, without silence: samples of one channel in [-1, 1], and their rate in
   * Hz. What the server sees of it is its length in steps of `offer.terms.step` frames.
   */
  async transcribe(samples: Samples, rate: number): Promise<Sentence> {
    const { sentences } = this;
    if (!sentences) throw new ProtocolError(`${this.offer.name} recognizes words: ask it to recognize`);
    const { value, spent } = await this.asking.ask(() => sentences.about(this.features(samples, rate)));
    return { value: sentences.read(value), ...spent };
  }

  /** The frames that a model hears, for pictures; they stay here. */
  features(samples: Samples, rate: number): Float64Array[] {
    return this.frontEnd.frames(samples, rate);
  }

  /** Say goodbye; secrets of the meeting end with it. */
  close(): void {
    this.asking.close();
  }
}
