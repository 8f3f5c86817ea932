/** Sentences: every vector byte for byte, what a client refuses, and what a server does not learn. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical } from "../src/canonical.ts";
import { type Asked, Recorder, ShareEngine } from "../src/engine.ts";
import { Flights } from "../src/flights.ts";
import { plainMfcc, USUAL } from "../src/mfcc_config.ts";
import type { Numbers } from "../src/packing.ts";
import { encodeRequest, SENTENCE } from "../src/requests.ts";
import { SentenceQuestion } from "../src/sentence_question.ts";
import { cutOfSentence, fieldsOf, recordsOf, shapeAtLength, shortestSentence } from "../src/sentence_shape.ts";
import { readSentences, sentenceAgreement, type SentenceOffer, stepsOf } from "../src/sentence_terms.ts";
import { followWords, sentenceCost, type SentenceJob, sentenceJob } from "../src/sentences.ts";
import { monomialRows } from "../src/shape.ts";
import { slotsOf } from "../src/trellis.ts";
import { fromHex, hex, Script, shaken, vectors } from "./vectors.ts";

const TOLD = vectors("sentences");

/** An offer of the model in the vectors, as JSON. */
const offer = () => structuredClone({
  name: "letters", task: "Writes down.", fingerprint: "cd".repeat(32), privacy: "none", queries_left: null, ...TOLD.terms,
});

function read(change: (each: any) => void = () => undefined): SentenceOffer {
  const each = offer();
  change(each);
  return readSentences(new TextEncoder().encode(JSON.stringify({ format: 1, sentences: [each] })))[0]!;
}

/** The job of utterances of so many frames. */
const jobOf = (frames: number): SentenceJob => sentenceJob(shapeAtLength(read().terms.shape, frames));

test("what is agreed on, and what is asked", () => {
  const found = read();
  const { shape, mfcc } = found.terms;
  assert.deepEqual(sentenceAgreement(found), TOLD.agreement);
  assert.ok(TOLD.terms_canonical.includes(canonical(plainMfcc(mfcc))));
  assert.equal(hex(encodeRequest(SENTENCE, "frames", 1, 1)), TOLD.request);
  assert.equal(stepsOf(found.terms, TOLD.utterance.frames), 1);
  assert.deepEqual(recordsOf(shape), TOLD.records);
  assert.deepEqual(fieldsOf(shapeAtLength(shape, 16)), TOLD.fields);
  assert.equal(shortestSentence(shape), TOLD.shortest);
  const rows = monomialRows(shape, [[3, -2], [10, 0.5]], 16);
  TOLD.factor_of_2_frames.flat().forEach((value: number, at: number) => assert.ok(Math.abs(rows[at]! - value) < 1e-12));
  for (const each of TOLD.cuts) {
    const cut = cutOfSentence({ ...shape, frames: each.frames, dimensions: each.dimensions });
    assert.deepEqual([cut.block, hex(cut.identity), cut.queryBytes, cut.replyBytes], [each.block, each.identity, each.query_bytes, each.reply_bytes]);
  }
});

test("what the program takes, and which operations run together", async () => {
  for (const told of TOLD.costs) {
    const job = jobOf(told.frames);
    const cost = await sentenceCost(job);
    assert.deepEqual(Object.fromEntries(cost.tables), told.tables);
    assert.deepEqual([cost.products, cost.bytesUp, cost.bytesDown], [told.products, told.online_bytes_client, told.online_bytes_server]);
    assert.deepEqual([...slotsOf(job.plan)].map((slot) => slot.joins.length), told.joined_in_slots);
  }
});

/** Numbers of 64 bits from SHAKE-128 of a label, of which some count. */
function numbers(label: string, count: number, bits = 64): Numbers {
  const words = new Uint32Array(shaken(label, 8 * count).buffer);
  const kept = (part: number) => (part >= 32 ? 0xffffffff : part <= 0 ? 0 : 2 ** part - 1);
  return {
    low: Uint32Array.from({ length: count }, (_, i) => words[2 * i]! & kept(bits)),
    high: Uint32Array.from({ length: count }, (_, i) => words[2 * i + 1]! & kept(bits - 32)),
  };
}

function products(count: number) {
  return {
    choices: shaken("bits", count).map((byte) => byte & 1), got: numbers("got", count), zero: numbers("zero", count), one: numbers("one", count),
    used: 0,
  };
}

