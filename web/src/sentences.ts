/** Which words were said, and when: the program on shares, from scores to words (wire.md, section 13). Runs on a Recorder too. */

import { choose } from "./choose.ts";
import { best } from "./compare.ts";
import { type Cost, type Engine, Recorder } from "./engine.ts";
import { mask } from "./packing.ts";
import { follow } from "./recursion.ts";
import { graphOf, scoresOf, type SentenceGraph, type SentenceShape } from "./sentence_shape.ts";
import { type Plan, planTrellis } from "./trellis.ts";

/** What is public about a question: sizes, the graph, and which operations on it run together. */
export type SentenceJob = { shape: SentenceShape; graph: SentenceGraph; plan: Plan };

/** A record that was opened: the number of a word, and its frames `start` to `end - 1`. `counts`: 1, or 0 for what means nothing. */
export type Told = { word: number; start: number; end: number; counts: number };

export function sentenceJob(shape: SentenceShape): SentenceJob {
  const graph = graphOf(shape);
  return { shape, graph, plan: planTrellis(graph.trellis, shape.frames) };
}

/** What the program takes, from sizes alone. */
export async function sentenceCost(job: SentenceJob): Promise<Cost> {
  const recorder = new Recorder();
  await followWords(recorder, job, new Uint32Array(job.shape.frames * scoresOf(job.shape)), 1);
  return recorder.cost;
}

/**
 * What was heard, the last word first, from our shares of scores `(frames, columns)`; `frames`: how many are the
 * utterance's. As many records are asked for as there may be words, whatever they say.
 */
export async function followWords(engine: Engine, job: SentenceJob, scores: Uint32Array, frames: number): Promise<Told[]> {
  const { shape, graph, plan } = job;
  const width = graph.fields.reduce((sum, bits) => sum + bits, 0);
  const { fields } = await follow(plan, scores, 1, shape.bits, (left, right) => best(engine, left, right, shape.bits, width));
  const [count, junctions] = [plan.nodes.length, graph.records.length];
  const records = Uint32Array.from({ length: shape.frames * junctions }, (_, at) => {
    return fields[Math.floor(at / junctions) * count + graph.records[at % junctions]!]!;
  });
  return walkBack(engine, job, records, width, frames);
}

/** From word to word, back from the end: each record by an index that depends on the one before, and is ours alone. */
async function walkBack(engine: Engine, job: SentenceJob, records: Uint32Array, width: number, frames: number): Promise<Told[]> {
  const { shape, graph } = job;
  const [[frameBits, wordBits], junctions] = [graph.fields, graph.records.length];
  const told: Told[] = [];
  let [at, end, goesOn] = [(frames - 1) * junctions + graph.records.indexOf(shape.end), frames, 1];
  while (told.length < shape.most_words) {
    const own = (await choose(engine, null, records.length, [at], width)).low[0]!;
    const other = (await engine.opened(1, width)).low[0]!;
    const token = (((own + other) & mask(width)) ^ entryAt(records, at)) >>> 0;
    const [start, word, origin] = [token & mask(frameBits), (token >>> frameBits) & mask(wordBits), token >>> (frameBits + wordBits)];
    // A server that does not keep to the protocol must not see that this was noticed: we go on as with any other answer.
    const counts = goesOn & isLess(start, end) & isLess(word, shape.words.length) & isLess(origin, junctions);
    told.push({ word, start, end, counts });
    goesOn = counts & isLess(0, start);
    at = -goesOn & ((start - 1) * junctions + origin);
    end = 1 + (-goesOn & (start - 1));
  }
  return told;
}

/** 1 or 0, of numbers below 2^31, without a branch. */
function isLess(one: number, other: number): number {
  return (one - other) >>> 31;
}

/** The entry at a place that is secret: all are read. */
function entryAt(values: Uint32Array, place: number): number {
  let found = 0;
  for (let i = 0; i < values.length; i++) found |= values[i]! & -(((i ^ place) - 1) >>> 31);
  return found;
}
