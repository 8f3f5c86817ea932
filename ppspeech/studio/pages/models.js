// Models: what bundles promise, drawn and in words, one beside another.

import { frame, percent } from "./chart.js";
import { $, ask, guarded, make, options } from "./shell.js";

const NONE = "nothing";
let models = new Map();

const begin = guarded(async () => {
  models = new Map((await ask("/api/models")).map((each) => [each.name, each]));
  const names = [...models.keys()];
  options($("left"), names.length ? names : ["none yet"], names[0]);
  options($("right"), [NONE, ...names], names[1] ?? NONE);
  $("left").disabled = $("right").disabled = names.length === 0;
  $("status").textContent = names.length
    ? `${names.length} ${names.length === 1 ? "bundle" : "bundles"}, each checked: its statement follows from its events.`
    : "";
  if (!names.length) $("status").replaceChildren("There is no bundle yet: ", make("a", { href: "/train" }, "train one"), ", or start the studio with a folder of bundles.");
  show();
});

function show() {
  const chosen = [$("left").value, $("right").value].map((name) => models.get(name)).filter(Boolean);
  $("sides").replaceChildren(...chosen.map((model, at) => card(model, at)));
  const drawn = chosen.filter((model) => model.trade_off);
  $("curve-card").hidden = drawn.length === 0;
  if (!drawn.length) return;
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const say = drawn.map((model) => `${model.name}: at 10 % false positives at least ${Math.round(100 * model.trade_off[10][1])} % false negatives`).join("; ");
  const kind = (model) => (chosen.indexOf(model) === 0 ? "a" : "b");
  frame($("curve"), {
    say, x: { from: 0, to: 1, ticks, text: percent, label: "false positives: said to be in" },
    y: { from: 0, to: 1, ticks, text: percent, label: "false negatives, at least" },
    fill: (chart) => {
      chart.line([[0, 1], [1, 0]], "chance");
      for (const model of drawn) chart.area([[0, 0], ...model.trade_off, [1, 0]], kind(model));
      for (const model of drawn) chart.line(model.trade_off, kind(model));
    },
  });
  $("legend").replaceChildren(...drawn.map((model) => make("li", { class: kind(model) }, model.name)), make("li", { class: "chance" }, "a coin: nothing to learn"));
}

function card(model, at) {
  const title = make("h2", { id: `model-${at}` }, model.name);
  const holder = make("section", { class: "card", "aria-labelledby": `model-${at}` }, title);
  if (model.refused) {
    holder.append(make("p", { class: "error" }, `It is refused: ${model.refused}`));
    return holder;
  }
  const facts = make("dl", { class: "facts" });
  const fact = (name, ...value) => facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, ...value)));
  fact("Guarantee", make("span", { class: model.private ? "badge" : "badge none" }, model.private ? "private" : "no guarantee"), ` ${model.guarantee}`);
  fact("In words", model.words);
  if (model.people.length) fact("For a person", list(model.people));
  fact("Model", `${model.type}: ${model.task}`);
  if (model.labels.length) fact("Labels", model.labels.join(", "));
  const missing = model.touches.filter((each) => !each.covered);
  fact("Not covered", missing.length ? list(missing.map((each) => `${each.topic}: ${each.note}`)) : "nothing that was declared");
  const covered = model.touches.filter((each) => each.covered);
  if (covered.length) fact("What else touched the data", list(covered.map((each) => `${each.topic}: ${each.status}, ${each.note}`)));
  if (model.caveats.length) fact("Caveats", list(model.caveats));
  if (model.assumes.length) fact("Assumes", list(model.assumes));
  const [audits, figures] = [true, false].map((wanted) => model.metrics.filter((each) => /audit|eps_/.test(each.metric) === wanted));
  fact("Audits", audits.length ? figureList(audits) : "none in this bundle: ppspeech audit tries to refute it");
  if (figures.length) fact("Figures", figureList(figures));
  if (model.events.length) fact("Events", list(model.events));
  fact("Fingerprint", make("code", {}, model.fingerprint));
  holder.append(facts);
  return holder;
}

const list = (lines) => make("ul", { class: "list" }, ...lines.map((line) => make("li", {}, line)));
const figureList = (found) => list(found.map((each) => `${each.metric}: ${Number(each.value.toPrecision(4))} ${each.unit ?? ""}${each.note ? ` (${each.note})` : ""}`));

for (const side of ["left", "right"]) $(side).addEventListener("change", show);
void begin();
