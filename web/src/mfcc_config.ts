/** The choices of a front end, as a server tells them: checked, and no more than a client is ready to compute. */

import { Double, type Plain } from "./canonical.ts";
import * as read from "./reading.ts";

export type Encoder = { reach: number; widths: number[]; numbers: number[] };

export type MfccConfig = {
  sample_rate: number; window_s: number; hop_s: number; window: "hamming" | "hann" | "rectangular"; pre_emphasis: number;
  mel_filters: number; mel_scale: "htk" | "slaney"; low_hz: number; high_hz: number | null; cepstra: number;
  lifter: number; deltas: 0 | 1 | 2; delta_reach: number; level: "peak" | "keep"; floor: number;
  cmvn: "utterance" | "public" | "none"; public_mean: number[]; public_std: number[]; vad_db: number | null;
  vad_hangover: number; encoder: Encoder | null;
};

/** What Python's `MfccConfig()` has. */
export const USUAL: MfccConfig = {
  sample_rate: 16000, window_s: 0.025, hop_s: 0.01, window: "hamming", pre_emphasis: 0.97, mel_filters: 26,
  mel_scale: "htk", low_hz: 20, high_hz: null, cepstra: 13, lifter: 22, deltas: 2, delta_reach: 2, level: "peak",
  floor: 1e-10, cmvn: "utterance", public_mean: [], public_std: [], vad_db: null, vad_hangover: 5, encoder: null,
};

const LARGEST_TRANSFORM = 1 << 16;
const LEAST = Number.MIN_VALUE;

export function readMfcc(plain: unknown): MfccConfig {
  const given = read.object(plain, "a front end", Object.keys(USUAL));
  const rate = read.whole(given.sample_rate, "sample_rate", 1, 1e6);
  const filters = read.whole(given.mel_filters, "mel_filters", 1, 512);
  const high = given.high_hz === null ? null : read.real(given.high_hz, "high_hz", LEAST, rate / 2);
  const deltas = read.oneOf(given.deltas, "deltas", [0, 1, 2] as const);
  const config: MfccConfig = {
    sample_rate: rate, window_s: read.real(given.window_s, "window_s", 0, 1e3), hop_s: read.real(given.hop_s, "hop_s", 0, 1e3),
    window: read.oneOf(given.window, "window", ["hamming", "hann", "rectangular"]),
    pre_emphasis: read.real(given.pre_emphasis, "pre_emphasis", 0, 1 - Number.EPSILON), mel_filters: filters,
    mel_scale: read.oneOf(given.mel_scale, "mel_scale", ["htk", "slaney"]),
    low_hz: read.real(given.low_hz, "low_hz", 0, high ?? rate / 2), high_hz: high,
    cepstra: read.whole(given.cepstra, "cepstra", 1, filters), lifter: read.whole(given.lifter, "lifter", 0, 1e6), deltas,
    delta_reach: read.whole(given.delta_reach, "delta_reach", 1, 1000), level: read.oneOf(given.level, "level", ["peak", "keep"]),
    floor: read.real(given.floor, "floor", LEAST, 1e30), cmvn: read.oneOf(given.cmvn, "cmvn", ["utterance", "public", "none"]),
    public_mean: [], public_std: [], vad_db: given.vad_db === null ? null : read.real(given.vad_db, "vad_db", LEAST, 1e6),
    vad_hangover: read.whole(given.vad_hangover, "vad_hangover", 0, 1e6), encoder: null,
  };
  const count = config.cmvn === "public" ? computed(config) : 0;
  config.public_mean = numbers(given.public_mean, "public_mean", count, -1e30);
  config.public_std = numbers(given.public_std, "public_std", count, LEAST);
  if (given.encoder !== null) config.encoder = readEncoder(given.encoder, computed(config));
  if (hopLength(config) < 1 || windowLength(config) < 2) throw read.refused("a frame of the front end holds no samples");
  if (transformSize(config) > LARGEST_TRANSFORM) throw read.refused("its front end is more than this client computes");
  return config;
}

function readEncoder(plain: unknown, inputs: number): Encoder {
  const given = read.object(plain, "an encoder", ["reach", "widths", "numbers"]);
  const reach = read.whole(given.reach, "an encoder's reach", 0, 32);
  const widths = read.list(given.widths, "widths", 9).map((each) => read.whole(each, "widths", 1, 1024));
  if (widths.length < 2 || widths[0] !== inputs) throw read.refused("the encoder does not fit its front end");
  const wanted = widths.slice(1).reduce((sum, rows, i) => sum + rows * ((i ? 1 : 2 * reach + 1) * widths[i]! + 1), 0);
  if (wanted > 30000) throw read.refused(`an encoder of ${wanted} numbers is more than this client computes`);
  return { reach, widths, numbers: numbers(given.numbers, "an encoder's numbers", wanted, -1e4, 1e4) };
}

export function numbers(plain: unknown, what: string, count: number, least: number, most = 1e30): number[] {
  const found = read.list(plain, what, Math.max(count, 30000)).map((each) => read.real(each, what, least, most));
  if (count !== found.length && !(count === 0 && what.startsWith("public"))) {
    throw read.refused(`${what} are ${count}, got ${found.length}`);
  }
  return found;
}

/** As both parties hash it: these are doubles, whatever they look like in JSON. */
export function plainMfcc(config: MfccConfig): Plain {
  const double = (value: number | null) => (value === null ? null : new Double(value));
  const [means, stds] = [config.public_mean.map(double), config.public_std.map(double)];
  const encoder = config.encoder && { ...config.encoder, numbers: config.encoder.numbers.map(double) };
  return {
    ...config, window_s: double(config.window_s), hop_s: double(config.hop_s), pre_emphasis: double(config.pre_emphasis),
    low_hz: double(config.low_hz), high_hz: double(config.high_hz), floor: double(config.floor), public_mean: means, public_std: stds,
    vad_db: double(config.vad_db), encoder,
  };
}

export function windowLength(config: MfccConfig): number {
  return roundedEven(config.window_s * config.sample_rate);
}

export function hopLength(config: MfccConfig): number {
  return roundedEven(config.hop_s * config.sample_rate);
}

export function transformSize(config: MfccConfig): number {
  let size = 1;
  while (size < windowLength(config)) size *= 2;
  return size;
}

/** Cepstra a frame, and their derivatives. */
export function computed(config: MfccConfig): number {
  return config.cepstra * (1 + config.deltas);
}

/** Values a frame: what an encoder makes of them, where there is one. */
export function featuresOf(config: MfccConfig): number {
  return config.encoder === null ? computed(config) : config.encoder.widths.at(-1)!;
}

function roundedEven(value: number): number {
  const low = Math.floor(value);
  const rest = value - low;
  return rest > 0.5 || (rest === 0.5 && low % 2) ? low + 1 : low;
}
