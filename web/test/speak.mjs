/**
 * Asks a server for words with the built client, for tests of the package: a question as JSON comes in, answers go out.
 *
 * `{client, port, options, clips: [{samples: base64 of float32, rate}]}`; with `address` over a WebSocket to it, else
 * over plain TCP to the port of this machine.
 */

import { readFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { pathToFileURL } from "node:url";

const { client: built, port, address, options, clips } = JSON.parse(readFileSync(0, "utf-8"));
const { connect } = await import(pathToFileURL(built).href);

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

const answers = [];
try {
  const client = await connect(address ?? "wss://127.0.0.1/ws", { ...(await way()), ...options });
  for (const { samples, rate } of clips) {
    const bytes = Buffer.from(samples, "base64");
    const sound = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    try {
      if (options?.prepares !== false) await client.prepare();
      answers.push({ ...(await client.recognize(sound, rate)), features: Array.from(client.features(sound, rate)[0]) });
    } catch (error) {
      answers.push({ error: `${error.name}: ${error.message}` });
    }
  }
  client.close();
} catch (error) {
  answers.push({ error: `${error.name}: ${error.message}` });
}
process.stdout.write(JSON.stringify(answers));
