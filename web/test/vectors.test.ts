/** Every vector of `tests/vectors`, byte for byte, with fixed randomness: Python and TypeScript say the same. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { hashToGroup, offerKeys } from "../src/base_transfer.ts";
import { ascii, joined } from "../src/bytes.ts";
import { asDouble, canonical } from "../src/canonical.ts";
import { cutProduct, N } from "../src/cut.ts";
import { ShareEngine } from "../src/engine.ts";
import { BlockHash, plus, Receiver, Sender } from "../src/extension.ts";
import { Flights } from "../src/flights.ts";
import { FrontEnd } from "../src/front_end.ts";
import { ABORT, ASK, HELLO, PRODUCT, REQUEST } from "../src/kinds.ts";
import { LatticeKey } from "../src/lattice.ts";
import { upperBlocks } from "../src/log_add.ts";
import { USUAL } from "../src/mfcc_config.ts";
import { agreement } from "../src/offer.ts";
import { highAt, lowAt, type Numbers, pack, packedSize } from "../src/packing.ts";
import { BYE, encodeRequest, PING, readReady, WORDS } from "../src/requests.ts";
import { hashKey } from "../src/setup.ts";
import { canonicalShape, frameMonomials, readShape, shortest } from "../src/shape.ts";
import { slotsOf } from "../src/trellis.ts";
import { encodeHello, packHeader, readNonce, sessionName } from "../src/wire.ts";
import { costOf, jobOf, readLabel } from "../src/words.ts";
import { fromHex, hex, kernel, Script, sha256Hex, shaken, vectors, written } from "./vectors.ts";

test("frames, hello and requests", async () => {
  const told = vectors("frames");
  const params = { model: "ab".repeat(32) };
  const [ours, theirs] = [Uint8Array.from({ length: 16 }, (_, i) => i), Uint8Array.from({ length: 16 }, (_, i) => 16 + i)];
  const hello = (nonce: Uint8Array) => {
    const said = encodeHello(nonce, "digits", params);
    return hex(joined(packHeader(HELLO, new Uint8Array(16), 0, said.length), said));
  };
  assert.equal(hello(ours), told.hello_client);
  assert.equal(hello(theirs), told.hello_server);
  assert.deepEqual(readNonce(fromHex(told.hello_server).subarray(28), "digits", params), theirs);
  const session = sessionName(ours, theirs, "digits", params);
  assert.equal(hex(session), told.session);
  const request = encodeRequest(WORDS);
  assert.equal(hex(joined(packHeader(REQUEST, session, 1, 6), request)), told.request_frame);
  assert.equal(hex(joined(packHeader(ABORT, session, 2, 1), new Uint8Array(1))), told.abort_frame);
  assert.equal(hex(request), told.request_words);
  assert.equal(hex(encodeRequest(WORDS, "garbled", 4)), told.request_words_garbled_of_4);
  assert.equal(hex(encodeRequest(PING)), told.request_ping);
  assert.equal(hex(encodeRequest(BYE)), told.request_bye);
  assert.deepEqual(readReady(fromHex(told.ready_uncounted)), { ready: true, left: null });
  assert.deepEqual(readReady(fromHex(told.ready_819_left)), { ready: true, left: 819 });
  assert.deepEqual(readReady(fromHex(told.refused_0_left)), { ready: false, left: 0 });
  const script = new Script();
  const flights = new Flights(script);
  flights.send(PRODUCT, Uint8Array.of(1, 2, 3));
  flights.send(ASK, Uint8Array.of(4));
  flights.finish();
  assert.deepEqual(script.sent.map(hex), [told.flight_of_product_010203_and_ask_04]);
});

test("numbers, labels, shapes", () => {
  const told = vectors("encodings");
  for (const { width, numbers, bytes } of told.numbers) {
    const packed = fromHex(bytes);
    assert.equal(packedSize(numbers.length, width), packed.length);
    if (width <= 32) assert.equal(hex(pack(numbers, width)), bytes);
    numbers.forEach((number: number, i: number) => {
      assert.equal(BigInt(lowAt(packed, i, width)) + (BigInt(highAt(packed, i, width)) << 32n), exact(number));
    });
  }
  for (const { text, residues } of told.labels) {
    const letters = residues.flatMap((residue: number) => {
      const value = exact(residue);
      return Array.from({ length: 7 }, (_, b) => Number((value >> BigInt(8 * b)) & 255n));
    });
    if (residues.every(Number.isSafeInteger)) assert.equal(readLabel(Uint8Array.from(letters)), text);
  }
  const shape = readShape(told.shape);
  assert.equal(canonicalShape(shape), told.shape_canonical);
  assert.deepEqual(agreement({ fingerprint: "cd".repeat(32), terms: { shape } } as any), told.agreement);
  assert.equal(shortest(shape), told.shortest);
  for (const [terms, expected] of Object.entries(told.monomials_of_3_and_minus_2)) {
    assert.deepEqual(frameMonomials({ ...shape, terms: terms as "full" }, [3, -2]), expected);
  }
});

/** JSON has 2^56 - 2 rounded; the only one in the vectors that is. */
function exact(number: number): bigint {
  return number === 2 ** 56 ? 2n ** 56n - 2n : BigInt(number);
}

