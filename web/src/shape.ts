/** The public sizes of a model of words, checked: they are the server's word. */

import { canonical, Double, type Plain } from "./canonical.ts";
import { type Cut, cutProduct } from "./cut.ts";
import { AudioError, ProtocolError } from "./errors.ts";
import * as read from "./reading.ts";

export type Shape = {
  frames: number; dimensions: number; terms: "full" | "diagonal" | "linear";
  words: number; states: number; ends: number[]; components: number; moves: number[]; starts: number[];
  operation: "forward" | "viterbi"; reject: boolean; label_bytes: number; bits: number; fraction: number;
  limit: number; radius: number | null; floor: number | null; reach: number | null;
};

const MOST = { frames: 3000, dimensions: 200, words: 1000, states: 1000, components: 256, label_bytes: 252 };
const MOST_LINEAR = 6144; // dimensions of vectors that are scored linearly
const DOUBLES = ["limit", "radius"];
const RAREST = 100; // nats of the rarest move
const APART = 16; // nats between what no path has reached and any path
const VAGUE = 4;

/** A shape from JSON. Raises ProtocolError for one that is none, or more than a client agrees to. */
export function readShape(plain: unknown): Shape {
  const given = read.object(plain, "a shape", [
    "frames", "dimensions", "terms", "words", "states", "ends", "components", "moves", "starts", "operation", "reject",
    "label_bytes", "bits", "fraction", "limit", "radius", "floor", "reach",
  ]);
  const most = given.terms === "linear" ? { ...MOST, dimensions: MOST_LINEAR } : MOST;
  const size = (name: keyof typeof MOST) => read.whole(given[name], name, 1, most[name]);
  const shape: Shape = {
    frames: size("frames"), dimensions: size("dimensions"), terms: read.oneOf(given.terms, "terms", ["full", "diagonal", "linear"]),
    words: size("words"), states: size("states"), ends: [], components: size("components"), moves: [], starts: [],
    operation: read.oneOf(given.operation, "operation", ["forward", "viterbi"]),
    reject: read.truth(given.reject, "reject"), label_bytes: size("label_bytes"),
    bits: read.whole(given.bits, "bits", 12, 32), fraction: read.whole(given.fraction, "fraction", 0, 10),
    limit: read.real(given.limit, "limit", Number.MIN_VALUE, 100),
    radius: given.radius === null ? null : read.real(given.radius, "radius", Number.MIN_VALUE, 1e4),
    floor: given.floor === null ? null : read.whole(given.floor, "floor", 1, 2 ** 25),
    reach: given.reach === null ? null : read.whole(given.reach, "reach", 1, 25),
  };
  shape.starts = read.ascending(given.starts, "starts", 0, shape.states - 1);
  shape.ends = read.ascending(given.ends, "ends", 0, shape.states - 1);
  shape.moves = read.ascending(given.moves, "moves", -999, 999);
  checkRange(shape);
  shortest(shape);
  return shape;
}

/** No score leaves its ring (Theorem 2.16 of the package), or the shape is refused. */
function checkRange(shape: Shape): void {
  const { frames, states, fraction, bits, moves, reach } = shape;
  const most = moves[0]! >= 0 ? Math.min(states, frames) - 1 : frames - 1;
  let operations = 0;
  if (shape.operation === "forward") {
    const ahead = moves[0] === 0 ? Math.min(states, frames) * (moves.length + 3) : 0;
    operations = frames * (moves.length - 1 + levels(shape.components)) + ahead + levels(shape.ends.length);
  }
  const slack = RAREST * (1 + most) + operations + frames * 2 ** (1 - fraction);
  const deepest = Math.floor((2 ** (bits - 1 - fraction) - 2 * (slack + APART)) / frames);
  if ((shape.floor ?? 1) > deepest) throw new ProtocolError(`scores of ${frames} frames do not fit in ${bits} bits`);
  const [low, high] = [Math.max(bits - fraction, VAGUE + 2), Math.min(25, 32 - fraction)];
  if (reach !== null && (shape.floor === null || reach < low || reach > high)) {
    throw new ProtocolError(`a floor on shares has a reach of ${low} to ${high}, got ${reach}`);
  }
}

