/** The power spectrum of real frames of a power of two, `size / 2 + 1` numbers. */

export class PowerSpectrum {
  private readonly cos: Float64Array;
  private readonly sin: Float64Array;
  private readonly re: Float64Array;
  private readonly im: Float64Array;
  /** The bits of every place, reversed. */
  private readonly turned: Uint32Array;

  constructor(private readonly size: number) {
    this.cos = Float64Array.from({ length: size / 2 }, (_, k) => Math.cos((2 * Math.PI * k) / size));
    this.sin = Float64Array.from({ length: size / 2 }, (_, k) => -Math.sin((2 * Math.PI * k) / size));
    this.re = new Float64Array(size);
    this.im = new Float64Array(size);
    this.turned = new Uint32Array(size);
    for (let i = 1; i < size; i++) this.turned[i] = (this.turned[i >> 1]! >> 1) | (i & 1 ? size / 2 : 0);
  }

  /** Of a frame, filled up with zeros; the result is used until the next call. */
  of(frame: Float64Array): Float64Array {
    const { size, re, im, cos, sin, turned } = this;
    im.fill(0);
    re.fill(0);
    for (let i = 0; i < frame.length; i++) re[turned[i]!] = frame[i]!;
    for (let half = 1; half < size; half *= 2) {
      const step = size / (2 * half);
      for (let from = 0; from < size; from += 2 * half) {
        for (let k = 0; k < half; k++) {
          const one = from + k;
          const other = one + half;
          const c = cos[k * step]!;
          const s = sin[k * step]!;
          const x = re[other]! * c - im[other]! * s;
          const y = re[other]! * s + im[other]! * c;
          re[other] = re[one]! - x;
          im[other] = im[one]! - y;
          re[one]! += x;
          im[one]! += y;
        }
      }
    }
    const power = new Float64Array(size / 2 + 1);
    for (let k = 0; k < power.length; k++) power[k] = re[k]! ** 2 + im[k]! ** 2;
    return power;
  }
}
