/**
 * Asks a server for words or sentences with the built client, for tests of the package: a question as JSON comes in, answers go out.
 *
 * `{client, port, options, clips: [{samples: base64 of float32, rate}]}`; with `address` over a WebSocket to it, else
 * over plain TCP to the port of this machine. In place of clips, `heads: [embeddings]`, or `claims: [[place, direction]]`.
 */

import { readFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { pathToFileURL } from "node:url";

const { client: built, port, address, options, clips = [], heads, claims } = JSON.parse(readFileSync(0, "utf-8"));
const { connect, connectHead, connectSpeakers } = await import(pathToFileURL(built).href);

/** A connection of node that looks like a WebSocket. */
function tcp() {
  const raw = connectTcp({ host: "127.0.0.1", port, noDelay: true });
  const socket = {
    binaryType: "arraybuffer", readyState: 0, onopen: null, onmessage: null, onclose: null, onerror: null,
    send: (data) => raw.write(data),
    close: () => raw.end(),
  };
  raw.on("connect", () => ((socket.readyState = 1), socket.onopen?.({})));
  raw.on("data", (data) => socket.onmessage?.({ data: data.buffer.slice(data.byteOffset, data.byteOffset + data.length) }));
  raw.on("close", () => socket.onclose?.({}));
  raw.on("error", () => socket.onerror?.({}));
  return socket;
}

async function way() {
  if (!address) return { socket: tcp };
  const { WebSocket } = await import("ws");
  return { WebSocket: class extends WebSocket {
    constructor(where, protocol) {
      super(where, protocol, { rejectUnauthorized: false, perMessageDeflate: false });
    }
  } };
}

const where = address ?? "wss://127.0.0.1/ws";
const how = { ...(await way()), ...options };

/** The answers of a client, or what it refuses with, to one after the other. */
async function askAll(client, all, ask) {
  for (const each of all) {
    try {
      if (options?.prepares !== false) await client.prepare();
      answers.push({ ...(await ask(each)), left: client.queriesLeft });
    } catch (error) {
      answers.push({ error: `${error.name}: ${error.message}` });
    }
  }
  client.close();
}

const answers = [];
try {
  if (heads) {
    const client = await connectHead(where, how);
    await askAll(client, heads, (embeddings) => client.recognize(embeddings));
  } else if (claims) {
    const client = await connectSpeakers(where, how);
    await askAll(client, claims, ([place, direction]) => client.verify(place, direction));
  } else {
    const client = await connect(where, how);
    await askAll(client, clips, async ({ samples, rate }) => {
      const bytes = Buffer.from(samples, "base64");
      const sound = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
      const answer = client.offer.kind === "sentences" ? client.transcribe(sound, rate) : client.recognize(sound, rate);
      return { ...(await answer), features: Array.from(client.features(sound, rate)[0]) };
    });
  }
} catch (error) {
  answers.push({ error: `${error.name}: ${error.message}` });
}
process.stdout.write(JSON.stringify(answers));
