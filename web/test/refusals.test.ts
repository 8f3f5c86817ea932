/** What a server may send and a client must not take: tables of bad input and the words of the error. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { offerKeys } from "../src/base_transfer.ts";
import { Carrier, type WebSocketLike } from "../src/carrier.ts";
import { connect } from "../src/client.ts";
import { Door } from "../src/door.ts";
import { AudioError, BudgetSpentError, NotNowError } from "../src/errors.ts";
import { joined } from "../src/bytes.ts";
import { Flights } from "../src/flights.ts";
import { FrontEnd } from "../src/front_end.ts";
import { headInput, readHeads } from "../src/head_terms.ts";
import { ASK, TABLES } from "../src/kinds.ts";
import { USUAL } from "../src/mfcc_config.ts";
import { chooseOffer, readOffers } from "../src/offer.ts";
import { systemRandom } from "../src/random.ts";
import { ask, encodeRequest, readReady, WORDS } from "../src/requests.ts";
import { paddedMonomials, readShape } from "../src/shape.ts";
import { checkDirection, readSpeakers } from "../src/speaker_terms.ts";
import { encodeHello, packHeader, readNonce, sessionName, whyRefused, Wire } from "../src/wire.ts";
import { WordQuestion } from "../src/word_question.ts";
import { readLabel } from "../src/words.ts";
import { fromHex, kernel, Script, vectors } from "./vectors.ts";

const SESSION = Uint8Array.from({ length: 16 }, (_, i) => i + 1);

test("headers", () => {
  const header = (changes: (view: DataView) => void = () => undefined) => {
    const bytes = packHeader(7, SESSION, 3, 5);
    changes(new DataView(bytes.buffer));
    return whyRefused(bytes, 7, SESSION, 3, { exactly: 5 });
  };
  assert.equal(header(), null);
  const table: [string, (view: DataView) => void, RegExp][] = [
    ["magic", (view) => view.setUint16(0, 0x5054), /does not speak/],
    ["version", (view) => view.setUint8(2, 2), /version 2/],
    ["kind", (view) => view.setUint8(3, 8), /kind 7, got kind 8/],
    ["abort", (view) => view.setUint8(3, 255), /does not say why/],
    ["session", (view) => view.setUint8(4, 0), /another session/],
    ["sequence", (view) => view.setUint32(20, 4), /frame 3, got 4/],
    ["longer", (view) => view.setUint32(24, 6), /6 bytes where exactly 5/],
    ["shorter", (view) => view.setUint32(24, 4), /4 bytes where exactly 5/],
  ];
  for (const [what, changes, why] of table) assert.match(header(changes) ?? "nothing", why, what);
  assert.match(whyRefused(packHeader(7, SESSION, 3, 11), 7, SESSION, 3, { atMost: 10 }) ?? "", /at most 10/);
});

test("hello", () => {
  const nonce = "000102030405060708090a0b0c0d0e0f";
  const good = `{"nonce":"${nonce}","params":{},"protocol":"describe","version":1}`;
  const bytes = (text: string) => new TextEncoder().encode(text);
  assert.deepEqual(readNonce(bytes(good), "describe", {}), fromHex(nonce));
  const bad = [
    good.replace("describe", "health"), good.replace("{}", '{"a":1}'), good.replace(":1}", ":2}"), `${good} `, "", "[]",
    good.replace("0f", "0F"), good.replace(nonce, nonce.slice(2)), good.replace(',"params"', ', "params"'),
  ];
  for (const each of bad) assert.throws(() => readNonce(bytes(each), "describe", {}), /does not agree/, each);
});

const offer = () => ({
  name: "words", task: "Says which word.", fingerprint: "ab".repeat(32), privacy: "none", queries_left: null as unknown,
  type: "keyword_hmm", shape: { ...vectors("encodings").shape, dimensions: 39 }, mfcc: { ...USUAL } as any,
  statistics: null as unknown, modes: ["frames", "ahead"] as unknown[], batches: [1, 4] as unknown[],
});

function described(change: (each: any) => void, more: object = {}): Uint8Array {
  const each = offer();
  change(each);
  return new TextEncoder().encode(JSON.stringify({ format: 1, words: [each], ...more }));
}

test("offers", () => {
  const [good] = readOffers(described(() => undefined, { speakers: [{ name: "others" }] }));
  assert.equal(good!.terms.shape.words, 3);
  assert.throws(() => chooseOffer([], undefined), /no words/);
  assert.throws(() => chooseOffer([good!, good!], undefined), /several models/);
  assert.throws(() => chooseOffer([good!], "other"), /does not offer "other", only words/);
  const table: [string, (each: any) => void, RegExp][] = [
    ["a field more", (each) => (each.more = 1), /"more", which is not known/],
    ["a field less", (each) => delete each.privacy, /lacks privacy/],
    ["a name", (each) => (each.name = "../x"), /named by letters/],
    ["a fingerprint", (each) => (each.fingerprint = "xy"), /64 hexadecimal/],
    ["queries", (each) => (each.queries_left = -1), /queries_left/],
    ["no frames", (each) => (each.modes = ["ahead"]), /frames among them/],
    ["a mode", (each) => (each.modes = ["frames", "rot13"]), /modes is one of/],
    ["batches", (each) => (each.batches = [4, 1]), /ascending/],
    ["frames", (each) => (each.shape.frames = 1e9), /frames must lie in 1..3000/],
    ["words", (each) => (each.shape.words = 0), /words must lie/],
    ["a truth as a number", (each) => (each.shape.words = true), /words must lie/],
    ["bits", (each) => (each.shape.bits = 33), /bits must lie in 12..32/],
    ["too few bits", (each) => (each.shape.bits = 12), /do not fit in 12 bits/],
    ["states", (each) => (each.shape.ends = [3]), /ends must lie/],
    ["no end", (each) => (each.shape.ends = []), /ends are ascending/],
    ["no path", (each) => (each.shape.moves = [0]), /no path/],
    ["turning back ahead", (each) => (each.shape.moves = [-1, 0, 1]), /turn back/],
    ["an operation", (each) => (each.shape.operation = "sum"), /operation is one of/],
    ["limit", (each) => (each.shape.limit = -1), /limit must lie/],
    ["reach", (each) => (each.shape.reach = 18), /a floor on shares/],
    ["numbers of a frame", (each) => (each.shape.dimensions = 40), /takes 40 numbers, the front end gives 39/],
    ["a front end's field", (each) => (each.mfcc.more = 1), /which is not known/],
    ["a transform", (each) => (each.mfcc.window_s = 900), /more than this client computes/],
    ["filters", (each) => (each.mfcc.mel_filters = 10000), /mel_filters must lie/],
    ["no samples", (each) => (each.mfcc.hop_s = 0), /holds no samples/],
    ["public means", (each) => (each.mfcc.cmvn = "public"), /public_mean/],
    ["an encoder", (each) => (each.mfcc.encoder = { reach: 0, widths: [39, 1024], numbers: [] }), /more than this client computes/],
    ["statistics", (each) => (each.statistics = { mean: [1], std: [1], radius: null }), /mean are 156/],
  ];
  for (const [what, change, why] of table) assert.throws(() => readOffers(described(change)), why, what);
  const texts: [string, RegExp][] = [
    ["{", /no JSON/], ["[]", /no object/], ['{"format":2,"words":[]}', /format/], ['{"format":1}', /1 to 64 offers/],
    ['{"format":1,"words":{}}', /a list/], ['{"format":1,"words":[1]}', /no object/], ['{"format":1,"a":[{},{}]}', /different names/],
    ['{"format":1,"words":[{"name":{"toString":1}}]}', /lacks task/],
  ];
  for (const [text, why] of texts) assert.throws(() => readOffers(new TextEncoder().encode(text)), why, text);
  assert.throws(() => readOffers(Uint8Array.of(0xff, 0xfe)), /no JSON/);
});

/** A description of one offer of a task, changed. */
function describedAs(task: string, each: any, change: (each: any) => void): Uint8Array {
  change(each);
  return new TextEncoder().encode(JSON.stringify({ format: 1, [task]: [each] }));
}