function tables(told: { [shape: string]: number }): Map<string, Asked> {
  return new Map(Object.entries(told).map(([shape, count]) => {
    const [bits, width] = shape.split(",").map(Number) as [number, number];
    const choices = shaken(`choices ${shape}`, count).map((byte) => byte & ((1 << bits) - 1));
    return [shape, { choices, pads: numbers(`pads ${shape}`, count, width), used: 0 }];
  }));
}

test("a product that carries a load", async () => {
  const { product: told } = TOLD;
  const script = new Script(fromHex(told.received));
  const engine = new ShareEngine(script, new Map(), products(4));
  const found = await engine.times(told.bits, Uint32Array.from(told.residues), told.k, Uint32Array.from(told.loads), told.width);
  assert.equal(hex(script.sent[0]!), told.sent);
  assert.deepEqual([...found.residues], told.share);
  assert.deepEqual([...found.loads], told.share_of_loads);
});

/** Run the program of the vectors with what a server sends: what is told, and what was sent. */
async function followed(received: string[]) {
  const { utterance, costs } = TOLD;
  const job = jobOf(16);
  const script = new Script(...received.map(fromHex));
  const flights = new Flights(script);
  const engine = new ShareEngine(flights, tables(costs[0].tables), products(costs[0].products));
  const shares = numbers("shares", 16 * 4, job.shape.bits).low;
  const told = await followWords(engine, job, shares, utterance.frames);
  flights.finish();
  return { told, job, sent: script.sent.map(hex) };
}

test("an utterance from shares of its scores to its words, byte for byte", async () => {
  const { utterance } = TOLD;
  const { told, job, sent } = await followed(utterance.received);
  assert.deepEqual(sent, utterance.sent);
  const heard = told.filter(({ counts }) => counts).reverse();
  assert.deepEqual(heard.map(({ word, start, end }) => [job.shape.words[word], start, end]), utterance.heard);
  const { hop_s: hop } = read().terms.mfcc;
  const words = (await SentenceQuestion.of(read())).read(told);
  assert.deepEqual(words, utterance.heard.slice(0, -1).map(([word, start, end]: any) => ({ word, start: start * hop, end: end * hop })));
});

test("a server that changes what it opens sees as many messages of the same lengths, and no more", async () => {
  const { utterance } = TOLD;
  const question = await SentenceQuestion.of(read());
  let refused = 0;
  for (let opened = 0; opened < 512; opened += 7) { // the first token, two bytes at the end of a flight: frame, word, junction
    const received = [...utterance.received];
    received[received.length - 4] = received.at(-4).slice(0, -4) + hex(Uint8Array.of(opened, opened >> 8));
    const { told, sent } = await followed(received);
    assert.deepEqual(sent.map((each) => each.length), utterance.sent.map((each: string) => each.length));
    assert.equal(told.length, utterance.heard.length);
    assert.ok(told.every(({ word, start, end, counts }) => !counts || (word < 3 && start < end)));
    try {
      assert.ok(question.read(told).every(({ word }) => word));
    } catch (error) {
      assert.match(String(error), /AudioError: more than 4 words and pauses/);
      refused++;
    }
  }
  assert.ok(refused > 0);
});

test("a record is looked for wherever it is alike", async () => {
  const asked: number[][] = [];
  class Listening extends Recorder {
    override async ask(groups: Parameters<Recorder["ask"]>[0]): Promise<Numbers[]> {
      asked.push(groups.map(({ indices }) => indices.length));
      return super.ask(groups);
    }
  }
  const job = jobOf(32);
  const seen = [];
  for (const frames of [3, 20, 32]) {
    asked.length = 0;
    await followWords(new Listening(), job, new Uint32Array(32 * 4), frames);
    seen.push(JSON.stringify(asked));
  }
  assert.equal(new Set(seen).size, 1);
});

