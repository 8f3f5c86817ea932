// In place of the client, for tests of the page alone: a HELLO over a real WebSocket, and an answer that is made up.

const OFFER = {
  name: "animals", task: "Says which of 3 words was spoken, by one hidden Markov model a word.", fingerprint: "ab".repeat(32),
  privacy: "(0.5616, 1e-05)-DP for one speaker, add or remove; noise and clipping are accounted for.", queriesLeft: 1000,
  terms: { mfcc: { sample_rate: 16000, window_s: 0.025, hop_s: 0.01 }, shape: { frames: 40, dimensions: 4 }, statistics: null },
};

async function greet(address, WebSocket) {
  const socket = new WebSocket(address, "ppspeech.1");
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("The connection failed."));
  });
  const text = `{"nonce":"${"0".repeat(32)}","params":{},"protocol":"describe","version":1}`;
  const frame = new Uint8Array(28 + text.length);
  frame.set([0x50, 0x53, 1]);
  new DataView(frame.buffer).setUint32(24, text.length);
  frame.set(new TextEncoder().encode(text), 28);
  const answered = new Promise((resolve) => (socket.onmessage = resolve));
  socket.send(frame);
  await answered;
  return socket;
}

export async function connect(address, { WebSocket }) {
  let socket = await greet(address, WebSocket);
  return {
    offers: [OFFER], offer: OFFER, queriesLeft: 999,
    async prepare() {
      socket = await greet(address, WebSocket);
    },
    async recognize(samples, rate) {
      if (rate !== 16000) throw new Error(`a rate of ${rate}`);
      return { value: "bumblebee", offlineMs: 1, onlineMs: 2, workMs: 3, bytesUp: 123456, bytesDown: 2345678, rounds: 42 };
    },
    features: (samples) => Array.from({ length: 30 }, (_, t) => Float64Array.from({ length: 4 }, (_, i) => Math.sin(t / (2 + i)))),
    close: () => socket.close(),
  };
}
