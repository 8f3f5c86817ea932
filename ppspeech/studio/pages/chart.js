// Charts as SVG, drawn for the width that there is, and again when it changes: text keeps its size on narrow screens.

const SPACE = "http://www.w3.org/2000/svg";
const [LEFT, BOTTOM, TOP, RIGHT, WIDEST, LETTER] = [68, 50, 14, 16, 820, 7.2];
const drawings = new WeakMap();

export function shape(name, attributes = {}, ...children) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Draw into a holder, now and whenever its width changes. `draw`: gets the width, returns what is shown. */
export function fitted(holder, draw) {
  const known = drawings.get(holder);
  const width = () => Math.max(240, Math.min(WIDEST, Math.floor(holder.clientWidth)));
  drawings.set(holder, draw);
  if (!known) {
    let last = 0;
    new ResizeObserver(() => {
      if (holder.clientWidth && width() !== last) holder.replaceChildren(drawings.get(holder)((last = width())));
    }).observe(holder);
  }
  holder.replaceChildren(draw(width()));
}

/** A frame with axes. `x` and `y`: { from, to, label, ticks, text }; `say`: what it shows, for whoever does not see it.
 *  `fill`: draws inside, with what this returns. */
export function frame(holder, { x, y, say, tall = 0.6, fill = () => {} }) {
  fitted(holder, (width) => {
    const height = Math.round(Math.min(420, Math.max(260, tall * width)));
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": say });
    const [right, low] = [width - RIGHT, height - BOTTOM];
    const across = (value) => LEFT + ((value - x.from) / (x.to - x.from || 1)) * (right - LEFT);
    const up = (value) => low - ((value - y.from) / (y.to - y.from || 1)) * (low - TOP);
    for (const tick of y.ticks) {
      svg.append(shape("line", { class: "axis", x1: LEFT, x2: right, y1: up(tick), y2: up(tick) }));
      svg.append(shape("text", { x: LEFT - 8, y: up(tick) + 4, "text-anchor": "end" }, (y.text ?? String)(tick)));
    }
    let free = 0; // from where the next number fits beside the last
    for (const tick of x.ticks) {
      const [at, words] = [across(tick), (x.text ?? String)(tick)];
      const half = (LETTER * words.length) / 2;
      svg.append(shape("line", { class: "axis", x1: at, x2: at, y1: TOP, y2: low }));
      if (at - half < free) continue;
      svg.append(shape("text", { x: at, y: low + 20, "text-anchor": "middle" }, words));
      free = at + half + LETTER / 2;
    }
    const center = Math.min((LEFT + right) / 2, width - (LETTER * x.label.length) / 2); // nothing sticks out on the right
    svg.append(shape("text", { class: "name", x: center, y: height - 6, "text-anchor": "middle" }, x.label));
    const middle = (TOP + low) / 2;
    svg.append(shape("text", { class: "name", x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, y.label));
    const path = (points) => points.map(([a, b]) => `${across(a).toFixed(1)},${up(b).toFixed(1)}`).join(" ");
    fill({
      svg, width, across, up,
      line: (points, kind) => svg.append(shape("polyline", { class: `line ${kind}`, points: path(points) })),
      area: (points, kind) => svg.append(shape("polygon", { class: kind, points: path(points) })),
      dot: ([a, b], kind, title, size = 6) => svg.append(shape("circle", { class: kind, cx: across(a), cy: up(b), r: size }, shape("title", {}, title))),
      text: ([a, b], words, more = {}) => svg.append(shape("text", { x: across(a), y: up(b), ...more }, words)),
    });
    return svg;
  });
}

/** Words, cut to what fits into so many pixels. */
export const within = (words, pixels) => (words.length * LETTER <= pixels ? words : `${words.slice(0, Math.max(1, Math.floor(pixels / LETTER) - 1))}…`);

/** A bar of a share, named. */
export function meter(name, value, kind) {
  const holder = document.createElement("div");
  holder.className = "meter";
  const bar = shape("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    shape("rect", { class: "track", width: 100, height: 8 }), shape("rect", { class: kind, width: 100 * value, height: 8 }));
  const [label, number] = [document.createElement("span"), document.createElement("b")];
  label.textContent = name;
  number.textContent = percent(value);
  holder.append(label, bar, number);
  return holder;
}

export const percent = (value) => `${(100 * value).toFixed(value === 0 || value > 0.0995 ? 0 : 1)} %`;
