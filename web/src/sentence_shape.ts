/** The public sizes of a model of sentences, and its graph, checked: they are the server's word. */

import { Double, type Plain } from "./canonical.ts";
import { bitLength } from "./choose.ts";
import { type Cut, cutInParts } from "./cut.ts";
import * as read from "./reading.ts";
import { monomialsOf } from "./shape.ts";
import { firstIn, type Trellis } from "./trellis.ts";

export type SentenceShape = {
  frames: number; dimensions: number; terms: "full" | "diagonal" | "linear";
  /** Of the scores, one a vertex; -1 for a junction. */
  columns: number[];
  /** Source, target, 1 where a word begins with it, and the word that is known from then on, or -1. */
  arcs: number[][];
  /** Where an utterance may begin, and the word that is known there, or -1. */
  starts: number[][];
  end: number; words: string[]; most_words: number; bits: number; fraction: number; limit: number; radius: number;
};

/** The graph of a shape: `records` are the junctions whose tokens are kept, `fields` the bits of what a token knows. */
export type SentenceGraph = { trellis: Trellis; records: number[]; fields: [number, number, number] };

const [MOST_FRAMES, MOST_DIMENSIONS, MOST_TOLD] = [3000, 200, 1000];
const [MOST_WORDS, LABEL_BYTES] = [4000, 252];
const [MOST_VERTICES, MOST_ARCS, MOST_CELLS] = [1 << 15, 1 << 17, 1 << 22];
const WORD_FRAMES = 8; // of a word or pause, on average
const [PART, ROUND] = [128, 32]; // frames whose products are made at once, and what their number is a multiple of

/** A shape from JSON, but for its network. Raises ProtocolError for one that is none, or more than can be agreed to. */
export function readSentenceShape(plain: unknown): { shape: SentenceShape; hasNetwork: boolean } {
  const given = read.object(plain, "a shape", [
    "frames", "dimensions", "terms", "columns", "arcs", "starts", "end", "words", "most_words", "bits", "fraction", "limit", "radius",
    "network",
  ]);
  const columns = read.list(given.columns, "columns", MOST_VERTICES).map((each) => read.whole(each, "columns", -1, MOST_ARCS));
  const words = read.list(given.words, "words", MOST_WORDS).map(readWord);
  const [vertex, word] = [columns.length - 1, words.length - 1];
  const shape: SentenceShape = {
    frames: read.whole(given.frames, "frames", 1, MOST_FRAMES),
    dimensions: read.whole(given.dimensions, "dimensions", 1, MOST_DIMENSIONS),
    terms: read.oneOf(given.terms, "terms", ["full", "diagonal", "linear"]), columns,
    arcs: rowsOf(given.arcs, "arcs", MOST_ARCS, [[0, vertex], [0, vertex], [0, 1], [-1, word]]),
    starts: rowsOf(given.starts, "starts", MOST_VERTICES, [[0, vertex], [-1, word]]),
    end: read.whole(given.end, "end", 0, vertex), words, most_words: read.whole(given.most_words, "most_words", 1, MOST_TOLD),
    bits: read.whole(given.bits, "bits", 4, 32), fraction: read.whole(given.fraction, "fraction", 0, 10),
    limit: read.real(given.limit, "limit", Number.MIN_VALUE, 100), radius: read.real(given.radius, "radius", Number.MIN_VALUE, 1e4),
  };
  checkGraph(shape);
  shortestSentence(shape);
  return { shape, hasNetwork: given.network !== null };
}

function readWord(plain: unknown): string {
  const word = read.text(plain, "a word", LABEL_BYTES);
  if (new TextEncoder().encode(word).length > LABEL_BYTES || /[\p{C}\p{Zl}\p{Zp}]/u.test(word)) {
    throw read.refused(`a word is printable, and has up to ${LABEL_BYTES} bytes`);
  }
  return word;
}

/** Rows of whole numbers, each place within its bounds. */
function rowsOf(plain: unknown, what: string, most: number, bounds: [number, number][]): number[][] {
  return read.list(plain, what, most).map((given) => {
    const row = read.list(given, what, bounds.length);
    if (row.length !== bounds.length) throw read.refused(`each of ${what} has ${bounds.length} numbers`);
    return row.map((each, place) => read.whole(each, what, ...bounds[place]!));
  });
}

