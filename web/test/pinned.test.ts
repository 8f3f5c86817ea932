/** Servers that are known by a certificate: what the browser is told to check, and a stream that looks like a WebSocket. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Carrier } from "../src/carrier.ts";
import { connect } from "../src/client.ts";
import { hex } from "../src/bytes.ts";
import { PinnedSocket, type TransportLike, type TransportMaker } from "../src/pinned.ts";

const PIN = "0123456789abcdef".repeat(4);

/** A browser's WebTransport to a server that says `says`, ends, and hears all. */
function maker(says: Uint8Array[] = [], { isThere = true, ends = false } = {}) {
  const seen = { made: [] as { address: string; options: any }[], heard: [] as string[], ended: false, closed: 0 };
  const make = class implements TransportLike {
    ready = isThere ? Promise.resolve() : Promise.reject(new Error("a handshake failed"));
    private end: () => void = () => undefined;
    closed = new Promise<void>((resolve) => (this.end = resolve));
    constructor(address: string, options: unknown) {
      seen.made.push({ address, options });
      this.ready.catch(() => undefined);
    }
    async createBidirectionalStream() {
      const readable = new ReadableStream<Uint8Array>({ start(out) {
        for (const each of says) out.enqueue(each);
        if (ends) out.close();
      } });
      const writable = new WritableStream<Uint8Array>({
        write: (data) => void seen.heard.push(hex(data)),
        close: () => {
          seen.ended = true;
          this.end();
        },
      });
      return { readable, writable };
    }
    close() {
      seen.closed += 1;
      this.end();
    }
  } as TransportMaker;
  return { make, seen };
}

const opened = async (says: Uint8Array[] = [], how = {}) => {
  const { make, seen } = maker(says, how);
  const socket = new PinnedSocket("https://host:1/wt", [new Uint8Array(32)], make);
  return { seen, carrier: await Carrier.open(socket, 5) };
};

test("the browser is told which certificates may be shown, and no others", async () => {
  const { make, seen } = maker([], { isThere: false });
  const other = "ff".repeat(32);
  for (const pin of [PIN, [PIN.toUpperCase().match(/../g)!.join(":"), other]]) {
    await assert.rejects(connect({ url: "https://host:1/wt", pin }, { WebTransport: make }), /the connection failed/);
  }
  const pins = seen.made.map(({ options }) => options.serverCertificateHashes.map((each: any) => [each.algorithm, hex(each.value)]));
  assert.deepEqual(pins, [[["sha-256", PIN]], [["sha-256", PIN], ["sha-256", other]]]);
  assert.ok(seen.made.every(({ address, options }) => address === "https://host:1/wt" && options.allowPooling === false));
});

test("without a pin nobody is asked", async () => {
  const { make, seen } = maker();
  const url = "https://host:1/wt";
  const table: [any, RegExp][] = [
    [{ url, pin: "" }, /64 hexadecimal digits/], [{ url, pin: [] }, /got none/], [{ url, pin: PIN.slice(1) }, /64 hexadecimal/],
    [{ url, pin: [PIN, "x"] }, /got x/], [{ url, pin: `${PIN}0` }, /64 hexadecimal/], [{ url, pin: [undefined] }, /got undefined/],
    [{ url: "http://host:1/wt", pin: PIN }, /https:/], [{ url: "wss://host:1/ws", pin: PIN }, /https:/],
    [url, /connect to wss/],
  ];
  for (const [where, why] of table) await assert.rejects(connect(where, { WebTransport: make }), why);
  assert.equal(seen.made.length, 0);
  await assert.rejects(connect({ url, pin: PIN }), /no WebTransport here/);
});

test("a stream is one however it is cut", async () => {
  const { carrier, seen } = await opened([Uint8Array.of(1, 2), Uint8Array.of(3, 4, 5, 6).subarray(1), Uint8Array.of()]);
  carrier.send(Uint8Array.of(7));
  carrier.send(Uint8Array.of(8, 9));
  assert.deepEqual([...(await carrier.read(3, 5))], [1, 2, 4]);
  assert.deepEqual([...(await carrier.read(2, 5))], [5, 6]);
  await assert.rejects(carrier.read(1, 0.05), /did not answer within/);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(seen.heard, ["07", "0809"]);
  assert.ok(seen.ended, "what was said is not cut off by the end");
  assert.ok(seen.closed >= 1);
  assert.throws(() => carrier.send(Uint8Array.of(1)));
});

test("a server that ends", async () => {
  const { carrier } = await opened([Uint8Array.of(1)], { ends: true });
  assert.deepEqual([...(await carrier.read(1, 5))], [1]);
  await assert.rejects(carrier.read(1, 5), /closed the connection/);
});

test("a connection that is given up before it is open", async () => {
  const make = class {
    ready = new Promise(() => undefined);
    closed = new Promise(() => undefined);
    close = () => (isClosed = true);
  } as unknown as TransportMaker;
  let isClosed = false;
  await assert.rejects(Carrier.open(new PinnedSocket("https://host:1/wt", [new Uint8Array(32)], make), 0.05), /within/);
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(isClosed);
});
