// Train: a recipe and a corpus at an epsilon; every run is a point.

import { frame, percent } from "./chart.js";
import { $, ask, complain, guarded, make, none, options, row, running, watch } from "./shell.js";

let recipes = {};
const epsilon = () => 2 ** Number($("epsilon").value);
const shown = (value) => Number(value.toPrecision(3)).toString();

const resume = running({
  kind: "train",
  title: (about) => `Training ${about.title}`,
  asked: () => ({
    recipe: $("recipe").value, corpus: $("corpus").value, unit: $("unit").value, epochs: Number($("epochs").value),
    epsilon: $("plain").checked ? null : epsilon(),
  }),
  lines: (fresh) => {
    const told = fresh.map((line) => /epoch (\d+) of (\d+)/.exec(line)).findLast(Boolean);
    if (told) {
      $("progress").value = told[1] / told[2];
      $("status").textContent = `Epoch ${told[1]} of ${told[2]} is done …`;
    }
  },
  ended: showRuns,
});

const begin = guarded(async () => {
  const choices = await ask("/api/choices");
  recipes = choices.recipes;
  options($("recipe"), Object.keys(recipes), "keyword_dp");
  options($("corpus"), choices.corpora, choices.corpora.includes("synthetic") ? "synthetic" : choices.corpora[0], (name) => (name === "synthetic" ? "synthetic: the built-in voices" : name));
  options($("unit"), choices.units, "speaker", (unit) => `one ${unit}`);
  about();
  await showRuns();
  await resume();
});

function about() {
  $("about").textContent = recipes[$("recipe").value] ?? "";
  $("shown").textContent = shown(epsilon());
  $("epsilon").disabled = $("unit").disabled = $("plain").checked;
  $("epsilon").setAttribute("aria-valuetext", `epsilon ${shown(epsilon())}`);
}

async function showRuns() {
  const found = (await ask("/api/runs/train")).filter((run) => run.figures.test_accuracy !== undefined);
  const priced = found.filter((run) => run.epsilon !== null);
  const logs = [-2, -1, 0, 1, 2, 3, 4, 5];
  const lines = [...new Set(priced.map((run) => JSON.stringify([run.recipe, run.corpus, run.unit])))].map((key) => {
    const own = priced.filter((run) => JSON.stringify([run.recipe, run.corpus, run.unit]) === key).sort((a, b) => a.epsilon - b.epsilon);
    return own.map((run) => [Math.log2(run.epsilon), run.figures.test_accuracy]);
  });
  frame($("curve"), {
    say: found.length ? found.map((run) => `epsilon ${run.epsilon ?? "none"}: accuracy ${percent(run.figures.test_accuracy)}`).join("; ") : "No run yet",
    tall: 0.42,
    x: { from: -2.2, to: 5.2, ticks: logs, text: (tick) => shown(2 ** tick), label: "epsilon: smaller promises more" },
    y: { from: 0, to: 1, ticks: [0, 0.25, 0.5, 0.75, 1], text: percent, label: "accuracy, held-out people" },
    fill: (chart) => {
      for (const points of lines) chart.line(points, "a");
      for (const run of found) {
        const words = `${run.recipe} on ${run.corpus}, epsilon ${run.epsilon ?? "none"}: ${percent(run.figures.test_accuracy)}`;
        if (run.epsilon === null) chart.line([[-2.2, run.figures.test_accuracy], [5.2, run.figures.test_accuracy]], "chance");
        else chart.dot([Math.log2(run.epsilon), run.figures.test_accuracy], "full", words);
      }
      if (!found.length) chart.text([1.5, 0.5], "no run yet", { "text-anchor": "middle" });
    },
  });
  $("runs").replaceChildren(...(found.length ? found.toReversed().map(runRow) : [none(4)]));
}

function runRow(run) {
  const name = `${run.recipe} on ${run.corpus}, ${run.epochs} ${run.epochs === 1 ? "epoch" : "epochs"}`;
  const cells = [name, run.epsilon === null ? "none" : `${shown(run.epsilon)} for one ${run.unit}`, percent(run.figures.test_accuracy)];
  if (run.released) return row(...cells, make("a", { href: "/models" }, "released: see Models"));
  const button = make("button", { type: "button", class: "quiet small", "aria-label": `Release ${name}` }, "Release as a bundle");
  button.addEventListener("click", guarded(() => release(run, button)));
  return row(...cells, button);
}

async function release(run, button) {
  button.disabled = true;
  try {
    const job = await ask("/api/start/export", { run: run.run, state: $("state").checked ? "yes" : "no" });
    button.textContent = "Releasing …";
    const told = [];
    const state = await watch(job.name, { lines: (fresh) => told.push(...fresh) });
    if (state !== "done") throw new Error(told.findLast((line) => line.trim()) ?? "It was not released.");
    button.replaceWith(make("a", { href: "/models" }, "released: see Models"));
  } catch (error) {
    button.disabled = false;
    button.textContent = "Release as a bundle";
    complain(error);
  }
}

for (const id of ["recipe", "epsilon", "plain"]) $(id).addEventListener("input", about);
void begin();