test("doubles as Python writes them", () => {
  const told: [number, string][] = [
    [8, "8.0"], [0.1, "0.1"], [1e16, "1e+16"], [1e15, "1000000000000000.0"], [1e-5, "1e-05"], [1.5e-7, "1.5e-07"],
    [0.0001, "0.0001"], [123456789.125, "123456789.125"], [-0, "-0.0"], [1.25e300, "1.25e+300"],
  ];
  for (const [value, spelled] of told) assert.equal(asDouble(value), spelled);
  assert.equal(canonical({ b: "Zoë\u{1f600}", a: [1, true, null] }), '{"a":[1,true,null],"b":"Zo\\u00eb\\ud83d\\ude00"}');
});

test("base transfers", async () => {
  const { base, setup } = vectors("transfers");
  const script = new Script(fromHex(base.reply));
  const wide = joined(fromHex(base.secret_scalar), new Uint8Array(32));
  const { pairs, said } = await offerKeys(kernel, script, 2, written(wide));
  assert.equal(hex(script.sent[0]!), base.point);
  assert.deepEqual(pairs.map((pair) => pair.map(hex)), base.keys);
  assert.equal(hex(said), base.said);
  assert.equal(hex(hashToGroup(kernel, ascii("abc"))), base.hash_to_group_of_abc);
  for (const [use, key] of Object.entries(setup.hash_keys)) assert.equal(hex(hashKey(fromHex(setup.id), use)), key);
});

test("hashes of rows", () => {
  const { block_hash: told } = vectors("transfers");
  const hash = new BlockHash(kernel, fromHex(told.key));
  assert.equal(hex(hash.of(fromHex(told.row), 16, told.number)), told.hash);
  assert.equal(hex(hash.of(fromHex(told.wide_row), 32, told.number).subarray(0, 8)), told.wide_hash_first_8);
});

test("streams of columns, their transposition and their check", () => {
  const { column_stream: stream, transposition, check } = vectors("transfers");
  const { run } = kernel;
  kernel.aside(() => {
    const [keys, expanded, out] = [kernel.put(joined(...Array(8).fill(fromHex(stream.key)))), kernel.take(11 * 128), kernel.take(8 * 48)];
    run.expandKeys(keys, expanded);
    run.streams(expanded, 0n, 3, out, 48);
    for (const column of [0, 7]) assert.equal(hex(kernel.read(out + 48 * column, 48)), stream.first_128_bits + stream.next_256_bits);
  });
  kernel.aside(() => {
    const [columns, rows] = [kernel.put(shaken("columns", 128 * 16)), kernel.take(128 * 16)];
    run.transpose(columns, 16, 128, 128, rows);
    assert.equal(sha256Hex(kernel.read(rows, 128 * 16)), transposition.rows_sha256);
    assert.equal(hex(kernel.read(rows, 16)), transposition.row_0);
    assert.equal(hex(kernel.read(rows + 127 * 16, 16)), transposition.row_127);
    const [challenge, key, found, turned] = [kernel.put(fromHex(check.challenge)), kernel.take(16), kernel.take(2048), kernel.take(2048)];
    run.zeroUnder(challenge, key);
    run.columnHashes(rows, 16, 1, key, found);
    run.transpose(found, 16, 128, 128, turned);
    check.hashes.forEach((hash: string, i: number) => assert.equal(hex(kernel.read(turned + 16 * i, 16)), hash));
  });
});

function keysOf(label: string, columns: number): [Uint8Array, Uint8Array][] {
  const all = shaken(`keys of ${label}`, 32 * columns);
  return Array.from({ length: columns }, (_, i) => [all.slice(32 * i, 32 * i + 16), all.slice(32 * i + 16, 32 * i + 32)]);
}

const residueAt = (hashed: Uint8Array, i: number) => new DataView(hashed.buffer).getBigUint64(16 * i, true);