test("offers", () => {
  const table: [string, (each: any) => void, RegExp][] = [
    ["a field more", (each) => (each.more = 1), /"more", which is not known/],
    ["a field less", (each) => delete each.step, /lacks step/],
    ["a shape's field", (each) => (each.shape.more = 1), /which is not known/],
    ["no mode", (each) => (each.modes = ["garbled"]), /frames among them/],
    ["a mode", (each) => (each.modes = ["frames", "ahead"]), /modes is one of/],
    ["twice a mode", (each) => (each.modes = ["frames", "frames"]), /frames among them/],
    ["steps", (each) => (each.step = 5), /whole steps/],
    ["no step", (each) => (each.step = 0), /step must lie/],
    ["streams", (each) => (each.streams = 1), /streams is true or false/],
    ["frames", (each) => (each.shape.frames = 4000), /frames must lie in 1..3000/],
    ["records", (each) => (each.shape.most_words = 500), /are 6 words at the most/],
    ["bits", (each) => (each.shape.bits = 33), /bits must lie in 4..32/],
    ["fraction", (each) => (each.shape.fraction = 11), /fraction must lie/],
    ["limit", (each) => (each.shape.limit = 0), /limit must lie/],
    ["radius", (each) => (each.shape.radius = null), /radius must lie/],
    ["terms", (each) => (each.shape.terms = "cubic"), /terms is one of/],
    ["numbers of a frame", (each) => (each.shape.dimensions = 3), /takes 3 numbers, the front end gives 2/],
    ["no words", (each) => (each.shape.words = []), /word|arcs/],
    ["a long word", (each) => (each.shape.words[1] = "ö".repeat(200)), /printable, and has up to 252/],
    ["a word that is none", (each) => (each.shape.words[1] = "a\u202eb"), /printable/],
    ["no vertices", (each) => (each.shape.columns = []), /must lie in 0..-1/],
    ["no states", (each) => (each.shape.columns = [-1, -1, -1, -1, -1, -1]), /column of the scores/],
    ["a column that is none's", (each) => (each.shape.columns[4] = 7), /column of the scores/],
    ["an end that is a state", (each) => (each.shape.end = 1), /ends in a junction/],
    ["an end beyond", (each) => (each.shape.end = 6), /end must lie in 0..5/],
    ["an arc beyond", (each) => (each.shape.arcs[0][1] = 6), /arcs must lie in 0..5/],
    ["a short arc", (each) => each.shape.arcs[0].pop(), /each of arcs has 4/],
    ["a long arc", (each) => each.shape.arcs[0].push(0), /arcs is a list of up to 4/],
    ["an arc in between", (each) => (each.shape.arcs[0][0] = 0.5), /arcs must lie/],
    ["a word beyond", (each) => (each.shape.arcs[4][3] = 3), /arcs must lie in -1..2/],
    ["a word within a word", (each) => (each.shape.arcs[5][2] = 1), /begin where junctions lead/],
    ["no start", (each) => (each.shape.starts = []), /at least one/],
    ["the same start", (each) => each.shape.starts.push([1, 0]), /different vertices/],
    ["a start in no time", (each) => each.shape.starts.push([0, -1]), /within its frame/],
    ["a circle", (each) => each.shape.arcs.push([0, 5, 0, -1], [5, 0, 0, -1]), /in a circle/],
    ["a circle of one", (each) => each.shape.arcs.push([0, 0, 0, -1]), /in a circle/],
    ["no way", (each) => (each.shape.arcs = each.shape.arcs.filter(([, target]: number[]) => target !== 5)), /can end/],
    ["many cells", (each) => Object.assign(each.shape, {
      frames: 2992, most_words: 376, arcs: Array(1500).fill(each.shape.arcs[0]),
    }), /more than can be followed/],
    ["a front end's field", (each) => (each.mfcc.more = 1), /which is not known/],
    ["a transform", (each) => (each.mfcc.window_s = 900), /more than this client computes/],
  ];
  for (const [what, change, why] of table) assert.throws(() => read(change), why, what);
  assert.throws(() => readSentences(new TextEncoder().encode('{"format":1,"sentences":{}}')), /a list/);
});

test("models that this client does not ask", async () => {
  const table: [string, (each: any) => void, RegExp][] = [
    ["a network", (each) => (each.shape.network = { layers: [] }), /letters scores frames by a network.*ppspeech transcribe/],
    ["what travels", (each) => Object.assign(each.shape, { frames: 3000, most_words: 377, dimensions: 200, terms: "full" }), /256 MiB/],
    ["a graph", (each) => Object.assign(each.shape, { frames: 16, most_words: 4, arcs: Array(20000).fill(each.shape.arcs[0]).concat(each.shape.arcs) }), /larger graph/],
  ];
  for (const [what, change, why] of table) {
    const step = { step: 1, mfcc: { ...USUAL, cepstra: 2, deltas: 0 } };
    const found = read((each) => (Object.assign(each, step), change(each), (each.mfcc.cepstra = each.mfcc.mel_filters = each.shape.dimensions)));
    await assert.rejects(SentenceQuestion.of(found), why, what);
  }
});

test("sound that is too short or too long is refused before anything is sent", async () => {
  const question = await SentenceQuestion.of(read());
  for (const count of [0, 33]) await assert.rejects(question.about(Array(count).fill([0, 0])), /a sentence lasts .* s here \(1 to 32 frames\)/);
  await assert.rejects(question.about(Array(5).fill([0, NaN])), /not finite/);
});
