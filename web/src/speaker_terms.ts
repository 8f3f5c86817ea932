/** The terms on which enrolled speakers are asked, read strictly. */

import { sha256 } from "@noble/hashes/sha2.js";
import { ascii, hex } from "./bytes.ts";
import { canonical, type Plain } from "./canonical.ts";
import { type Cut, cutProduct } from "./cut.ts";
import { AudioError } from "./errors.ts";
import { type About, offersOf, readAbout } from "./offer.ts";
import * as read from "./reading.ts";

const FIELDS = [
  "features", "places", "scoring", "normed", "cohort", "mixture", "frames", "decision", "names", "enrolls", "stores",
];
const [MOST_FEATURES, MOST_PLACES, MOST_COHORT, MOST_FRAMES] = [20_000, 10_000, 64, 4096];
const LONGER = 1 + 1e-6; // by what a direction may be longer than 1: one in single precision is

/** Bits of a shared score. */
export const SCORE_BITS = 21;
const WEIGHTS = { bits: 30, fraction: 18 };

/** Speakers enrolled with one model. */
export type SpeakerOffer = About & {
  terms: {
    /** Numbers of a direction. */
    features: number;
    /** Enrolled speakers, and empty places that look the same. */
    places: number;
    scoring: "linear" | "gmm" | "hardened";
    normed: boolean;
    cohort: number;
    /** As many frames of a trial are used for a direction; 0 for all. */
    frames: number;
    /** Who learns whether a claim is accepted. */
    decision: "client" | "server";
  };
  /** As both parties hash them. */
  spelled: string;
};

/** The speakers in a description. Raises ProtocolError for an offer that cannot be read to the last field. */
export function readSpeakers(description: Uint8Array): SpeakerOffer[] {
  return offersOf(description, "speakers").map(readOffer);
}

function readOffer(plain: unknown): SpeakerOffer {
  const { about, given } = readAbout(plain, FIELDS);
  const sides = ["client", "server"] as const;
  const terms = {
    features: read.whole(given.features, "features", 1, MOST_FEATURES),
    places: read.whole(given.places, "places", 1, MOST_PLACES),
    scoring: read.oneOf(given.scoring, "scoring", ["linear", "gmm", "hardened"]),
    normed: read.truth(given.normed, "normed"),
    cohort: read.whole(given.cohort, "cohort", 0, MOST_COHORT),
    frames: read.whole(given.frames, "frames", 0, MOST_FRAMES),
    decision: read.oneOf(given.decision, "decision", sides),
  };
  read.oneOf(given.names, "names", sides);
  read.truth(given.enrolls, "enrolls");
  read.truth(given.stores, "stores");
  if ((given.mixture !== null) !== (terms.scoring === "gmm")) throw read.refused("sizes of mixtures are told where mixtures are scored");
  if (terms.cohort && !terms.normed) throw read.refused("a cohort norms the scores");
  const all = Object.fromEntries(FIELDS.map((field) => [field, given[field]]));
  // Mixtures hold doubles, whose spelling is not ours to guess: this client does not ask them.
  const spelled = terms.scoring === "gmm" ? "" : canonical({ ...all, fingerprint: about.fingerprint } as { [key: string]: Plain });
  return { ...about, terms, spelled };
}

/** What both parties mean: this model, scored in this way. */
export function speakerAgreement({ fingerprint, spelled }: SpeakerOffer): { [key: string]: string } {
  return { model: fingerprint, terms: hex(sha256(ascii(spelled))) };
}

/** How one direction is multiplied into all models. */
export function speakerCut({ features, places, normed }: SpeakerOffer["terms"]): Cut {
  const reach = normed ? 7 : 3; // scores stay within ±2^reach
  return cutProduct(1, features, places, 1, SCORE_BITS, SCORE_BITS - 2 - reach, WEIGHTS);
}

/** A direction as our factor. Raises AudioError for one of another size, not finite or longer than 1. */
export function checkDirection({ features }: SpeakerOffer["terms"], direction: ArrayLike<number>): Float64Array {
  const given = Float64Array.from(direction);
  const length = Math.hypot(...given);
  if (given.length !== features || !(length <= LONGER)) {
    throw new AudioError(`a voice is a direction of ${features} numbers no longer than 1, got ${given.length} of length ${length}`);
  }
  return given.map((x) => Math.min(Math.max(x, -1), 1));
}
