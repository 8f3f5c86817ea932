// The client as the page uses it: it runs in a worker of its own, and its calls are messages.

/** As `connect` of client.js, in a worker; `onTraffic({kinds, bytes})` is told what passes, and some of the bytes sent. */
export async function connect(address, options, onTraffic = () => {}) {
  const calls = new Calls(onTraffic);
  try {
    const { offers, offer } = await calls.call("connect", address, options);
    return new RemoteClient(calls, offers, offer);
  } catch (error) {
    calls.end();
    throw error;
  }
}

class Calls {
  constructor(onTraffic) {
    this.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.waiting = new Map();
    this.count = 0;
    this.queriesLeft = undefined;
    this.worker.onmessage = ({ data }) => {
      if (data.traffic) onTraffic(data.traffic);
      if (data.queriesLeft !== undefined) this.queriesLeft = data.queriesLeft;
      const waits = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error) waits?.reject(Object.assign(new Error(data.error.message), { name: data.error.name }));
      else waits?.resolve(data.value);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.fail(new Error("The part of this page that encrypts did not come from the server: nothing can be asked."));
    };
  }

  call(name, ...given) {
    if (this.worker === null) return Promise.reject(new Error("the client is closed"));
    const id = ++this.count;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, name, given });
    });
  }

  fail(error) {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  /** Its memory, and with it all secrets, goes with the worker. */
  end() {
    this.worker?.terminate();
    this.worker = null;
    this.fail(new Error("the client is closed"));
  }
}

class RemoteClient {
  constructor(calls, offers, offer) {
    Object.assign(this, { calls, offers, offer });
  }

  get queriesLeft() {
    return this.calls.queriesLeft ?? this.offer.queriesLeft;
  }

  /** As the client's. */
  prepare() {
    return this.calls.call("prepare");
  }

  /** As the client's. */
  recognize(samples, rate) {
    return this.calls.call("recognize", samples, rate);
  }

  /** As the client's. */
  transcribe(samples, rate) {
    return this.calls.call("transcribe", samples, rate);
  }

  /** As the client's, but rows of plain numbers come later. */
  features(samples, rate) {
    return this.calls.call("features", samples, rate);
  }

  /** Count what passes from now on. */
  forget() {
    this.calls.call("forget").catch(() => {});
  }

  /** Say goodbye; secrets end with the worker. */
  close() {
    const { calls } = this;
    if (calls.worker) calls.call("close").catch(() => {}).finally(() => calls.end());
  }
}