function levels(count: number): number {
  return Math.ceil(Math.log2(count));
}

/** As both parties hash it: limit and radius are doubles. */
export function canonicalShape(shape: Shape): string {
  const plain: { [key: string]: Plain } = {};
  for (const [name, value] of Object.entries(shape)) {
    plain[name] = DOUBLES.includes(name) && value !== null ? new Double(value as number) : (value as Plain);
  }
  return canonical(plain);
}

/** Frames of the shortest path from a start to an end. */
export function shortest(shape: Shape): number {
  let reached = new Set(shape.starts);
  for (let frames = 1; frames <= shape.states; frames++) {
    if (shape.ends.some((end) => reached.has(end))) return frames;
    const after = new Set<number>();
    for (const state of reached) {
      for (const move of shape.moves) if (state + move >= 0 && state + move < shape.states) after.add(state + move);
    }
    reached = after;
  }
  throw new ProtocolError("no path leads from a start of the model to an end");
}

/** Scores of a frame. */
export function columnsOf(shape: Shape): number {
  return shape.words * shape.states * shape.components + Number(shape.reject);
}

/** Ways from a state to one of its word a frame later. */
export function arcsOf({ words, states, moves }: Shape): number {
  return words * moves.reduce((sum, move) => sum + Math.max(0, states - Math.abs(move)), 0);
}

/** Which monomials a frame becomes, and within which bounds. */
export type FrameShape = { dimensions: number; terms: Shape["terms"]; limit: number; radius: number | null };

export function monomialsOf(shape: FrameShape): number {
  const z = shape.dimensions + 1;
  return shape.terms === "full" ? (z * (z + 1)) / 2 : shape.terms === "diagonal" ? 2 * z - 1 : z;
}

export function cutOf(shape: Shape, utterances: number): Cut {
  const [bits, fraction] = shape.reach === null ? [shape.bits, shape.fraction] : [32, 32 - shape.reach];
  const limit = Math.max(1, shape.limit ** 2);
  return cutProduct(utterances * shape.frames, monomialsOf(shape), columnsOf(shape), limit, bits, fraction);
}

/** One frame within radius and limit, as monomials. */
export function frameMonomials(shape: FrameShape, frame: ArrayLike<number>): number[] {
  let x = Array.from(frame);
  if (shape.radius !== null) {
    const norm = Math.sqrt(x.reduce((sum, value) => sum + value * value, 0));
    const part = shape.radius / Math.max(norm, shape.radius);
    x = x.map((value) => value * part);
  }
  x = x.map((value) => Math.min(Math.max(value, -shape.limit), shape.limit));
  const z = [...x, 1];
  if (shape.terms === "linear") return z;
  if (shape.terms === "diagonal") return [...x.map((value) => value * value), ...z];
  const full: number[] = [];
  for (let i = 0; i < z.length; i++) for (let j = i; j < z.length; j++) full.push(z[i]! * z[j]!);
  return full;
}

/** Monomials of an utterance, its last frame repeated up to the public length. Raises AudioError for what cannot be. */
export function paddedMonomials(shape: Shape, rows: ArrayLike<number>[]): Float64Array {
  const least = shortest(shape);
  if (rows.length < least || rows.length > shape.frames) {
    throw new AudioError(
      `an utterance has ${least} to ${shape.frames} frames here, got ${rows.length}: speak longer or shorter`,
    );
  }
  const inner = monomialsOf(shape);
  const out = monomialRows(shape, rows, shape.frames);
  for (let t = rows.length; t < shape.frames; t++) out.copyWithin(t * inner, (rows.length - 1) * inner, rows.length * inner);
  return out;
}

/** Monomials of frames, and zeros up to so many frames. Raises AudioError for what is not finite. */
export function monomialRows(shape: FrameShape, rows: ArrayLike<number>[], frames: number): Float64Array {
  const inner = monomialsOf(shape);
  const out = new Float64Array(frames * inner);
  rows.forEach((row, t) => out.set(frameMonomials(shape, row), t * inner));
  if (!out.every(Number.isFinite)) throw new AudioError("frames hold values that are not finite");
  return out;
}