function checkGraph(shape: SentenceShape): void {
  const { columns, arcs, starts, end, frames, words } = shape;
  if (!words.length) throw read.refused(`there are 1 to ${MOST_WORDS} words`);
  const states = new Set(columns.filter((column) => column >= 0));
  if (!states.size || Math.max(...states) !== states.size - 1) throw read.refused("every column of the scores is some vertex'");
  if (columns[end] !== -1) throw read.refused("an utterance ends in a junction");
  if (arcs.some(([source, , begins]) => begins && columns[source!] !== -1)) throw read.refused("words begin where junctions lead");
  if (frames * (arcs.length + columns.length) > MOST_CELLS) throw read.refused("its graph is more than can be followed: over fewer frames");
  const begun = new Set(starts.map(([vertex]) => vertex!));
  if (!begun.size || begun.size < starts.length) throw read.refused("starts are different vertices, at least one");
  const joined = arcs.filter(([, target]) => columns[target!] === -1);
  if (joined.some(([, target]) => begun.has(target!))) throw read.refused("nothing leads to a start within its frame");
  if (hasCircle(columns.length, joined)) throw read.refused("junctions lead to one another in a circle, in no time");
}

/** Whether arcs lead back to where they come from. */
function hasCircle(vertices: number, arcs: number[][]): boolean {
  const after: number[][] = Array.from({ length: vertices }, () => []);
  const before = new Array<number>(vertices).fill(0);
  for (const [source, target] of arcs) {
    after[source!]!.push(target!);
    before[target!]!++;
  }
  const free = [...before.keys()].filter((vertex) => !before[vertex]);
  for (const vertex of free) for (const target of after[vertex]!) if (!--before[target]!) free.push(target); // grows as it is walked
  return free.length < vertices;
}

/** Frames of the shortest utterance. Raises ProtocolError where none can end, or those of some lengths cannot. */
export function shortestSentence(shape: SentenceShape): number {
  const arcs = shape.arcs.map(([source, target]) => ({ source: source!, target: target!, keep: 0 }));
  const first = firstIn(shape.end, { columns: columnsOf(shape), arcs, starts: startsOf(shape) }, shape.frames);
  if (first === null) throw read.refused(`not every utterance of up to ${shape.frames} frames can end`);
  return first + 1;
}

/** The same for utterances of up to so many frames. */
export function shapeAtLength(shape: SentenceShape, frames: number): SentenceShape {
  return { ...shape, frames, most_words: mostWords(frames) };
}

/** Words and pauses of an utterance that a client may be told. */
export function mostWords(frames: number): number {
  return 2 + Math.ceil(frames / WORD_FRAMES);
}

/** The junctions whose tokens are kept: words set out from them, or all ends there. */
export function recordsOf({ arcs, end }: SentenceShape): number[] {
  return [...new Set([...arcs.filter(([, , begins]) => begins).map(([source]) => source!), end])].sort((a, b) => a - b);
}

/** Bits of what a token knows: the frame in which its word began, the word, and the junction that it set out from. */
export function fieldsOf(shape: SentenceShape): [number, number, number] {
  return [bitLength(shape.frames), bitLength(shape.words.length), bitLength(recordsOf(shape).length)];
}

/** The graph of tokens that know no more than 32 bits. */
export function graphOf(shape: SentenceShape): SentenceGraph {
  const [frame, word, junction] = fieldsOf(shape);
  const [ofFrame, ofWord, ofJunction] = [2 ** frame - 1, (2 ** word - 1) * 2 ** frame, (2 ** junction - 1) * 2 ** (frame + word)];
  const arcs = shape.arcs.map(([source, target, begins, known]) => ({
    source: source!, target: target!, keep: (begins ? 0 : ofFrame + ofJunction) + (known! < 0 ? ofWord : 0),
  }));
  return { trellis: { columns: columnsOf(shape), arcs, starts: startsOf(shape) }, records: recordsOf(shape), fields: [frame, word, junction] };
}

function columnsOf({ columns }: SentenceShape): (number | null)[] {
  return columns.map((column) => (column < 0 ? null : column));
}

function startsOf({ starts }: SentenceShape): number[] {
  return starts.map(([vertex]) => vertex!);
}

/** Scores of a frame. */
export function scoresOf({ columns }: SentenceShape): number {
  return 1 + columns.reduce((most, column) => Math.max(most, column), -1);
}

/** How the product of a whole utterance is cut: as one of a few frames is, so that a server of all lengths has few forms. */
export function cutOfSentence(shape: SentenceShape): Cut {
  const parts = Math.ceil(shape.frames / PART);
  const rows = Math.min(shape.frames, Math.ceil(shape.frames / (parts * ROUND)) * ROUND);
  return cutInParts(rows, shape.frames, monomialsOf(shape), scoresOf(shape), Math.max(1, shape.limit ** 2), shape.bits, shape.fraction);
}

/** As both parties hash it: limit and radius are doubles; without a network. */
export function plainShape(shape: SentenceShape): Plain {
  return { ...shape, limit: new Double(shape.limit), radius: new Double(shape.radius), network: null };
}
