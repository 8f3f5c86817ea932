/** The terms on which models of sentences are asked, read strictly. */

import { sha256 } from "@noble/hashes/sha2.js";
import { ascii, hex } from "./bytes.ts";
import { canonical } from "./canonical.ts";
import { AudioError } from "./errors.ts";
import { featuresOf, type MfccConfig, plainMfcc, readMfcc } from "./mfcc_config.ts";
import { type About, offersOf, readAbout } from "./offer.ts";
import * as read from "./reading.ts";
import { mostWords, plainShape, readSentenceShape, type SentenceShape, shortestSentence } from "./sentence_shape.ts";

const MODES = ["frames", "garbled"] as const;
const MOST_STEP = 3000;

/** One model of sentences. */
export type SentenceOffer = About & {
  kind: "sentences";
  terms: {
    type: string;
    /** Of the longest utterance. */
    shape: SentenceShape;
    mfcc: MfccConfig;
    /** Frames that utterances are padded to a multiple of: that multiple is public. */
    step: number;
    modes: string[];
    /** Whether the server can listen while somebody speaks. */
    streams: boolean;
    /** Whether a network scores frames: this client does not ask such a model. */
    hasNetwork: boolean;
  };
};

/** The models of sentences in a description. Raises ProtocolError for one that cannot be read to the last field. */
export function readSentences(description: Uint8Array): SentenceOffer[] {
  return offersOf(description, "sentences").map(readOffer);
}

function readOffer(plain: unknown): SentenceOffer {
  const { about, given } = readAbout(plain, ["type", "shape", "mfcc", "step", "modes", "streams"]);
  const { shape, hasNetwork } = readSentenceShape(given.shape);
  const mfcc = readMfcc(given.mfcc);
  const modes = read.list(given.modes, "modes", MODES.length).map((mode) => read.oneOf(mode, "modes", MODES));
  if (new Set(modes).size < modes.length || !modes.includes("frames")) throw read.refused("modes have frames among them");
  const step = read.whole(given.step, "step", 1, MOST_STEP);
  if (shape.frames % step) throw read.refused(`utterances have whole steps, got one of ${step} in ${shape.frames} frames`);
  if (shape.most_words !== mostWords(shape.frames)) throw read.refused(`in ${shape.frames} frames are ${mostWords(shape.frames)} words at the most`);
  if (shape.dimensions !== featuresOf(mfcc)) {
    throw read.refused(`the model takes ${shape.dimensions} numbers, the front end gives ${featuresOf(mfcc)}`);
  }
  const streams = read.truth(given.streams, "streams");
  return { ...about, kind: "sentences", terms: { type: read.text(given.type, "type", 200), shape, mfcc, step, modes, streams, hasNetwork } };
}

/** What both parties mean: this model, in this shape and way. */
export function sentenceAgreement({ fingerprint, terms }: SentenceOffer): { model: string; terms: string } {
  const { type, shape, mfcc, step, modes, streams } = terms;
  const plain = { type, shape: plainShape(shape), mfcc: plainMfcc(mfcc), step, modes, streams };
  return { model: fingerprint, terms: hex(sha256(ascii(canonical(plain)))) };
}

/** What an utterance of so many frames is padded to. Raises AudioError if it is too short or too long. */
export function stepsOf({ shape, mfcc, step }: SentenceOffer["terms"], frames: number): number {
  const shortest = shortestSentence(shape);
  if (frames < shortest || frames > shape.frames) {
    const seconds = (count: number) => (mfcc.window_s + (count - 1) * mfcc.hop_s).toFixed(2);
    throw new AudioError(
      `a sentence lasts ${seconds(shortest)} to ${seconds(shape.frames)} s here (${shortest} to ${shape.frames} frames), ` +
        `got ${seconds(frames)} s: ${frames < shortest ? "record more" : "cut it at a pause"}`,
    );
  }
  return Math.ceil(frames / step);
}
