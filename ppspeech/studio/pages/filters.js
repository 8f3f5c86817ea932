// Filters: what the task keeps and what attackers find, by how much the task weighs.

import { frame, meter, percent } from "./chart.js";
import { $, ask, guarded, make, options, running } from "./shell.js";

let recipes = {};
let found = [];
const rho = () => 4 ** Number($("rho").value);
const shown = (value) => Number(value.toPrecision(3)).toString();

const resume = running({
  kind: "filter",
  title: (about) => `Learning, then attacking ${about.title}`,
  asked: () => ({ recipe: $("recipe").value, corpus: $("corpus").value, rho: rho() }),
  ended: load,
});

const begin = guarded(async () => {
  const choices = await ask("/api/choices");
  recipes = choices.filters;
  options($("recipe"), Object.keys(recipes), "filter_speaker");
  options($("corpus"), choices.corpora, "synthetic", (name) => (name === "synthetic" ? "synthetic: the built-in voices" : name));
  await load();
  await resume();
});

async function load() {
  found = (await ask("/api/runs/filter")).filter((run) => Object.keys(run.figures).length);
  show();
}

/** What a run says: the task, and the share of people that every attacker names from one clip. */
function read(figures) {
  const best = new Map(); // an attacker, as it is or on ranks: the better of both
  for (const [name, value] of Object.entries(figures)) {
    const attacker = /^filter\.attack\.(?:ranked\.)?([a-z_]+)$/.exec(name)?.[1];
    if (attacker && !["task", "chance", "worst"].includes(attacker)) best.set(attacker, Math.max(value, best.get(attacker) ?? 0));
  }
  return { task: figures["filter.attack.task"], attackers: [...best], chance: figures["filter.attack.chance"], none: figures["filter.none.private_worst"] };
}

function show() {
  $("shown").textContent = shown(rho());
  $("rho").setAttribute("aria-valuetext", `rho ${shown(rho())}`);
  $("about").textContent = recipes[$("recipe").value] ?? "";
  const own = found.filter((run) => run.recipe === $("recipe").value && run.corpus === $("corpus").value).map((run) => ({ ...run, ...read(run.figures) }));
  const points = own.filter((run) => run.task !== undefined && run.attackers.length).map((run) => ({ ...run, worst: Math.max(...run.attackers.map(([, value]) => value)) }));
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const chance = points.find((run) => run.chance !== undefined)?.chance;
  frame($("curve"), {
    say: points.length ? points.map((run) => `rho ${shown(run.rho)}: task ${percent(run.task)}, person ${percent(run.worst)}`).join("; ") : "No run yet",
    tall: 0.75,
    x: { from: 0, to: 1, ticks, text: percent, label: "people named, by the worst attacker" },
    y: { from: 0, to: 1, ticks, text: percent, label: "the task kept" },
    fill: (chart) => {
      if (chance !== undefined) chart.line([[chance, 0], [chance, 1]], "chance");
      for (const run of points) chart.dot([run.worst, run.task], run.rho === rho() ? "now" : "", `rho ${shown(run.rho)}`, run.rho === rho() ? 8 : 6);
      if (!points.length) chart.text([0.5, 0.5], "no run yet", { "text-anchor": "middle" });
    },
  });
  const now = points.findLast((run) => run.rho === rho());
  $("bars").replaceChildren(...(now
    ? [meter("the task", now.task, "task"), ...now.attackers.sort((a, b) => b[1] - a[1]).map(([name, value]) => meter(label(name), value, "person")),
      make("p", { class: "note" }, [chance === undefined ? "" : `Whoever only guesses names ${percent(chance)}.`, now.none === undefined ? "" : `Without a filter, the worst attacker names ${percent(now.none)}.`].join(" "))]
    : [make("p", { class: "note" }, `No run at rho ${shown(rho())} yet. Runs are there at ${[...new Set(points.map((run) => shown(run.rho)))].join(", ") || "none"}.`)]));
}

const label = (name) => name.replaceAll("_", " ");

for (const id of ["recipe", "corpus", "rho"]) $(id).addEventListener("input", show);
void begin();
