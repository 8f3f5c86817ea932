/** What protects the voice: secrets are the system's, fresh, of the right distribution, and used once. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Asking } from "../src/asking.ts";
import { cutProduct } from "../src/cut.ts";
import type { Door } from "../src/door.ts";
import { ShareEngine } from "../src/engine.ts";
import { Receiver } from "../src/extension.ts";
import { drawnErrors, drawnTernary, LatticeKey, LEAKABLE_BITS } from "../src/lattice.ts";
import { drawn, systemRandom } from "../src/random.ts";
import { Session } from "../src/session.ts";
import type { SpeakerOffer } from "../src/speaker_terms.ts";
import { SpeakerClient } from "../src/speakers.ts";
import { hex, kernel, Script, shaken } from "./vectors.ts";

test("random bytes are those of the system's generator, all of them", () => {
  let filled = 0;
  const generator = crypto.getRandomValues.bind(crypto);
  const watched = mock.method(crypto, "getRandomValues", (bytes: Uint8Array<ArrayBuffer>) => {
    filled += bytes.length;
    return generator(bytes);
  });
  const bytes = drawn(systemRandom, 200_000);
  watched.mock.restore();
  assert.equal(filled, 200_000);
  const blocks = Array.from({ length: 200_000 / 16 }, (_, i) => hex(bytes.subarray(16 * i, 16 * i + 16)));
  assert.equal(new Set(blocks).size, blocks.length);
});

/** Six deviations: a false alarm once in five hundred million runs. */
function isNear(mean: number, expected: number, variance: number, count: number): boolean {
  return Math.abs(mean - expected) < 6 * Math.sqrt(variance / count);
}

test("errors and secrets have their distributions", () => {
  const errors = Array.from({ length: 64 }, () => [...drawnErrors(kernel, systemRandom)]).flat();
  const mean = (values: number[]) => values.reduce((sum, x) => sum + x, 0) / values.length;
  assert.ok(errors.every((x) => Math.abs(x) <= 21));
  assert.ok(isNear(mean(errors), 0, 10.5, errors.length));
  assert.ok(isNear(mean(errors.map((x) => x * x)), 10.5, 2 * 10.5 ** 2, errors.length));
  const ternary = Array.from({ length: 64 }, () => [...drawnTernary(systemRandom)]).flat();
  for (const value of [-1, 0, 1]) {
    assert.ok(isNear(mean(ternary.map((x) => Number(x === value))), 1 / 3, 2 / 9, ternary.length));
  }
});

test("a query is fresh every time, also of the same features", () => {
  const cut = cutProduct(12, 10, 9, 64, 25, 7);
  const key = new LatticeKey(kernel, new Uint8Array(16), systemRandom);
  const features = new Float64Array(120).fill(1);
  const queries = [key.query(cut, features), key.query(cut, features)];
  const seeds = queries.map((query) => hex(query.subarray(20, 84)));
  assert.notEqual(seeds[0], seeds[1]);
  let equal = 0;
  for (let i = 84; i < queries[0]!.length; i++) equal += Number(queries[0]![i] === queries[1]![i]);
  assert.ok(equal < 200, `${equal} of 12288 bytes are the same, 48 would be by chance`);
  const other = new LatticeKey(kernel, new Uint8Array(16), systemRandom);
  assert.notDeepEqual(key.shown, other.shown);
});

test("rows that blind the check are drawn for every message", () => {
  const keys = shaken("keys", 32 * 128);
  const pairs = Array.from({ length: 128 }, (_, i): [Uint8Array, Uint8Array] => [keys.slice(32 * i, 32 * i + 16), keys.slice(32 * i + 16, 32 * i + 32)]);
  const said = [0, 1].map(() => {
    const script = new Script();
    new Receiver(kernel, pairs, new Uint8Array(16), new Uint8Array(0)).rows(script, new Uint8Array(128), 204, systemRandom);
    return script.sent[0]!;
  });
  const column = (message: Uint8Array) => hex(message.subarray(16, 32)); // of the first, the last 128 rows
  assert.notEqual(column(said[0]!), column(said[1]!));
  assert.equal(hex(said[0]!.subarray(0, 16)), hex(said[1]!.subarray(0, 16)));
});

test("no table and no product is used twice", async () => {
  const tables = new Map([["1,1", { choices: Uint8Array.of(1, 0), pads: { low: Uint32Array.of(1, 0), high: new Uint32Array(2) }, used: 0 }]]);
  const number = (low: number) => ({ low: Uint32Array.of(low), high: Uint32Array.of(0) });
  const products = { choices: Uint8Array.of(0), got: number(1), zero: number(2), one: number(5), used: 0 };
  const script = new Script(Uint8Array.of(0), Uint8Array.of(0), new Uint8Array(4));
  const engine = new ShareEngine(script, tables, products);
  await engine.ask([{ bits: 1, width: 1, indices: [1] }]);
  await engine.ask([{ bits: 1, width: 1, indices: [1] }]);
  assert.deepEqual(script.sent.map((each) => each[0]), [0, 1]); // the same index under either choice
  await assert.rejects(engine.ask([{ bits: 1, width: 1, indices: [1] }]), /than were prepared/);
  await engine.times([1], Uint32Array.of(1), 25);
  await assert.rejects(engine.times([1], Uint32Array.of(1), 25), /than were prepared/);
});

test("what was computed aside is wiped", () => {
  const at = kernel.aside(() => kernel.put(new Uint8Array(64).fill(7)));
  assert.deepEqual(kernel.read(at, 64), new Uint8Array(64));
});

test("a key is left before the server has been told more bits than it can lose", async () => {
  for (const decision of ["server", "client"] as const) {
    const asked: number[] = [];
    const closed: number[] = [];
    const meter = { ms: 0, waited: 0, bytesUp: 0, bytesDown: 0, rounds: 0 };
    const met = mock.method(Session, "meet", async () => {
      const at = asked.push(0) - 1;
      const session = { isOver: false, isPrepared: false, meter, prepare: async () => { session.isPrepared = true; },
        finish: async () => { asked[at]! += 1; session.isPrepared = false; return null; }, close: () => closed.push(at) };
      return session as unknown as Session;
    });
    const terms = { features: 2, places: 3, scoring: "linear", cohort: 0, decision };
    const offer = { name: "voices", fingerprint: "ab", spelled: "{}", terms } as unknown as SpeakerOffer;
    const client = await SpeakerClient.of({ open: async () => null } as unknown as Door, offer);
    for (let i = 0; i < 2 * LEAKABLE_BITS + 1; i++) {
      if (i % 3 === 0) await client.prepare();
      await client.verify(0, [1, 0]);
    }
    met.mock.restore();
    assert.equal(LEAKABLE_BITS, 239);
    assert.deepEqual(asked, decision === "server" ? [239, 239, 1] : [479]);
    assert.deepEqual(closed, decision === "server" ? [0, 1] : []);
  }
});

test("a meeting that is over only after the client was closed is left", async () => {
  let arrive: (session: Session) => void;
  let closed = 0;
  const met = mock.method(Session, "meet", () => new Promise((resolve) => (arrive = resolve)));
  const asking = new Asking({ open: async () => null } as unknown as Door, { name: "words", params: {} });
  const meeting = asking.meet();
  while (!met.mock.callCount()) await null;
  asking.close();
  arrive!({ close: () => (closed += 1) } as unknown as Session);
  await assert.rejects(meeting, /the client is closed/);
  met.mock.restore();
  assert.equal(closed, 1);
});
