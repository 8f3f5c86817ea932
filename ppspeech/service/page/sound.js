// From the microphone to samples at the rate of a model: recorded, cut to what was said, resampled, all in this page.

const BLOCK_S = 0.01;
const MARGIN_S = 0.12; // around a word
const BELOW_DB = 30; // of the loudest, that still belongs to a word
const FAINT = 0.002; // below this, nothing was said

/**
 * A recording that runs; `stop` ends it, as do seconds of `silence` after what was said, and the `longest` that it may be.
 * `ended` has its samples, their rate, and when the last of them was there, on the clock of `performance.now()`.
 */
export async function record(onBlock, limits) {
  if (!navigator.mediaDevices) throw new Error("This browser gives microphones only to pages over https, or on this machine.");
  const context = new AudioContext(); // ready before the microphone is: nothing that is said is missed
  let stream;
  try {
    await context.audioWorklet.addModule("recorder.js");
    stream = await microphone();
  } catch (error) {
    void context.close();
    throw error;
  }
  const node = new AudioWorkletNode(context, "recorder", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
  const blocks = [];
  let last = performance.now();
  const end = new EndOfSpeech(context.sampleRate, limits);
  let finish;
  const ended = new Promise((resolve) => (finish = resolve));
  const stop = () => {
    if (!finish) return;
    const done = finish;
    finish = null;
    stream.getTracks().forEach((track) => track.stop());
    void context.close();
    done({ samples: joined(blocks), rate: context.sampleRate, ended: last });
  };
  node.port.onmessage = ({ data: { block, at } }) => {
    if (!finish) return;
    blocks.push(block);
    last = Math.min(at - performance.timeOrigin, performance.now());
    onBlock(block, context.sampleRate);
    if (end.hears(block)) stop();
  };
  context.createMediaStreamSource(stream).connect(node);
  return { stop, ended };
}

async function microphone() {
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false },
    });
  } catch (error) {
    const words = {
      NotAllowedError: "The microphone was not allowed. Allow it for this page, and try again.",
      NotFoundError: "There is no microphone. Connect one, and try again.",
      NotReadableError: "Another program holds the microphone. Close it, and try again.",
    };
    throw new Error(words[error.name] ?? `The microphone cannot be used: ${error.message}`);
  }
}

/** Hears when what is said is over. */
export class EndOfSpeech {
  constructor(rate, { silence, longest }) {
    Object.assign(this, { rate, silence, longest });
    this.samples = this.quiet = this.loudest = 0;
  }

  hears(block) {
    const level = loudness(block, 0, block.length);
    this.samples += block.length;
    this.loudest = Math.max(this.loudest, level);
    const isQuiet = level < Math.max(FAINT, this.loudest / 16);
    this.quiet = isQuiet && this.loudest > 4 * FAINT ? this.quiet + block.length : 0;
    return this.quiet > this.silence * this.rate || this.samples > this.longest * this.rate;
  }
}

/** What was said of a recording: from its first to its last loud moment, at most `longest` seconds; null for nothing. */
export function said(samples, rate, longest) {
  const size = Math.round(BLOCK_S * rate);
  const levels = [];
  for (let at = 0; at + size <= samples.length; at += size) levels.push(loudness(samples, at, at + size));
  const loudest = Math.max(0, ...levels);
  if (loudest < FAINT) return null;
  const least = Math.max(FAINT / 2, loudest * 10 ** (-BELOW_DB / 20));
  const margin = Math.round(MARGIN_S / BLOCK_S);
  let first = Math.max(0, levels.findIndex((level) => level >= least) - margin);
  let last = Math.min(levels.length, levels.findLastIndex((level) => level >= least) + 1 + margin);
  const most = Math.floor(longest / BLOCK_S);
  if (last - first > most) [first, last] = loudestPart(levels, first, last, most);
  return samples.slice(first * size, last * size);
}

/** Samples at another rate, as the browser resamples sound. */
export async function resampled(samples, from, to) {
  if (from === to) return samples;
  const length = Math.max(1, Math.round((samples.length * to) / from));
  const offline = new OfflineAudioContext(1, length, to);
  const buffer = offline.createBuffer(1, samples.length, from);
  buffer.copyToChannel(samples, 0);
  const source = new AudioBufferSourceNode(offline, { buffer });
  source.connect(offline.destination);
  source.start();
  return (await offline.startRendering()).getChannelData(0);
}

function loudestPart(levels, first, last, most) {
  let sum = 0;
  let best = -1;
  let from = first;
  for (let at = first; at < last; at++) {
    sum += levels[at] ** 2;
    if (at - first >= most) sum -= levels[at - most] ** 2;
    if (at - first >= most - 1 && sum > best) [best, from] = [sum, at - most + 1];
  }
  return [from, from + most];
}

function loudness(samples, from, to) {
  let sum = 0;
  for (let at = from; at < to; at++) sum += samples[at] * samples[at];
  return Math.sqrt(sum / Math.max(1, to - from));
}

function joined(blocks) {
  const all = new Float32Array(blocks.reduce((sum, block) => sum + block.length, 0));
  let at = 0;
  for (const block of blocks) {
    all.set(block, at);
    at += block.length;
  }
  return all;
}
