/** What a server offers, read strictly. Everything here is public. */

import { sha256 } from "@noble/hashes/sha2.js";
import { ascii, hex } from "./bytes.ts";
import { ProtocolError } from "./errors.ts";
import type { Statistics } from "./front_end.ts";
import { featuresOf, type MfccConfig, numbers, readMfcc } from "./mfcc_config.ts";
import * as read from "./reading.ts";
import { canonicalShape, readShape, type Shape } from "./shape.ts";

export const LONGEST = 1 << 20;
const MOST_OFFERS = 64;
const MODES = ["frames", "ahead", "garbled", "stream"] as const;

/** What every offer says. */
export type About = {
  name: string; task: string; fingerprint: string;
  /** What is promised to the people that it was trained on. */
  privacy: string;
  /** Of this client; null where they are not counted. */
  queriesLeft: number | null;
};

const ABOUT = ["name", "task", "fingerprint", "privacy", "queries_left"];

/** One model of words. */
export type Offer = About & {
  kind: "words";
  terms: { type: string; shape: Shape; mfcc: MfccConfig; statistics: Statistics | null; modes: string[]; batches: number[] };
};

/** The offers of words in a description. Raises ProtocolError for one that cannot be read to the last field. */
export function readOffers(description: Uint8Array): Offer[] {
  return offersOf(description, "words").map(readOffer);
}

/** The offers of one task in a description, not yet read. */
export function offersOf(description: Uint8Array, task: string): unknown[] {
  let plain: unknown;
  try {
    plain = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(description));
  } catch {
    throw read.refused("it is no JSON");
  }
  if (typeof plain !== "object" || plain === null || Array.isArray(plain)) throw read.refused("it is no object");
  const { format, ...tasks } = plain as { [key: string]: unknown };
  if (format !== 1) throw read.refused("its format is not 1");
  const all = Object.values(tasks).flatMap((told) => read.list(told, "offers", MOST_OFFERS));
  const names = all.map((each) => (each as { name?: unknown } | null)?.name);
  if (!all.length || all.length > MOST_OFFERS || new Set(names).size < names.length) {
    throw read.refused(`there are 1 to ${MOST_OFFERS} offers of different names`);
  }
  return read.list(tasks[task] ?? [], task, MOST_OFFERS);
}

/** An offer's fields: those that all have, and those of its task, still to be read. */
export function readAbout(plain: unknown, terms: string[]): { about: About; given: { [key: string]: unknown } } {
  const given = read.object(plain, "an offer", [...ABOUT, ...terms]);
  const name = read.text(given.name, "name", 64);
  const fingerprint = read.text(given.fingerprint, "fingerprint", 64);
  if (!/^[a-z0-9][a-z0-9_.-]{0,63}$/.test(name)) throw read.refused(`a service is named by letters, got ${JSON.stringify(name)}`);
  if (!/^[0-9a-f]{64}$/.test(fingerprint)) throw read.refused("a fingerprint is 64 hexadecimal digits");
  const about = {
    name, fingerprint, task: read.text(given.task, "task", 10000), privacy: read.text(given.privacy, "privacy", 100000),
    queriesLeft: given.queries_left === null ? null : read.whole(given.queries_left, "queries_left", 0, 2 ** 53),
  };
  return { about, given };
}

function readOffer(plain: unknown): Offer {
  const { about, given } = readAbout(plain, ["type", "shape", "mfcc", "statistics", "modes", "batches"]);
  const shape = readShape(given.shape);
  const mfcc = readMfcc(given.mfcc);
  const modes = read.list(given.modes, "modes", MODES.length).map((mode) => read.oneOf(mode, "modes", MODES));
  if (new Set(modes).size < modes.length || !modes.includes("frames")) throw read.refused("modes have frames among them");
  if (modes.includes("ahead") && shape.moves[0] !== 0) throw read.refused("words that turn back are not heard ahead");
  const batches = readBatches(given.batches);
  const statistics = given.statistics === null ? null : readStatistics(given.statistics, featuresOf(mfcc));
  const expected = (statistics === null ? 1 : 4) * featuresOf(mfcc);
  if (shape.dimensions !== expected || (statistics !== null && shape.frames !== 1)) {
    throw read.refused(`the model takes ${shape.dimensions} numbers, the front end gives ${expected}`);
  }
  return { ...about, kind: "words", terms: { type: read.text(given.type, "type", 200), shape, mfcc, statistics, modes, batches } };
}

/** How many utterances may run in lock step. */
export function readBatches(plain: unknown): number[] {
  const batches = read.ascending(plain, "batches", 1, 256);
  if (batches[0] !== 1 || batches.length > 16) throw read.refused("batches begin with 1");
  return batches;
}

function readStatistics(plain: unknown, features: number): Statistics {
  const given = read.object(plain, "statistics", ["mean", "std", "radius"]);
  return {
    mean: numbers(given.mean, "mean", 4 * features, -1e30), std: numbers(given.std, "std", 4 * features, Number.MIN_VALUE),
    radius: given.radius === null ? null : read.real(given.radius, "radius", Number.MIN_VALUE, 1e30),
  };
}

/** The offer of this name, or the only one; `what` a server without any does not do. */
export function chooseOffer<O extends About>(offers: O[], model: string | undefined, what = "recognizes no words"): O {
  const names = offers.map((offer) => offer.name).join(", ");
  if (!offers.length) throw new ProtocolError(`the server ${what}`);
  if (model === undefined && offers.length > 1) throw new ProtocolError(`the server offers several models, choose one of ${names}`);
  const found = offers.find((offer) => model === undefined || offer.name === model);
  if (!found) throw new ProtocolError(`the server does not offer ${JSON.stringify(model)}, only ${names}`);
  return found;
}

/** What both parties mean: this bundle, in this shape. */
export function agreement(offer: Offer): { model: string; shape: string } {
  return { model: offer.fingerprint, shape: shapeHash(offer.terms.shape) };
}

/** As both parties hash a shape. */
export function shapeHash(shape: Shape): string {
  return hex(sha256(ascii(canonicalShape(shape))));
}