const about = { name: "a", task: "Says.", fingerprint: "ab".repeat(32), privacy: "none", queries_left: null };

const head = () => ({
  ...about, type: "embedding_head", outcome: "client", batches: [1], ahead: 0,
  shape: {
    ...vectors("encodings").shape, frames: 1, dimensions: 192, terms: "linear", words: 3, states: 1, ends: [0], components: 1,
    moves: [0], starts: [0], floor: null, reach: null, radius: 2,
  },
  embedding: { name: "speech", weights: "cd".repeat(32), pooling: { over: "utterance", parts: 2, windows: 16 } },
  scale: { mean: Array(192).fill(0), std: Array(192).fill(1), projection: [] as unknown[] },
});

test("heads", () => {
  const [good] = readHeads(describedAs("heads", head(), () => undefined));
  assert.equal(good!.terms.pooling.parts, 2);
  const table: [string, (each: any) => void, RegExp][] = [
    ["a field more", (each) => (each.more = 1), /"more", which is not known/],
    ["a field less", (each) => delete each.scale, /lacks scale/],
    ["another network", (each) => (each.embedding.name = "voice"), /embeddings of words is one of speech/],
    ["a hash", (each) => (each.embedding.weights = "xy"), /64 hexadecimal/],
    ["parts", (each) => (each.embedding.pooling.parts = 3), /equal parts, got 16 into 3/],
    ["windows", (each) => (each.embedding.pooling.windows = 65), /windows must lie in 1..64/],
    ["pooling", (each) => (each.embedding.pooling.over = "time"), /over is one of/],
    ["means", (each) => each.scale.mean.pop(), /mean are 192, got 191/],
    ["a deviation", (each) => (each.scale.std[3] = 0), /std must lie/],
    ["a projection", (each) => (each.scale.projection = [1]), /rows of a projection have 192/],
    ["numbers of a head", (each) => (each.shape.dimensions = 96), /one vector of 192/],
    ["frames", (each) => (each.shape.frames = 2), /one vector/],
    ["no radius", (each) => (each.shape.radius = null), /within a radius/],
    ["who is told", (each) => (each.outcome = "both"), /outcome is one of/],
    ["ahead", (each) => (each.ahead = 1), /ahead must lie in 0..0/],
    ["batches", (each) => (each.batches = [2]), /begin with 1/],
  ];
  for (const [what, change, why] of table) assert.throws(() => readHeads(describedAs("heads", head(), change)), why, what);
  const row = (value: number) => Array<number>(96).fill(value);
  const { terms } = good!;
  assert.deepEqual([...headInput(terms, [row(1), row(2), row(4)])].map((x) => +(x * Math.sqrt(192)).toFixed(9)), [...row(1), ...row(3)]);
  assert.deepEqual(headInput(terms, [row(5)])[191], headInput(terms, [row(5)])[0]); // one embedding is both parts
  for (const bad of [[], [row(1).slice(1)], [row(NaN)]]) assert.throws(() => headInput(terms, bad), /96 finite numbers/);
  const window = { ...terms, pooling: { over: "window" as const, parts: 2, windows: 4 } };
  assert.throws(() => headInput(window, [row(1)]), /a window has 4 embeddings, got 1/);
  assert.equal(+(headInput(window, [9, 1, 1, 3, 3].map(row))[0]! * Math.sqrt(192)).toFixed(9), 1); // the last ones
});

