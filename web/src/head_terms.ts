/** The terms on which heads on embeddings are asked, read strictly; and how an embedding becomes a head's input. */

import { AudioError } from "./errors.ts";
import { numbers } from "./mfcc_config.ts";
import { type About, offersOf, readAbout, readBatches, shapeHash } from "./offer.ts";
import * as read from "./reading.ts";
import { readShape, type Shape } from "./shape.ts";

/** Numbers of an embedding of speech, by the public network of this name. */
export const EMBEDDING = 96;
const MOST_WINDOWS = 64;
const MOST_AHEAD = 256;
const LARGEST = 1e6;

/** How embeddings become one vector: cut into equal `parts`, each averaged; of a whole utterance, or of a window. */
export type Pooling = { over: "utterance" | "window"; parts: number; windows: number };

/** How a vector becomes a head's input: by public numbers alone. */
export type HeadScale = { mean: number[]; std: number[]; projection: number[] };

/** One head on embeddings. */
export type HeadOffer = About & {
  /** `weights`: SHA-256 of the network's file, in hexadecimal digits. */
  terms: { type: string; shape: Shape; weights: string; pooling: Pooling; scale: HeadScale; outcome: "client" | "server"; batches: number[] };
};

/** The heads in a description. Raises ProtocolError for one that cannot be read to the last field. */
export function readHeads(description: Uint8Array): HeadOffer[] {
  return offersOf(description, "heads").map(readHead);
}

function readHead(plain: unknown): HeadOffer {
  const { about, given } = readAbout(plain, ["type", "shape", "embedding", "scale", "outcome", "batches", "ahead"]);
  const shape = readShape(given.shape);
  const embedding = read.object(given.embedding, "an embedding", ["name", "weights", "pooling"]);
  read.oneOf(embedding.name, "embeddings of words", ["speech"]);
  const weights = read.text(embedding.weights, "weights", 64);
  if (!/^[0-9a-f]{64}$/.test(weights)) throw read.refused("the hash of a front end's weights is 64 hexadecimal digits");
  const pooling = readPooling(embedding.pooling);
  const scale = readScale(given.scale, EMBEDDING * pooling.parts);
  const size = scale.projection.length / scale.mean.length || scale.mean.length;
  if (shape.frames !== 1 || shape.radius === null || shape.dimensions !== size) {
    throw read.refused(`a head takes one vector of ${size} numbers within a radius`);
  }
  const outcome = read.oneOf(given.outcome, "outcome", ["client", "server"]);
  const listens = pooling.over === "window";
  read.whole(given.ahead, "ahead", listens ? 1 : 0, listens ? MOST_AHEAD : 0);
  const batches = readBatches(given.batches);
  return { ...about, terms: { type: read.text(given.type, "type", 200), shape, weights, pooling, scale, outcome, batches } };
}

function readPooling(plain: unknown): Pooling {
  const given = read.object(plain, "a pooling", ["over", "parts", "windows"]);
  const windows = read.whole(given.windows, "windows", 1, MOST_WINDOWS);
  const parts = read.whole(given.parts, "parts", 1, windows);
  if (windows % parts) throw read.refused(`windows are cut into equal parts, got ${windows} into ${parts}`);
  return { over: read.oneOf(given.over, "over", ["utterance", "window"]), parts, windows };
}

function readScale(plain: unknown, features: number): HeadScale {
  const given = read.object(plain, "a scale", ["mean", "std", "projection"]);
  const rows = read.list(given.projection, "projection", 1 << 20).length;
  if (rows % features) throw read.refused(`rows of a projection have ${features} numbers, got ${rows} in all`);
  return {
    mean: numbers(given.mean, "mean", features, -LARGEST, LARGEST), std: numbers(given.std, "std", features, Number.MIN_VALUE, LARGEST),
    projection: (given.projection as unknown[]).map((each) => read.real(each, "projection", -LARGEST, LARGEST)),
  };
}

/** What both parties mean: this bundle, in this shape, told to whom. */
export function headAgreement({ fingerprint, terms }: HeadOffer): { [key: string]: string } {
  return { model: fingerprint, outcome: terms.outcome, shape: shapeHash(terms.shape) };
}

/** A head's input from embeddings, one after the other. Raises AudioError for others than it takes. */
export function headInput({ pooling, scale }: HeadOffer["terms"], embeddings: ArrayLike<number>[]): Float64Array {
  if (!embeddings.length || embeddings.some((each) => each.length !== EMBEDDING || !Array.from(each).every(Number.isFinite))) {
    throw new AudioError(`an utterance has embeddings of ${EMBEDDING} finite numbers each, at least one`);
  }
  const vector = pooled(pooling, embeddings);
  const root = Math.sqrt(vector.length);
  const scaled = vector.map((x, i) => (x - scale.mean[i]!) / (scale.std[i]! * root));
  if (!scale.projection.length) return Float64Array.from(scaled);
  return Float64Array.from({ length: scale.projection.length / scaled.length }, (_, row) =>
    scaled.reduce((sum, x, i) => sum + x * scale.projection[row * scaled.length + i]!, 0),
  );
}

/** Averages of equal parts: of all embeddings, or of the last ones that fill a window. */
function pooled({ over, parts, windows }: Pooling, embeddings: ArrayLike<number>[]): number[] {
  if (over === "window" && embeddings.length < windows) {
    throw new AudioError(`a window has ${windows} embeddings, got ${embeddings.length}`);
  }
  const taken = over === "window" ? embeddings.slice(-windows) : embeddings;
  const cut = Array.from({ length: parts + 1 }, (_, i) => Math.floor((taken.length * i) / parts));
  return cut.slice(0, -1).flatMap((start, part) => {
    const some = taken.slice(start, Math.max(cut[part + 1]!, start + 1));
    return Array.from({ length: EMBEDDING }, (_, i) => some.reduce((sum, each) => sum + each[i]!, 0) / some.length);
  });
}
