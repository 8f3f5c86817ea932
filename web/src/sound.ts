/** Samples at another rate, by a windowed sinc: what Python's client computes, to rounding. */

import { AudioError } from "./errors.ts";

/** One channel in [-1, 1]. */
export type Samples = Float32Array | Float64Array;

const CROSSINGS = 6;
const ROLL_OFF = 0.99;

/** One channel at the wanted rate. Raises AudioError for what a model cannot hear. */
export function samplesAt(samples: Samples, rate: number, wanted: number): Samples {
  if (!Number.isInteger(rate) || rate < 1) throw new AudioError(`a waveform needs its rate in Hz, got ${rate}`);
  if (!samples.length) throw new AudioError("a waveform has at least one sample, got none");
  if (!samples.every((x: number) => Number.isFinite(x))) throw new AudioError("the waveform has samples that are NaN or infinite");
  if (2 * rate < wanted) {
    throw new AudioError(`recorded at ${rate} Hz, it lacks what the model listens to: record at ${wanted} Hz`);
  }
  return resampled(samples, rate, wanted);
}

export function resampled(samples: Samples, rate: number, wanted: number): Samples {
  if (rate === wanted) return samples;
  const common = divisor(rate, wanted);
  [rate, wanted] = [rate / common, wanted / common];
  const band = ROLL_OFF * Math.min(rate, wanted);
  const reach = Math.ceil((CROSSINGS * rate) / band);
  const kernels = new Map<number, Float64Array>();
  const out = new Float32Array(Math.ceil((samples.length * wanted) / rate));
  for (let j = 0; j < out.length; j++) {
    const first = Math.floor((j * rate) / wanted);
    const phase = (j * rate) % wanted;
    let kernel = kernels.get(phase);
    if (!kernel) kernels.set(phase, (kernel = kernelOf(phase / wanted, reach, band / rate)));
    let sum = 0;
    for (let k = 0; k < kernel.length; k++) sum += (samples[first - reach + k] ?? 0) * kernel[k]!;
    out[j] = sum;
  }
  return out;
}

function kernelOf(offset: number, reach: number, part: number): Float64Array {
  return Float64Array.from({ length: 2 * reach + 2 }, (_, k) => {
    const t = Math.min(Math.max((k - reach - offset) * part, -CROSSINGS), CROSSINGS);
    const sinc = t === 0 ? 1 : Math.sin(Math.PI * t) / (Math.PI * t);
    return part * sinc * Math.cos((Math.PI * t) / (2 * CROSSINGS)) ** 2;
  });
}

function divisor(one: number, other: number): number {
  return other === 0 ? one : divisor(other, one % other);
}
