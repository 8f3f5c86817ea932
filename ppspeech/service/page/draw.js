// Pictures of what is on this side and of what leaves it, in the colors of the page.

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Samples as a waveform. */
export function drawWave(canvas, samples) {
  const pen = canvas.getContext("2d");
  const { width, height } = canvas;
  pen.clearRect(0, 0, width, height);
  pen.fillStyle = color("--accent");
  const loudest = samples.reduce((most, each) => Math.max(most, Math.abs(each)), 0.02);
  for (let x = 0; x < width; x += 4) {
    let most = 0;
    const [from, to] = [x, x + 4].map((each) => Math.floor((each / width) * samples.length));
    for (let at = from; at < to; at++) most = Math.max(most, Math.abs(samples[at]));
    const tall = Math.max(2, (most / loudest) * (height - 12));
    pen.fillRect(x, (height - tall) / 2, 3, tall);
  }
}

/** Rows of features over time, the first at the bottom; every feature over its own range. */
export function drawFeatures(canvas, rows) {
  const pen = canvas.getContext("2d");
  const { width, height } = canvas;
  pen.clearRect(0, 0, width, height);
  const features = rows[0]?.length ?? 0;
  pen.fillStyle = color("--accent");
  for (let i = 0; i < features; i++) {
    const values = rows.map((row) => row[i]);
    const low = Math.min(...values);
    const range = Math.max(...values) - low || 1;
    values.forEach((value, t) => {
      pen.globalAlpha = 0.08 + (0.92 * (value - low)) / range;
      const [left, right] = [t, t + 1].map((each) => Math.round((each * width) / rows.length));
      const [top, bottom] = [i + 1, i].map((each) => Math.round(height - (each * height) / features));
      pen.fillRect(left, top, right - left, bottom - top);
    });
  }
  pen.globalAlpha = 1;
}

/** Bytes as they are: one square each, darker for larger ones, as many as there is room for. */
export class ByteTape {
  constructor(canvas, side = 8) {
    Object.assign(this, { canvas, side, place: 0 });
  }

  clear() {
    this.place = 0;
    this.canvas.getContext("2d").clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  /** A few bytes of each message, so that all of them have their part. */
  add(bytes, most = 60) {
    const { canvas, side } = this;
    const pen = canvas.getContext("2d");
    const [across, down] = [canvas.width / side, canvas.height / side];
    pen.fillStyle = color("--noise");
    const step = Math.max(1, Math.floor(bytes.length / most));
    for (let at = 0; at < bytes.length; at += step) {
      const [x, y] = [Math.floor(this.place / down) % across, this.place % down];
      pen.clearRect(x * side, y * side, side, side);
      pen.globalAlpha = bytes[at] / 255;
      pen.fillRect(x * side, y * side, side, side);
      this.place++;
    }
    pen.globalAlpha = 1;
  }
}