test("speakers", () => {
  const voices = () => ({
    ...about, features: 4, places: 5, scoring: "linear", normed: false, cohort: 0, mixture: null as unknown, frames: 0,
    decision: "client", names: "server", enrolls: true, stores: false,
  });
  const [good] = readSpeakers(describedAs("speakers", voices(), () => undefined));
  const table: [string, (each: any) => void, RegExp][] = [
    ["a field more", (each) => (each.more = 1), /"more", which is not known/],
    ["features", (each) => (each.features = 1e6), /features must lie/],
    ["places", (each) => (each.places = 0), /places must lie/],
    ["scoring", (each) => (each.scoring = "guess"), /scoring is one of/],
    ["a cohort", (each) => (each.cohort = 3), /a cohort norms/],
    ["a mixture", (each) => (each.mixture = {}), /sizes of mixtures/],
    ["who is told", (each) => (each.decision = "both"), /decision is one of/],
    ["who learns names", (each) => (each.names = 1), /names is one of/],
    ["a truth", (each) => (each.enrolls = 1), /enrolls is true or false/],
  ];
  for (const [what, change, why] of table) assert.throws(() => readSpeakers(describedAs("speakers", voices(), change)), why, what);
  const { terms } = good!;
  assert.deepEqual([...checkDirection(terms, [0, 1.0000001, 0, 0])], [0, 1, 0, 0]);
  for (const bad of [[1], [1, 1, 0, 0], [NaN, 0, 0, 0]]) assert.throws(() => checkDirection(terms, bad), /no longer than 1/);
});

