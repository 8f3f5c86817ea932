// What passes over the connections of this page, read from the bytes themselves: what the server sees.

const HEADER = 28;

export const KINDS = {
  0: "hello", 1: "a public key", 2: "ciphertexts", 3: "masked ciphertexts", 6: "a question: public sizes",
  7: "that it can begin", 201: "a point of a group", 202: "blinded points", 203: "where both are in their transfers",
  204: "blinded transfers, of two", 205: "blinded transfers, of many", 206: "blinded transfers, the first", 208: "masked choices",
  209: "masked tables", 210: "masked residues", 211: "a share of what is opened", 215: "masked residues and tables",
  255: "the end",
};

/** Counts frames by kind, however they are cut into messages. */
export class Tally {
  constructor() {
    this.kinds = new Map();
    this.header = new Uint8Array(HEADER);
    this.have = this.skip = 0;
  }

  take(bytes) {
    for (let at = 0; at < bytes.length; ) {
      if (this.skip > 0) {
        const step = Math.min(this.skip, bytes.length - at);
        this.skip -= step;
        at += step;
        continue;
      }
      const step = Math.min(HEADER - this.have, bytes.length - at);
      this.header.set(bytes.subarray(at, at + step), this.have);
      this.have += step;
      at += step;
      if (this.have === HEADER) {
        const length = new DataView(this.header.buffer).getUint32(24);
        const kind = this.header[3];
        const entry = this.kinds.get(kind) ?? { messages: 0, bytes: 0 };
        this.kinds.set(kind, { messages: entry.messages + 1, bytes: entry.bytes + HEADER + length });
        this.have = 0;
        this.skip = length;
      }
    }
  }
}

/** A class of WebSockets that tells `told(direction, bytes, socket)` of all that passes. */
export function watched(told) {
  return class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.binaryType = "arraybuffer";
      this.addEventListener("message", ({ data }) => {
        if (data instanceof ArrayBuffer) told("received", new Uint8Array(data), this);
      });
    }

    send(data) {
      super.send(data);
      told("sent", ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data), this);
    }
  };
}
