/** A stream of bytes over the binary messages of a WebSocket, or of anything that looks like one. */

import { ProtocolError } from "./errors.ts";

/** What a carrier uses of a WebSocket. */
export interface WebSocketLike {
  binaryType: string;
  readonly readyState: number;
  send(data: Uint8Array): void;
  close(): void;
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
}

const OPEN = 1;
const FAILED = "the connection failed: is the server there, and its certificate one that is trusted?";
const HELD = 1 << 28; // bytes that may wait to be read: more than any question takes
const MOST_PARTS = 1 << 16; // messages that they may be cut into

export class Carrier {
  private parts: Uint8Array[] = [];
  private held = 0;
  private over: ProtocolError | null = null;
  private wake: (() => void) | null = null;
  bytesSent = 0;
  bytesReceived = 0;
  /** Milliseconds that were waited for the server. */
  waited = 0;

  private constructor(private readonly socket: WebSocketLike) {
    socket.onmessage = (event) => this.took(event.data);
    socket.onclose = () => this.ended("the server closed the connection");
    socket.onerror = () => this.ended(FAILED);
    if (socket.readyState > OPEN) this.ended(FAILED);
  }

  /** Once it is open; after `seconds` it is given up. */
  static async open(socket: WebSocketLike, seconds: number): Promise<Carrier> {
    socket.binaryType = "arraybuffer";
    const carrier = new Carrier(socket);
    if (socket.readyState !== OPEN) {
      socket.onopen = () => carrier.wake?.();
      await carrier.waiting(seconds, () => socket.readyState === OPEN);
    }
    return carrier;
  }

  get isOver(): boolean {
    return this.over !== null;
  }

  send(data: Uint8Array): void {
    if (this.over) throw this.over;
    this.socket.send(data);
    this.bytesSent += data.length;
  }

  /** The next `size` bytes, in time. */
  async read(size: number, seconds: number): Promise<Uint8Array> {
    if (this.held < size) await this.waiting(seconds, () => this.held >= size);
    const out = new Uint8Array(size);
    for (let at = 0; at < size; ) {
      const part = this.parts[0]!;
      const taken = Math.min(part.length, size - at);
      out.set(part.subarray(0, taken), at);
      if (taken === part.length) this.parts.shift();
      else this.parts[0] = part.subarray(taken);
      at += taken;
    }
    this.held -= size;
    return out;
  }

  close(): void {
    this.over ??= new ProtocolError("the session is over");
    this.parts = [];
    this.held = 0;
    this.socket.close();
    this.wake?.();
  }

  private took(data: unknown): void {
    if (!(data instanceof ArrayBuffer)) {
      this.ended("the server sent text where bytes are spoken");
      this.socket.close();
      return;
    }
    if (this.over) return;
    this.parts.push(new Uint8Array(data));
    this.held += data.byteLength;
    this.bytesReceived += data.byteLength;
    if (this.held > HELD || this.parts.length > MOST_PARTS) {
      this.close();
      this.over = new ProtocolError("the server sends more than any question takes");
    }
    this.wake?.();
  }

  private ended(why: string): void {
    this.over ??= new ProtocolError(why);
    this.wake?.();
  }

  private async waiting(seconds: number, isThere: () => boolean): Promise<void> {
    const began = performance.now();
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.wake?.();
    }, 1000 * seconds);
    try {
      while (!isThere()) {
        if (this.over) throw this.over;
        if (late) {
          this.close();
          throw new ProtocolError(`the server did not answer within ${seconds} s`);
        }
        await new Promise<void>((resolve) => (this.wake = resolve));
      }
    } finally {
      clearTimeout(timer);
      this.wake = null;
      this.waited += performance.now() - began;
    }
  }
}