test("ready", async () => {
  assert.throws(() => readReady(Uint8Array.of(2, 0, 0, 0, 0)), /yes \(1\) or no \(0\), got 2/);
  const asked = (...said: number[]) => ask(new Script(Uint8Array.from(said)), encodeRequest(WORDS));
  assert.equal(await asked(1, 255, 255, 255, 254), 2 ** 32 - 2);
  await assert.rejects(asked(0, 0, 0, 0, 7), BudgetSpentError);
  await assert.rejects(asked(0, 255, 255, 255, 254), NotNowError);
});

test("flights", async () => {
  const flight = (...bytes: number[]) => new Flights(new Script(Uint8Array.from(bytes)));
  const table: [string, Flights, RegExp][] = [
    ["another kind", flight(ASK, 0, 0, 0, 1, 9), /kind 209, got kind 208/],
    ["another length", flight(TABLES, 0, 0, 0, 2, 9, 9), /announces 2 bytes where 1/],
    ["beyond its end", flight(TABLES, 0, 0, 0, 1), /announces 1 bytes/],
    ["half a header", flight(TABLES, 0, 0), /inside the header/],
  ];
  for (const [what, each, why] of table) await assert.rejects(each.receive(TABLES, { exactly: 1 }), why, what);
  const left = flight(TABLES, 0, 0, 0, 1, 9, 1);
  await left.receive(TABLES, { exactly: 1 });
  assert.throws(() => left.finish(), /1 bytes that no step asked for/);
});

test("points that are none", async () => {
  const good = vectors("transfers").base.reply.slice(0, 64);
  const bad = [
    "01" + "00".repeat(31), // neutral
    "ec" + "ff".repeat(30) + "7f", // of order 2
    "00".repeat(32), // of order 4
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", // of order 8
    "ee" + "ff".repeat(30) + "7f", // not in its one form
    "02" + "00".repeat(31), // not on the curve
  ];
  for (const point of bad) {
    for (const reply of [good + point, point + good]) {
      await assert.rejects(offerKeys(kernel, new Script(fromHex(reply)), 1, systemRandom), /no point of the group/, point);
    }
  }
});

test("a model with more arcs than can be followed", async () => {
  const states = { states: 100, starts: [0], ends: [0], moves: Array.from({ length: 99 }, (_, i) => i - 49) };
  const shape = readShape({ ...vectors("encodings").shape, ...states, frames: 1, words: 100, components: 1, floor: null, reach: null });
  await assert.rejects(WordQuestion.of("words", shape, "frames"), /more arcs than this client follows/);
});

test("labels are shown, whatever they hold", async () => {
  const bytes = (...letters: number[]) => Uint8Array.from(letters);
  assert.equal(readLabel(bytes(0, 0, 0)), null);
  assert.equal(readLabel(bytes(0x61, 0xff, 0x07, 0)), "a\ufffd\ufffd");
  assert.equal(readLabel(bytes(0x61, 0, 0x62)), "a\ufffdb");
  assert.equal(readLabel(new TextEncoder().encode("Zoë am")), "Zoë am");
  // One that holds nothing is an error after which we stay: whoever is left, or told so, learns which label it was.
  const question = await WordQuestion.of("words", readShape({ ...vectors("encodings").shape, reject: false }), "frames");
  assert.throws(() => question.read(bytes(0, 0)), AudioError);
});

