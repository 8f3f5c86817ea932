// Runs beside the page, so that nothing that it draws waits for a word nor a word for it: the client, and a tally of what
// passes. Each message is a call `{id, name, given}`; the answer has its `id`, and the traffic since it was last told.

import { Tally, watched } from "./watch.js";

const OFTEN_MS = 100; // at most so often is traffic told while something runs
const SHOWN = 60; // bytes of a message that are shown
const MOST = 4000; // bytes shown between two tellings

let client = null;
let tallies = new Map();
let sample = [];
let told = 0;
let isQuiet = false; // while an answer is on its way nothing else is done

const Watched = watched((direction, bytes, socket) => {
  if (!tallies.has(socket)) tallies.set(socket, { sent: new Tally(), received: new Tally() });
  tallies.get(socket)[direction].take(bytes);
  if (direction === "sent" && sample.length < MOST) {
    const step = Math.max(1, Math.floor(bytes.length / SHOWN));
    for (let at = 0; at < bytes.length; at += step) sample.push(bytes[at]);
  }
  if (!isQuiet && performance.now() - told > OFTEN_MS) postMessage({ traffic: traffic() });
});

/** What passed since `forget`: direction, kind, messages and bytes, over all connections; and some of the bytes. */
function traffic() {
  const sums = new Map();
  for (const both of tallies.values()) {
    for (const direction of ["sent", "received"]) {
      for (const [kind, { messages, bytes }] of both[direction].kinds) {
        const sum = sums.get(`${direction} ${kind}`) ?? { direction, kind, messages: 0, bytes: 0 };
        sums.set(`${direction} ${kind}`, { direction, kind, messages: sum.messages + messages, bytes: sum.bytes + bytes });
      }
    }
  }
  const bytes = Uint8Array.from(sample);
  sample = [];
  told = performance.now();
  return { kinds: [...sums.values()], bytes };
}

async function quietly(asking) {
  isQuiet = true;
  try {
    return await asking();
  } finally {
    isQuiet = false;
  }
}

const CALLS = {
  async connect(address, options) {
    const { connect } = await import("./client.js").catch(() => {
      throw new Error("The part of this page that encrypts did not come from the server: nothing can be asked.");
    });
    client = await connect(address, { ...options, WebSocket: Watched });
    return { offers: client.offers, offer: client.offer };
  },
  prepare: () => client.prepare(),
  recognize: (samples, rate) => quietly(() => client.recognize(samples, rate)),
  transcribe: (samples, rate) => quietly(() => client.transcribe(samples, rate)),
  features: async (samples, rate) => Array.from(await client.features(samples, rate), (row) => Array.from(row)),
  forget() {
    for (const both of tallies.values()) for (const tally of Object.values(both)) tally.kinds = new Map();
    sample = [];
  },
  close: () => client?.close(),
};

onmessage = async ({ data: { id, name, given } }) => {
  try {
    const value = await CALLS[name](...given);
    postMessage({ id, value, queriesLeft: client?.queriesLeft, traffic: traffic() });
  } catch (error) {
    postMessage({ id, error: { name: error.name, message: error.message }, queriesLeft: client?.queriesLeft, traffic: traffic() });
  }
};
