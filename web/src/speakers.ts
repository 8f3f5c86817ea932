/**
 * Is this the speaker it claims to be? Of a direction of a voice, which the caller computes: the networks and background
 * models that do so are the caller's. Neither it nor the claim leaves this client.
 */

import { Asking, bytesOf, checkBytes, checkProduct, type Spent } from "./asking.ts";
import { choose } from "./choose.ts";
import { isNegative } from "./compare.ts";
import { Door, type DoorOptions, type Where } from "./door.ts";
import { type Engine, Recorder } from "./engine.ts";
import { AudioError, ProtocolError } from "./errors.ts";
import { chooseOffer } from "./offer.ts";
import { encodeRequest, VERIFY } from "./requests.ts";
import type { Question } from "./session.ts";
import { checkDirection, readSpeakers, SCORE_BITS, speakerAgreement, speakerCut, type SpeakerOffer } from "./speaker_terms.ts";

/** A decision, and what it took. */
export type Decision = Spent & {
  /** null: the server alone learns it. */
  accepted: boolean | null;
};

/** Ask a server for its speakers, and be ready to be verified as one. Cosines without T-norm alone are spoken here. */
export async function connectSpeakers(where: Where, options: DoorOptions = {}): Promise<SpeakerClient> {
  const door = Door.to(where, options);
  const offers = readSpeakers(await door.describe());
  return SpeakerClient.of(door, chooseOffer(offers, options.model, "verifies no speakers"));
}

export class SpeakerClient {
  private constructor(private readonly asking: Asking, private readonly question: Question, readonly offer: SpeakerOffer) {}

  static async of(door: Door, offer: SpeakerOffer): Promise<SpeakerClient> {
    const { terms, name } = offer;
    if (terms.scoring !== "linear" || terms.cohort) {
      const how = terms.cohort ? "by a cohort" : `as ${terms.scoring}`;
      throw new ProtocolError(`${name} scores ${how}: this client verifies by cosines without a cohort; ask with ppspeech verify`);
    }
    const cut = speakerCut(terms);
    checkProduct(name, cut);
    const recorder = new Recorder();
    await decide(recorder, terms, new Uint32Array(terms.places), 0);
    const question = { request: encodeRequest(VERIFY), cost: recorder.cost, cut, flies: false, told: terms.decision === "server" ? 1 : 0 };
    checkBytes(name, bytesOf(question));
    return new SpeakerClient(new Asking(door, { name, params: speakerAgreement(offer) }), question, offer);
  }

  /** Queries that the server has left for this client, as it said last; null where they are not counted. */
  get queriesLeft(): number | null {
    return this.asking.queriesLeft ?? this.offer.queriesLeft;
  }

  /** Meet the server, and do what needs no voice, for the next claim. Takes a query. */
  prepare(): Promise<void> {
    return this.asking.prepare(this.question);
  }

  /** Whether a direction of unit length, as the model's bundle computes it, is accepted as the speaker of a place. */
  async verify(claimed: number, direction: ArrayLike<number>): Promise<Decision> {
    const { terms } = this.offer;
    const { value, spent } = await this.asking.ask(() => {
      if (!Number.isInteger(claimed) || claimed < 0 || claimed >= terms.places) {
        throw new AudioError(`the places have the numbers 0 to ${terms.places - 1}, got ${claimed}`);
      }
      const rows = checkDirection(terms, direction);
      return { question: this.question, rows, program: (engine, shares) => decide(engine, terms, shares, claimed) };
    });
    return { accepted: value, ...spent };
  }

  /** Say goodbye; secrets of the meeting end with it. */
  close(): void {
    this.asking.close();
  }
}

/** The claimed model's score, chosen without being seen, and whether it is at least 0: the server has the threshold in it. */
async function decide(
  engine: Engine, { places, decision }: SpeakerOffer["terms"], shares: Uint32Array, claimed: number,
): Promise<boolean | null> {
  const score = (await choose(engine, shares, places, [claimed], SCORE_BITS)).low;
  const own = await isNegative(engine, score, SCORE_BITS); // the server alone turns bits round
  if (decision === "server") {
    engine.tell(own, 1);
    return null;
  }
  return ((await engine.opened(1, 1)).low[0]! ^ own[0]!) === 1;
}
