// Charts as SVG: axes from data to a frame of fixed size that scales with the page.

const SPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [560, 340, 52, 44, 14, 14];

export function shape(name, attributes = {}, ...children) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** A frame with axes. `x` and `y`: { from, to, label, ticks, text }; `say`: what it shows, for whoever does not see it. */
export function frame(holder, { x, y, say }) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": say });
  const across = (value) => LEFT + ((value - x.from) / (x.to - x.from || 1)) * (WIDTH - LEFT - RIGHT);
  const up = (value) => HEIGHT - BOTTOM - ((value - y.from) / (y.to - y.from || 1)) * (HEIGHT - BOTTOM - TOP);
  for (const tick of y.ticks) {
    svg.append(shape("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: up(tick), y2: up(tick) }));
    svg.append(shape("text", { x: LEFT - 8, y: up(tick) + 4, "text-anchor": "end" }, (y.text ?? String)(tick)));
  }
  for (const tick of x.ticks) {
    svg.append(shape("line", { class: "axis", x1: across(tick), x2: across(tick), y1: TOP, y2: HEIGHT - BOTTOM }));
    svg.append(shape("text", { x: across(tick), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, (x.text ?? String)(tick)));
  }
  svg.append(shape("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, x.label));
  const middle = (TOP + HEIGHT - BOTTOM) / 2;
  svg.append(shape("text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, y.label));
  holder.replaceChildren(svg);
  const path = (points) => points.map(([a, b]) => `${across(a).toFixed(1)},${up(b).toFixed(1)}`).join(" ");
  return {
    svg, across, up,
    line: (points, kind) => svg.append(shape("polyline", { class: `line ${kind}`, points: path(points) })),
    area: (points) => svg.append(shape("polygon", { points: path(points) })),
    dot: ([a, b], kind, title, size = 6) => svg.append(shape("circle", { class: kind, cx: across(a), cy: up(b), r: size }, shape("title", {}, title))),
    text: ([a, b], words, more = {}) => svg.append(shape("text", { x: across(a), y: up(b), ...more }, words)),
  };
}

/** A bar of a share, named. */
export function meter(name, value, kind) {
  const holder = document.createElement("div");
  holder.className = "meter";
  const bar = shape("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    shape("rect", { class: "track", width: 100, height: 8, rx: 1 }), shape("rect", { class: kind, width: 100 * value, height: 8, rx: 1 }));
  const [label, number] = [document.createElement("span"), document.createElement("b")];
  label.textContent = name;
  number.textContent = percent(value);
  holder.append(label, bar, number);
  return holder;
}

export const percent = (value) => `${(100 * value).toFixed(value > 0.0995 ? 0 : 1)} %`;