test("extended transfers, both ends", async () => {
  const { pairs: told, sender: other, code } = vectors("transfers");
  const script = new Script();
  const receiver = new Receiver(kernel, keysOf("pairs", 128), fromHex(told.hash_key), fromHex(told.label));
  const rows = receiver.rows(script, Uint8Array.from(told.choices), 204, written(shaken("blind", 251)));
  const message = script.sent[0]!;
  assert.equal(message.length, told.message_bytes);
  assert.equal(hex(message).slice(-told.message_end.length), told.message_end);
  assert.equal(sha256Hex(message), told.message_sha256);
  const hashed = receiver.hash.of(rows, 16, 0);
  assert.deepEqual(told.residues.map((_: string, i: number) => String(residueAt(hashed, i))), told.residues);

  const bytes = shaken("secret", 16);
  const secret = Uint8Array.from({ length: 128 }, (_, i) => (bytes[i >> 3]! >> (i & 7)) & 1);
  const keys = keysOf("pairs", 128).map((pair, i) => pair[secret[i]!]!);
  const make = () => new Sender(kernel, secret, keys, fromHex(told.hash_key), fromHex(told.label));
  const sender = make();
  const sent = await sender.rows(new Script(message), 5, 204);
  const [zero, one] = [sender.hash.of(sent, 16, 0), sender.hash.of(plus(sent, sender.delta), 16, 0)];
  assert.deepEqual(other.zero.map((_: string, i: number) => String(residueAt(zero, i))), other.zero);
  assert.deepEqual(other.one.map((_: string, i: number) => String(residueAt(one, i))), other.one);
  for (const place of [0, 128 * 32 - 1, 128 * 32, message.length - 1]) { // columns, what is shown of them, and the digest
    const wrong = message.map((byte, i) => (i === place ? byte ^ 1 : byte));
    const columnCounts = place >= 128 * 32 || secret[Math.floor(place / 32)] === 1;
    if (columnCounts) await assert.rejects(make().rows(new Script(wrong), 5, 204), /it cheats/);
  }

  const asking = new Script();
  const coded = new Receiver(kernel, keysOf("code", 256), fromHex(code.hash_key), fromHex(code.label));
  const wide = coded.rows(asking, Uint8Array.from(code.choices), 205, written(shaken("blind", 251)));
  assert.equal(sha256Hex(asking.sent[0]!), code.message_sha256);
  const pads = coded.hash.of(wide, 32, 0);
  const widths = code.batches.flatMap(({ width, count }: any) => Array(count).fill(width));
  assert.deepEqual(widths.map((width: number, i: number) => Number(BigInt.asUintN(width, residueAt(pads, i)))), code.pads);
});

/** Numbers of 64 bits, as the engine holds them. */
function numbersOf(all: bigint[]): Numbers {
  return {
    low: Uint32Array.from(all, (each) => Number(each & 0xffffffffn)), high: Uint32Array.from(all, (each) => Number((each >> 32n) & 0xffffffffn)),
  };
}

test("products and look-ups on shares", async () => {
  const { product, ask } = vectors("shares");
  const script = new Script(fromHex(product.received));
  const products = {
    choices: Uint8Array.from(product.choices), got: numbersOf(product.got.map(BigInt)), zero: numbersOf(product.zero.map(BigInt)),
    one: numbersOf(product.zero.map((zero: string, i: number) => BigInt(zero) + BigInt(product.one_less_zero[i]))), used: 0,
  };
  const engine = new ShareEngine(script, new Map(), products);
  const found = (await engine.times(product.bits, Uint32Array.from(product.residues), product.k)).residues;
  assert.equal(hex(script.sent[0]!), product.sent);
  assert.deepEqual([...found], product.share);
  await assert.rejects(engine.times([1], Uint32Array.of(1), 25), /prepared/);

  const asking = new Script(shaken("tables", 48));
  const pads = { low: Uint32Array.from(ask.pads), high: new Uint32Array(3) };
  const tables = new Map([[`${ask.bits},${ask.width}`, { choices: Uint8Array.from(ask.choices), pads, used: 0 }]]);
  const looking = new ShareEngine(asking, tables, products);
  const [opened] = await looking.ask([{ bits: ask.bits, width: ask.width, indices: ask.indices }]);
  assert.equal(hex(asking.sent[0]!), ask.sent);
  assert.deepEqual([...opened!.low], ask.opened);
});

test("what programs take, and which operations run together", async () => {
  const { costs, log_add_blocks: blocks } = vectors("shares");
  for (const { k, fraction, count, widths } of blocks) assert.deepEqual(upperBlocks(k, fraction, count), widths);
  const { shape } = vectors("encodings");
  for (const told of costs) {
    const { utterances, ahead, ...changes } = told.changes;
    const job = jobOf(readShape({ ...shape, ...changes }), utterances, ahead);
    const cost = await costOf(job);
    assert.deepEqual(Object.fromEntries(cost.tables), told.tables, JSON.stringify(changes));
    assert.equal(cost.products, told.products);
    assert.equal(cost.bytesUp, told.online_bytes_client);
    assert.equal(cost.bytesDown, told.online_bytes_server);
    assert.deepEqual([...slotsOf(job.plan)].map((slot) => slot.joins.length), told.joined_in_slots);
  }
});

