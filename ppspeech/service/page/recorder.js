// Runs beside the page, where sound arrives: passes blocks of samples of the first channel on, with the time at which they
// came, and keeps nothing.
class Recorder extends AudioWorkletProcessor {
  process([input]) {
    if (input.length > 0) {
      const block = input[0].slice();
      this.port.postMessage({ block, at: Date.now() }, [block.buffer]);
    }
    return true;
  }
}
registerProcessor("recorder", Recorder);
