// Together: parties who keep their rows; what passes between them as it goes, and what each saw.

import { shape } from "./chart.js";
import { $, ask, guarded, make, options, row, running } from "./shell.js";

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
    const facts = [...Object.entries(plain.figures).map(([name, value]) => [name.replaceAll("_", " "), value.toFixed(3)]), ["guarantee", plain.guarantee ?? "none: what is released is exact"], ["time", `${plain.seconds.toFixed(1)} s`]];
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
  const places = new Map(ring.map((name, at) => {
    const angle = (2 * Math.PI * at) / ring.length - Math.PI / 2;
    return [name, [280 + 190 * Math.cos(angle), 190 + 135 * Math.sin(angle)]];
  }));
  if (names.includes("curator")) places.set("curator", [280, 190]);
  const svg = shape("svg", { viewBox: "0 0 560 380", role: "img", "aria-label": entries.length ? `${names.length} parties; ${entries.reduce((sum, each) => sum + each.messages, 0)} messages so far` : "Parties that have not begun" });
  const flows = new Map();
  for (const each of entries) {
    const key = [each.to, each.from].sort().join(" ");
    flows.set(key, { ends: [each.to, each.from], bytes: (flows.get(key)?.bytes ?? 0) + each.bytes });
  }
  for (const { ends, bytes } of flows.values()) {
    const [[x1, y1], [x2, y2]] = ends.map((name) => places.get(name));
    svg.append(shape("line", { class: "flow", x1, y1, x2, y2, "stroke-width": Math.min(14, 1 + Math.log10(1 + bytes)) }));
  }
  for (const [name, [x, y]] of places) {
    svg.append(shape("circle", { class: last && [last.from, last.to].includes(name) ? "now" : name === "curator" ? "other" : "", cx: x, cy: y, r: name === "curator" ? 16 : 12 }));
    svg.append(shape("text", { class: "who", x, y: y + (y > 190 || name === "curator" ? 32 : -20), "text-anchor": "middle" }, name));
  }
  $("graph").replaceChildren(svg);
  $("last").textContent = last ? `Last: ${last.from} to ${last.to}, ${last.what} (${last.bytes.toLocaleString("en")} bytes).` : "Lines grow with what passed.";
  $("seen").replaceChildren(...(entries.length ? entries.map((each) => row(each.to, `${each.what}, from ${each.from}`, each.messages, each.bytes)) : [row("nothing yet")]));
}

$("parties").addEventListener("input", () => seen.size || show());
void begin();
