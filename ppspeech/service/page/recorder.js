// Runs beside the page, where sound arrives: passes blocks of samples of the first channel on, and keeps nothing.
class Recorder extends AudioWorkletProcessor {
  process([input]) {
    if (input.length > 0) this.port.postMessage(input[0].slice());
    return true;
  }
}
registerProcessor("recorder", Recorder);
