/** What looks like a WebSocket, and is one stream of WebTransport to a server that is known by its certificate. */

import type { WebSocketLike } from "./carrier.ts";

const FAREWELL_MS = 2000; // for what was said last to arrive

/** What is used of WebTransport. */
export interface TransportLike {
  readonly ready: Promise<unknown>;
  readonly closed: Promise<unknown>;
  createBidirectionalStream(): Promise<{ readable: ReadableStream<Uint8Array>; writable: WritableStream<Uint8Array> }>;
  close(): void;
}

export type TransportMaker = new (
  address: string,
  options: { allowPooling: boolean; serverCertificateHashes: { algorithm: string; value: Uint8Array }[] },
) => TransportLike;

export class PinnedSocket implements WebSocketLike {
  binaryType = "arraybuffer";
  readyState = 0;
  onopen: ((event: any) => void) | null = null;
  onmessage: ((event: any) => void) | null = null;
  onclose: ((event: any) => void) | null = null;
  onerror: ((event: any) => void) | null = null;
  private readonly transport: TransportLike;
  private writer: WritableStreamDefaultWriter<Uint8Array> | null = null;

  /** `pins`: of certificates; a server that shows none of them is not spoken to, whoever vouches for it. */
  constructor(address: string, pins: Uint8Array[], make: TransportMaker) {
    const serverCertificateHashes = pins.map((value) => ({ algorithm: "sha-256", value }));
    this.transport = new make(address, { allowPooling: false, serverCertificateHashes });
    this.transport.closed.catch(() => undefined); // `carry` hears of it
    void this.carry();
  }

  send(data: Uint8Array): void {
    this.writer!.write(data).catch(() => this.over(this.onerror));
  }

  close(): void {
    if (this.readyState >= 2) return;
    this.readyState = 2;
    void this.leave();
  }

  /** Open a stream, and hand on what comes by it. */
  private async carry(): Promise<void> {
    try {
      await this.transport.ready;
      const { readable, writable } = await this.transport.createBidirectionalStream();
      this.writer = writable.getWriter();
      this.writer.closed.catch(() => undefined);
      if (this.readyState !== 0) return await this.leave(); // given up meanwhile
      this.readyState = 1;
      this.onopen?.({});
      const reader = readable.getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        this.onmessage?.({ data: value.slice().buffer });
      }
      this.over(this.onclose);
      this.transport.close();
    } catch {
      this.over(this.onerror);
    }
  }

  /** What was written still goes out, for a while. */
  private async leave(): Promise<void> {
    const late = new Promise((resolve) => setTimeout(resolve, FAREWELL_MS));
    const said = this.writer?.close().then(() => this.transport.closed);
    await Promise.race([said?.catch(() => undefined), late]);
    this.transport.close();
    this.over(this.onclose);
  }

  private over(tell: ((event: any) => void) | null): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    tell?.({});
  }
}
