/** The client people call. The voice becomes features here, is encrypted here, and the answer is opened here. */

import { Asking, type Spent } from "./asking.ts";
import { Door, type DoorOptions } from "./door.ts";
import { ProtocolError } from "./errors.ts";
import { FrontEnd } from "./front_end.ts";
import { agreement, chooseOffer, type Offer, readOffers } from "./offer.ts";
import type { Samples } from "./sound.ts";
import { WordQuestion } from "./word_question.ts";

export type Options = DoorOptions & {
  /** How words are computed: a step a frame, or, where the server offers it and round trips are dear, several. */
  order?: "frames" | "ahead";
};

/** A word, and what it took. */
export type Word = Spent & {
  /** null: the server's garbage model won, and none of its words was said. */
  value: string | null;
};

/** Ask a server what it offers, and be ready to use one of its models. `wss://host:port/ws`; `ws:` on loopback alone. */
export async function connect(address: string, options: Options = {}): Promise<Client> {
  const door = Door.to(address, options);
  const offers = readOffers(await door.describe());
  return Client.of(door, offers, chooseOffer(offers, options.model), options.order ?? "frames");
}

/** One model of one server; it meets the server when it prepares, or at the first word. */
export class Client {
  private readonly frontEnd: FrontEnd;

  private constructor(
    private readonly asking: Asking, private readonly words: WordQuestion, readonly offers: Offer[], readonly offer: Offer,
  ) {
    this.frontEnd = new FrontEnd(offer.terms.mfcc, offer.terms.statistics);
  }

  static async of(door: Door, offers: Offer[], offer: Offer, order: "frames" | "ahead"): Promise<Client> {
    const { shape, modes } = offer.terms;
    if (!modes.includes(order)) throw new ProtocolError(`${offer.name} can be asked by ${modes.join(", ")}, got ${order}`);
    const words = await WordQuestion.of(offer.name, shape, order);
    const asking = new Asking(door, { name: offer.name, params: agreement(offer) }, words.question);
    return new Client(asking, words, offers, offer);
  }

  /** Queries that the server has left for this client, as it said last; null where they are not counted. */
  get queriesLeft(): number | null {
    return this.asking.queriesLeft ?? this.offer.queriesLeft;
  }

  /** Meet the server, and do what needs no voice, for the next word. Takes a query. */
  prepare(): Promise<void> {
    return this.asking.prepare();
  }

  /** The word of one utterance: samples of one channel in [-1, 1], and their rate in Hz. Nothing of it is sent openly. */
  async recognize(samples: Samples, rate: number): Promise<Word> {
    const { value, spent } = await this.asking.ask(() => this.words.about(this.features(samples, rate)));
    return { value: this.words.read(value), ...spent };
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