test("sound", () => {
  const hears = (samples: number[] | Float32Array, rate = 16000) => () => new FrontEnd(USUAL).frames(Float32Array.from(samples), rate);
  const noise = Float32Array.from({ length: 8000 }, (_, n) => Math.sin(n ** 1.4));
  assert.equal(hears(noise)().length, 48);
  const table: [() => unknown, RegExp][] = [
    [hears([]), /at least one sample/], [hears(noise, 0), /rate in Hz/], [hears(noise, 7000), /record at 16000/],
    [hears(noise.subarray(0, 500)), /too short: 35 ms/], [hears(new Float32Array(8000)), /silent/],
    [hears([...noise, NaN]), /NaN/],
  ];
  for (const [hear, why] of table) assert.throws(hear, why);
  const shape = readShape({ ...vectors("encodings").shape });
  const frame = [1, 2, 3];
  for (const count of [2, 13]) assert.throws(() => paddedMonomials(shape, Array(count).fill(frame)), /3 to 12 frames/);
  assert.throws(() => paddedMonomials(shape, Array(5).fill([1, NaN, 2])), /not finite/);
});

test("addresses", async () => {
  for (const address of ["ws://example.org/ws", "https://localhost/", "http://127.0.0.1:1/ws"]) {
    await assert.rejects(connect(address), /wss:/, address);
  }
});

/** A WebSocket whose other side is the test. */
function socket(): WebSocketLike & { sent: Uint8Array[] } {
  const sent: Uint8Array[] = [];
  return {
    binaryType: "", readyState: 1, sent, send: (data) => sent.push(data), close: () => undefined,
    onopen: null, onmessage: null, onclose: null, onerror: null,
  };
}

test("connections that end, or speak text", async () => {
  const table: [string, (other: WebSocketLike) => void, RegExp][] = [
    ["closes", (other) => other.onclose!({}), /closed the connection/],
    ["fails", (other) => other.onerror!({}), /connection failed/],
    ["text", (other) => other.onmessage!({ data: "hello" }), /sent text/],
  ];
  for (const [what, act, why] of table) {
    const other = socket();
    const carrier = await Carrier.open(other, 1);
    const reading = carrier.read(1, 60);
    act(other);
    await assert.rejects(reading, why, what);
    assert.throws(() => carrier.send(Uint8Array.of(1)), why);
  }
  const late = await Carrier.open(socket(), 1);
  await assert.rejects(late.read(1, 0.01), /did not answer/);
  await assert.rejects(Carrier.open({ ...socket(), readyState: 3 }, 0.01), /the connection failed/);
  const many = socket();
  const reading = (await Carrier.open(many, 1)).read(1, 0.01);
  for (let i = 0; i < 100_000; i++) many.onmessage!({ data: new ArrayBuffer(0) });
  await assert.rejects(reading, /more than any question takes/);
});

test("our own nonce sent back ends the session with one ABORT", async () => {
  const other = socket();
  const wire = new Wire(await Carrier.open(other, 1));
  const greeting = wire.greet("describe", {}, systemRandom);
  other.onmessage!({ data: joined(other.sent[0]!).buffer });
  await assert.rejects(greeting, /our own nonce/);
  assert.deepEqual(other.sent[1], joined(packHeader(255, new Uint8Array(16), 1, 1), new Uint8Array(1)));
});

test("a server that cannot count at the moment says what it offers later", async () => {
  const other = socket();
  other.send = (frame) => {
    other.sent.push(frame);
    if (other.sent.length > 1) return;
    const [ours, theirs] = [readNonce(frame.subarray(28), "describe", {}), Uint8Array.from(SESSION)];
    const say = (kind: number, session: Uint8Array, sequence: number, payload: Uint8Array) =>
      other.onmessage!({ data: joined(packHeader(kind, session, sequence, payload.length), payload).buffer });
    say(0, new Uint8Array(16), 0, encodeHello(theirs, "describe", {}));
    say(7, sessionName(ours, theirs, "describe", {}), 1, new TextEncoder().encode('{"not_now":true}'));
  };
  await assert.rejects(Door.to("", { socket: () => other }).describe(), NotNowError);
});
