/** Sound to frames: MFCC features in double precision, step by step as in wire.md, section 12. Nothing of it is sent. */

import { AudioError } from "./errors.ts";
import { PowerSpectrum } from "./fft.ts";
import { type Encoder, hopLength, type MfccConfig, transformSize, windowLength } from "./mfcc_config.ts";
import { type Samples, samplesAt } from "./sound.ts";

export type Rows = Float64Array[];
const FLAT = 1e-10;

/** How a classifier of whole utterances scales their statistics. */
export type Statistics = { mean: number[]; std: number[]; radius: number | null };

export class FrontEnd {
  private readonly window: Float64Array;
  private readonly filters: Float64Array[];
  private readonly cosines: Float64Array[];
  private readonly spectrum: PowerSpectrum;

  constructor(private readonly config: MfccConfig, private readonly statistics: Statistics | null = null) {
    const size = transformSize(config);
    this.window = taper(config);
    this.filters = melFilters(config, size);
    this.cosines = cosinesOf(config);
    this.spectrum = new PowerSpectrum(size);
  }

  /** A model's input: frames in their usual range, or one vector of statistics. Raises AudioError for unusable sound. */
  frames(samples: Samples, rate: number): Rows {
    const rows = this.cepstra(samples, rate);
    return this.statistics === null ? inUsualRange(rows, this.config) : [scaled(rows, this.statistics)];
  }

  private cepstra(given: Samples, rate: number): Rows {
    const { config } = this;
    const heard = samplesAt(given, rate, config.sample_rate);
    const needed = windowLength(config) + (config.cmvn === "utterance" ? hopLength(config) : 0);
    if (heard.length < needed) {
      const ms = (count: number) => Math.round((1000 * count) / config.sample_rate);
      throw new AudioError(`a waveform of ${ms(heard.length)} ms is too short: ${ms(needed)} ms are needed`);
    }
    let samples: Float64Array = Float64Array.from(heard);
    const peak = samples.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    if (peak === 0 && (config.level === "peak" || config.cmvn === "utterance")) {
      throw new AudioError("the waveform is silent: every sample is zero");
    }
    if (config.level === "peak") samples = samples.map((x) => x / peak);
    let rows = derived(this.static(samples), config);
    if (config.vad_db !== null) rows = this.loud(samples).map((t) => rows[t]!);
    rows = normalized(rows, config);
    return config.encoder === null ? rows : encoded(rows, config.encoder);
  }

  /** Cepstra of whole frames. */
  private static(samples: Float64Array): Rows {
    const { config, window } = this;
    const emphasized = samples.map((x, n) => x - config.pre_emphasis * (n ? samples[n - 1]! : 0));
    const frame = new Float64Array(window.length);
    return this.starts(samples).map((start) => {
      for (let n = 0; n < frame.length; n++) frame[n] = window[n]! * emphasized[start + n]!;
      const power = this.spectrum.of(frame);
      const logs = this.filters.map((filter) => Math.log(Math.max(dot(power, filter), config.floor)));
      return Float64Array.from(this.cosines, (cosine) => dot(cosine, logs));
    });
  }

  private starts(samples: Float64Array): number[] {
    const [window, hop] = [windowLength(this.config), hopLength(this.config)];
    return Array.from({ length: 1 + Math.floor((samples.length - window) / hop) }, (_, t) => t * hop);
  }

  /** Which frames are within `vad_db` of the loudest, or near one that is. */
  private loud(samples: Float64Array): number[] {
    const window = windowLength(this.config);
    const energy = this.starts(samples).map((start) => samples.subarray(start, start + window).reduce((sum, x) => sum + x * x, 0));
    const least = energy.reduce((a, b) => Math.max(a, b)) * 10 ** (-this.config.vad_db! / 10);
    const near = this.config.vad_hangover;
    return energy.map((_, t) => t).filter((t) => energy.slice(Math.max(0, t - near), t + near + 1).some((e) => e >= least));
  }
}

function dot(one: ArrayLike<number>, other: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += one[i]! * other[i]!;
  return sum;
}

function taper(config: MfccConfig): Float64Array {
  const [base, depth] = { hamming: [0.54, 0.46], hann: [0.5, 0.5], rectangular: [1, 0] }[config.window] as [number, number];
  const size = windowLength(config);
  return Float64Array.from({ length: size }, (_, n) => base - depth * Math.cos((2 * Math.PI * n) / (size - 1)));
}

const [LINEAR_HZ, LINEAR_TO, OCTAVES] = [200 / 3, 1000, Math.log(6.4) / 27]; // Slaney's scale: linear, then logarithmic

function melOf(hz: number, scale: string): number {
  if (scale === "htk") return 2595 * Math.log10(1 + hz / 700);
  return hz < LINEAR_TO ? hz / LINEAR_HZ : LINEAR_TO / LINEAR_HZ + Math.log(hz / LINEAR_TO) / OCTAVES;
}

function hzOf(mel: number, scale: string): number {
  if (scale === "htk") return 700 * (10 ** (mel / 2595) - 1);
  const bend = LINEAR_TO / LINEAR_HZ;
  return mel < bend ? mel * LINEAR_HZ : LINEAR_TO * Math.exp(OCTAVES * (mel - bend));
}