test("the lattice", async () => {
  const told = vectors("lattice");
  const { run } = kernel;
  const numbers = (at: number, count: number) => Array.from(new BigUint64Array(kernel.read(at, 8 * count).buffer), Number);
  kernel.aside(() => {
    const [seed, out] = [kernel.put(fromHex(told.expansion.seed)), kernel.take(8 * N)];
    run.expandSeed(seed, out);
    assert.deepEqual(numbers(out, 4), told.expansion.first_4);
    assert.equal(sha256Hex(kernel.read(out, 8 * N)), told.expansion.sha256);
    const ramp = BigUint64Array.from({ length: N }, (_, i) => BigInt(i + 1));
    const x = kernel.put(new Uint8Array(ramp.buffer));
    run.forward(x);
    assert.deepEqual(numbers(x, 4), told.transform_of_1_2_3.first_4);
    assert.equal(sha256Hex(kernel.read(x, 8 * N)), told.transform_of_1_2_3.sha256);
    run.inverse(x);
    assert.deepEqual(new BigUint64Array(kernel.read(x, 8 * N).buffer), ramp);
  });
  assert.deepEqual(told.to_32_bits.residues.map((c: number) => run.toWord(BigInt(c)) >>> 0), told.to_32_bits.words);
  assert.deepEqual(told.from_32_bits.words.map((w: number) => Number(run.fromWord(w))), told.from_32_bits.residues);

  for (const each of told.cuts) {
    const cut = cutProduct(each.rows, each.inner, each.columns, each.limit, each.bits, each.fraction);
    assert.deepEqual(cut.block, each.block);
    assert.deepEqual([cut.groups, cut.terms, cut.outputs], each.groups_terms_outputs);
    assert.equal(cut.spelled, each.spelled);
    assert.equal(hex(cut.identity), each.identity);
    assert.deepEqual([cut.queryBytes, cut.replyBytes], [each.query_bytes, each.reply_bytes]);
  }

  const ternary = Int8Array.from({ length: N }, (_, i) => ((7 * i * i + i) % 3) - 1);
  const errors = () => Int8Array.from({ length: N }, (_, i) => (i % 7) - 3);
  const cut = cutProduct(12, 10, 9, 64, 25, 7);
  const key = new LatticeKey(kernel, fromHex(told.key.coins), written(shaken("seeds", 64 * 64)), ternary, errors);
  assert.equal(hex(key.shown.subarray(0, 21)), told.key.public_first_21);
  assert.equal(sha256Hex(key.shown), told.key.public_sha256);
  assert.equal(hex(key.identity), told.key.identity);
  const features = Float64Array.from({ length: 120 }, (_, at) => ((3 * Math.floor(at / 10) + 5 * (at % 10)) % 17) - 8);
  const query = key.query(cut, features);
  assert.equal(hex(query.subarray(0, 20)), told.query.header);
  assert.equal(query.length, told.query.bytes);
  assert.equal(sha256Hex(query), told.query.sha256);
  const reply = joined(ascii("LATR"), cut.identity, key.identity, shaken("reply", told.reply.bytes - 20));
  const share = key.shares(cut, reply);
  assert.deepEqual([...share.subarray(0, 9)], told.reply.share_row_0);
  assert.equal(sha256Hex(new Uint8Array(BigUint64Array.from(share, BigInt).buffer)), told.reply.share_sha256);
  for (const place of [0, 4, 12]) {
    assert.throws(() => key.shares(cut, reply.map((byte, i) => (i === place ? byte ^ 1 : byte))), /reply/);
  }
  assert.throws(() => key.shares(cut, reply.subarray(1)), /reply/);
});

test("sound to frames", () => {
  const told = vectors("front_end");
  const sound = Float64Array.from({ length: 1600 }, (_, n) => Math.sin((n * n) / 4000) / 2);
  for (const { changes, frames, row_0, row_3 } of told.of) {
    const rows = new FrontEnd({ ...USUAL, ...changes }).frames(sound, 16000);
    assert.equal(rows.length, frames);
    for (const [row, expected] of [[rows[0]!, row_0], [rows[3]!, row_3]]) {
      expected.forEach((value: number, i: number) => assert.ok(Math.abs(row[i] - value) < 1e-4 + 5e-5, `${row[i]} for ${value}`));
    }
  }
});
