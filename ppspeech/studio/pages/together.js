// Together: parties who keep their rows; what passes between them as it goes, and what each saw.

import { fitted, shape } from "./chart.js";
import { $, ask, guarded, make, none, options, row, running } from "./shell.js";

const MEANS = { accuracy: "accuracy of what they release", majority: "who always says the largest class", one_party: "one party alone, on its own rows" };
let seen = new Map(); // party, sender and kind: messages and bytes
let drawing = 0;
let last = null;

const resume = running({
  kind: "together",
  title: (about) => about.title,
  asked: () => {
    [seen, last] = [new Map(), null];
    $("result").hidden = true;
    return { protocol: $("protocol").value, table: $("table").value, parties: Number($("parties").value), epsilon: Number($("epsilon").value) };
  },
  messages: (fresh) => {
    for (const each of fresh) {
      const key = JSON.stringify([each.to, each.from, each.kind]);
      const entry = seen.get(key) ?? { ...each, messages: 0, bytes: 0 };
      seen.set(key, { ...entry, messages: entry.messages + 1, bytes: entry.bytes + each.bytes });
      last = each;
    }
    drawing ||= requestAnimationFrame(show);
  },
  ended: async (state, told) => {
    const line = told.findLast((each) => each.startsWith("{"));
    if (state !== "done" || !line) return;
    const plain = JSON.parse(line);
    const facts = [...Object.entries(plain.figures).map(([name, value]) => [MEANS[name] ?? name.replaceAll("_", " "), value.toFixed(3)]), ["guarantee", plain.guarantee ?? "none: what is released is exact"], ["time", `${plain.seconds.toFixed(1)} s`]];
    $("figures").replaceChildren(...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
    $("result").hidden = false;
  },
});

const begin = guarded(async () => {
  const choices = await ask("/api/choices");
  options($("protocol"), Object.keys(choices.protocols), "train_average", (name) => choices.protocols[name]);
  options($("table"), choices.tables, "breast_cancer", (name) => name.replaceAll("_", " "));
  show();
  await resume();
});

function show() {
  drawing = 0;
  const entries = [...seen.values()].sort((a, b) => a.to.localeCompare(b.to, "en", { numeric: true }));
  const names = [...new Set(entries.flatMap((each) => [each.to, each.from]))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const parties = names.filter((name) => name !== "curator");
  const count = Number($("parties").value) || 2;
  const ring = parties.length ? parties : Array.from({ length: Math.min(12, count) }, (_, at) => `party${at}`);
  const flows = new Map();
  for (const each of entries) {
    const key = [each.to, each.from].sort().join(" ");
    flows.set(key, { ends: [each.to, each.from], bytes: (flows.get(key)?.bytes ?? 0) + each.bytes });
  }
  const say = entries.length ? `${names.length} parties; ${entries.reduce((sum, each) => sum + each.messages, 0)} messages so far` : "Parties that have not begun";
  fitted($("graph"), (width) => drawRing(width, { ring, hub: names.includes("curator"), flows, say }));
  $("last").textContent = last ? `Last: ${last.from} to ${last.to}, ${last.what} (${last.bytes.toLocaleString("en")} bytes).` : "Lines grow with what passed.";
  $("seen").replaceChildren(...(entries.length ? gathered(entries).map((each) => row(each.to, `${each.what}, ${each.from}`, each.messages, each.bytes)) : [none(4, "nothing yet")]));
}

function drawRing(width, { ring, hub, flows, say }) {
  const [height, middle] = [Math.round(Math.min(400, Math.max(280, 0.72 * width))), width / 2];
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": say });
  const places = new Map(ring.map((name, at) => {
    const angle = (2 * Math.PI * at) / ring.length - Math.PI / 2;
    return [name, [middle + (middle - 46) * Math.cos(angle), height / 2 + (height / 2 - 44) * Math.sin(angle)]];
  }));
  if (hub) places.set("curator", [middle, height / 2]);
  for (const { ends, bytes } of flows.values()) {
    const [[x1, y1], [x2, y2]] = ends.map((name) => places.get(name));
    svg.append(shape("line", { class: "flow", x1, y1, x2, y2, "stroke-width": Math.min(14, 1 + Math.log10(1 + bytes)) }));
  }
  for (const [name, [x, y]] of places) {
    const busy = last && [last.from, last.to].includes(name);
    svg.append(shape("circle", { class: busy ? "now" : name === "curator" ? "other" : "", cx: x, cy: y, r: name === "curator" ? 17 : 13 }));
    const [dx, dy, anchor] = name === "curator" ? [24, 30, "start"] : [0, y > height / 2 + 1 ? 32 : -21, "middle"];
    svg.append(shape("text", { class: "who", x: x + dx, y: y + dy, "text-anchor": anchor }, name));
  }
  return svg;
}

/** By party and what it is: from how many, messages and bytes. */
function gathered(entries) {
  const rows = new Map();
  for (const each of entries) {
    const key = JSON.stringify([each.to, each.what]);
    const entry = rows.get(key) ?? { to: each.to, what: each.what, from: new Set(), messages: 0, bytes: 0 };
    rows.set(key, { ...entry, from: entry.from.add(each.from), messages: entry.messages + each.messages, bytes: entry.bytes + each.bytes });
  }
  return [...rows.values()].map((each) => ({ ...each, from: each.from.size === 1 ? `from ${[...each.from][0]}` : `from ${each.from.size} others` }));
}

$("parties").addEventListener("input", () => seen.size || show());
void begin();