/** Triangles on the mel scale, a list of `size / 2 + 1` each; Slaney's have equal areas. */
function melFilters(config: MfccConfig, size: number): Float64Array[] {
  const { mel_filters: count, mel_scale: scale, sample_rate: rate } = config;
  const [low, high] = [melOf(config.low_hz, scale), melOf(config.high_hz ?? rate / 2, scale)];
  const corner = (i: number) => hzOf(low + ((high - low) * i) / (count + 1), scale);
  return Array.from({ length: count }, (_, i) => {
    const [left, middle, right] = [corner(i), corner(i + 1), corner(i + 2)];
    const height = scale === "slaney" ? 2 / (right - left) : 1;
    return Float64Array.from({ length: size / 2 + 1 }, (_, bin) => {
      const hz = (Math.floor(rate / 2) * bin) / (size / 2);
      return height * Math.max(0, Math.min((hz - left) / (middle - left), (right - hz) / (right - middle)));
    });
  });
}

function lifterAt(config: MfccConfig, i: number): number {
  return config.lifter ? 1 + (config.lifter / 2) * Math.sin((Math.PI * i) / config.lifter) : 1;
}

/** The orthonormal cosine transform, liftered: a list of weights of the filters for every cepstrum. */
function cosinesOf(config: MfccConfig): Float64Array[] {
  const count = config.mel_filters;
  return Array.from({ length: config.cepstra }, (_, k) =>
    Float64Array.from({ length: count }, (_, b) => {
      const scale = Math.sqrt((k ? 2 : 1) / count) * lifterAt(config, k);
      return scale * Math.cos((Math.PI / count) * (b + 0.5) * k);
    }),
  );
}

/** Cepstra beside their derivatives. */
function derived(cepstra: Rows, config: MfccConfig): Rows {
  const orders = [cepstra];
  for (let order = 0; order < config.deltas; order++) orders.push(slopes(orders.at(-1)!, config.delta_reach));
  return cepstra.map((_, t) => Float64Array.from(orders.flatMap((rows) => [...rows[t]!])));
}

/** Regression slopes; beyond its ends an utterance goes on as it began and ended. */
function slopes(rows: Rows, reach: number): Rows {
  const at = (t: number) => rows[Math.min(Math.max(t, 0), rows.length - 1)]!;
  let norm = 0;
  for (let k = 1; k <= reach; k++) norm += 2 * k * k;
  return rows.map((row, t) =>
    row.map((_, i) => {
      let sum = 0;
      for (let k = 1; k <= reach; k++) sum += k * (at(t + k)[i]! - at(t - k)[i]!);
      return sum / norm;
    }),
  );
}

function normalized(rows: Rows, config: MfccConfig): Rows {
  if (config.cmvn === "none") return rows;
  if (config.cmvn === "public") return rows.map((row) => row.map((x, i) => (x - config.public_mean[i]!) / config.public_std[i]!));
  const mean = rows[0]!.map((_, i) => rows.reduce((sum, row) => sum + row[i]!, 0) / rows.length);
  const variance = mean.map((m, i) => rows.reduce((sum, row) => sum + (row[i]! - m) ** 2, 0) / rows.length);
  if (variance.every((v) => v < FLAT)) throw new AudioError("the utterance is silent or does not change over time");
  return rows.map((row) => row.map((x, i) => (x - mean[i]!) / Math.sqrt(Math.max(variance[i]!, FLAT))));
}

/** A public network on frames and their neighbors. */
function encoded(rows: Rows, { reach, widths, numbers }: Encoder): Rows {
  const at = (t: number) => [...rows[Math.min(Math.max(t, 0), rows.length - 1)]!];
  let found: Rows = rows.map((_, t) => Float64Array.from(Array.from({ length: 2 * reach + 1 }, (_, k) => at(t + k - reach)).flat()));
  for (let layer = 1, from = 0; layer < widths.length; layer++) {
    const [inputs, outputs] = [found[0]!.length, widths[layer]!];
    const weights = Array.from({ length: outputs }, (_, o) => numbers.slice(from + o * inputs, from + (o + 1) * inputs));
    const constants = numbers.slice(from + inputs * outputs, (inputs + 1) * outputs + from);
    const given = layer === 1 ? found : found.map((row) => row.map((x) => Math.max(x, 0)));
    found = given.map((row) => Float64Array.from(weights, (weight, o) => dot(weight, row) + constants[o]!));
    from += (inputs + 1) * outputs;
  }
  return found;
}

/** Frames about their usual center, in units of their usual spread. */
function inUsualRange(rows: Rows, config: MfccConfig): Rows {
  if (config.cmvn !== "none" || config.encoder !== null) return rows;
  const root = Math.sqrt(config.mel_filters);
  const spread = rows[0]!.map((_, at) => {
    const i = at % config.cepstra;
    const lifter = config.lifter ? Math.max(Math.abs(lifterAt(config, i)), 0.01) : 1;
    return ((2.5 * root) / (1 + i)) * lifter * [1, 1 / 5, 1 / 13][Math.floor(at / config.cepstra)]!;
  });
  const center = { peak: -3, keep: -7 }[config.level] * root;
  return rows.map((row) => row.map((x, i) => (x - (i === 0 ? center : 0)) / spread[i]!));
}

/** Means, maxima, minima and deviations of an utterance, scaled as a classifier takes them. */
function scaled(rows: Rows, { mean, std, radius }: Statistics): Float64Array {
  const over = (of: (values: number[]) => number) => [...rows[0]!.keys()].map((i) => of(rows.map((row) => row[i]!)));
  const average = (values: number[]) => values.reduce((sum, x) => sum + x, 0) / values.length;
  const deviation = (values: number[]) => Math.sqrt(average(values.map((x) => (x - average(values)) ** 2)));
  const all = [over(average), over((v) => Math.max(...v)), over((v) => Math.min(...v)), over(deviation)].flat();
  const vector = Float64Array.from(all, (x, i) => (x - mean[i]!) / (std[i]! * Math.sqrt(mean.length)));
  const norm = Math.sqrt(dot(vector, vector));
  return radius === null ? vector : vector.map((x) => x * (radius / Math.max(radius, norm)));
}
