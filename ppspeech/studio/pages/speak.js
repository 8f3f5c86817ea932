// Speak: what was said is asked of a server that does not hear it; this page records, encrypts, and shows both sides.

import { ask as askClient, showAnswer, spokenFor, takenOf } from "../asking.js";
import { ByteTape, drawFeatures, drawWave } from "../draw.js";
import { record, resampled, said } from "../sound.js";
import { KINDS, Tally, watched } from "../watch.js";
import { fitted, shape } from "./chart.js";
import { $, ask, complain, forgive, guarded, make, none, options, row, watch } from "./shell.js";

const WAITS_MS = 180_000; // for a server to be ready
const RECORD = "record";
let connect = null;
let client = null;
let door = null;
let recording = null;
let drawing = 0;
let counts = new Float64Array(256);
let tallies = new Map();
const tape = new ByteTape($("bytes"));

const Watched = watched((direction, bytes, socket) => {
  if (!tallies.has(socket)) tallies.set(socket, { sent: new Tally(), received: new Tally() });
  tallies.get(socket)[direction].take(bytes);
  if (direction === "sent") {
    tape.add(bytes);
    for (const byte of bytes) counts[byte]++;
  }
  drawing ||= requestAnimationFrame(showTraffic);
});

const begin = guarded(async () => {
  ({ connect } = await import("../client.js"));
  showTraffic();
  const models = (await ask("/api/models")).filter((model) => model.speakable);
  const state = await ask("/api/speak");
  options($("bundle"), models.map((model) => model.name), state.job?.about.bundle ?? models[0]?.name);
  $("serve").disabled = models.length === 0;
  if (models.length === 0) {
    options($("bundle"), ["none yet"]);
    $("bundle").disabled = true;
    $("status").replaceChildren("There is no model of words or sentences yet: ", make("a", { href: "/train" }, "train and release one"), ", or start the studio with a folder of bundles.");
    return;
  }
  if (state.job?.state === "running") await meet(state.job);
  else say("Choose a model, and let a server offer it.");
});

const serve = guarded(async () => {
  $("serve").disabled = true;
  await wait(await ask("/api/speak", { bundle: $("bundle").value }));
});

/** Wait until a server listens, and load this page again: its policy then lets it speak to that server alone. */
async function wait(job) {
  $("serve").disabled = true;
  say("A server is starting: it reads the bundle, and prepares …");
  const told = [];
  const over = watch(job.name, { lines: (lines) => told.push(...lines) });
  const until = performance.now() + WAITS_MS;
  for (;;) {
    const ended = await Promise.race([over, new Promise((done) => setTimeout(done, 300))]);
    if ((await ask("/api/speak")).door) {
      history.replaceState(null, "", `#${RECORD}`); // where the keyboard goes on
      return location.reload();
    }
    if (ended || performance.now() > until) {
      $("serve").disabled = false;
      say("Choose a model, and let a server offer it.");
      throw new Error(told.findLast((line) => /^error:/.test(line)) ?? "The server did not start.");
    }
  }
}

async function meet(job) {
  ({ door } = await ask("/api/speak"));
  if (door === null) return wait(job);
  void watch(job.name).then((state) => {
    $("record").disabled = $("file").disabled = true;
    client = null;
    say("Choose a model, and let a server offer it.");
    if (state !== "stopped") complain(new Error("The server has ended. Serve the model again."));
  });
  client = await connect(`ws://${door}/ws`, { WebSocket: Watched });
  $("record").disabled = $("file").disabled = false;
  $("serve").textContent = "Serve this one";
  $("title").firstChild.data = `Say a ${spokenFor(client.offer).noun}. `;
  $("same").textContent = spokenFor(client.offer).noun === "word" ? "every word" : "all sentences of about the same length";
  pressed(false);
  say(`${client.offer.name}: ${client.offer.task} ${client.offer.privacy}`);
  if (location.hash === `#${RECORD}`) $(RECORD).focus();
}

const press = guarded(async () => {
  if (recording) return recording.stop();
  busy(true);
  try {
    const heard = [];
    recording = await record((block) => {
      heard.push(...block.filter((_, at) => at % 16 === 0));
      drawWave($("wave"), Float32Array.from(heard));
    }, spokenFor(client.offer));
    pressed(true);
    $("record").disabled = false;
    const preparing = client.prepare();
    preparing.catch(() => {});
    const { samples, rate } = await recording.ended;
    pressed(false);
    await answer(samples, rate, preparing);
  } finally {
    recording = null;
    pressed(false);
    busy(false);
  }
});

const pick = guarded(async () => {
  const [file] = $("file").files;
  if (!file) return;
  busy(true);
  try {
    const context = new OfflineAudioContext(1, 1, 48_000);
    const sound = await context.decodeAudioData(await file.arrayBuffer()).catch(() => {
      throw new Error(`${file.name} is no sound that this browser reads: pick a WAV file.`);
    });
    await answer(sound.getChannelData(0), sound.sampleRate, client.prepare());
  } finally {
    busy(false);
    $("file").value = "";
  }
});

async function answer(samples, rate, preparing) {
  const ended = performance.now();
  $("record").disabled = true;
  preparing.catch(() => {});
  const modelRate = client.offer.terms.mfcc.sample_rate;
  const spoken = said(samples, rate, takenOf(client.offer));
  if (spoken === null) throw new Error("Nothing was heard. Check that the microphone is on, and speak a little louder.");
  const clip = await resampled(spoken, rate, modelRate);
  drawWave($("wave"), clip);
  $("wave").setAttribute("aria-label", `Waveform of ${(clip.length / modelRate).toFixed(2)} seconds`);
  await preparing;
  const found = await askClient(client, clip, modelRate);
  show(found, performance.now() - ended);
  const rows = client.features(clip, modelRate).map((each) => [...each]);
  drawFeatures($("features"), rows);
  $("features").setAttribute("aria-label", `Features: ${rows.length} frames of ${rows[0]?.length ?? 0} numbers`);
  document.dispatchEvent(new CustomEvent("answer", { detail: { ...found, samples: clip, rate: modelRate, traffic: summed() } }));
}

function show(found, total) {
  showAnswer($("word"), found);
  const facts = { total: `${Math.round(total)} ms`, work: `${Math.round(found.workMs)} ms`, up: size(found.bytesUp), down: size(found.bytesDown), rounds: found.rounds.toLocaleString("en") };
  for (const [id, text] of Object.entries(facts)) $(id).textContent = text;
  $("answer").hidden = false;
}

function showTraffic() {
  drawing = 0;
  const all = counts.reduce((sum, each) => sum + each, 0);
  fitted($("spread"), (width) => spread(width, all));
  if (all) {
    const bits = counts.reduce((sum, each) => (each ? sum - (each / all) * Math.log2(each / all) : sum), 0);
    $("surprise").textContent = `${all.toLocaleString("en")} bytes, ${bits.toFixed(3)} bits of surprise a byte; coin flips have 8.`;
    $("bytes").setAttribute("aria-label", `Bytes that were sent, ${bits.toFixed(2)} of 8 bits of surprise each`);
  }
  const rows = summed().map((each) => row(way(each), each.messages, each.bytes));
  $("kinds").replaceChildren(...(rows.length ? rows : [none(3)]));
}

/** What passed for this question: direction, kind, messages and bytes, over all connections. */
function summed() {
  const sums = new Map();
  for (const both of tallies.values()) {
    for (const [direction, tally] of Object.entries(both)) {
      for (const [kind, each] of tally.kinds) {
        const entry = sums.get(direction + kind) ?? { direction, kind, messages: 0, bytes: 0 };
        sums.set(direction + kind, { ...entry, messages: entry.messages + each.messages, bytes: entry.bytes + each.bytes });
      }
    }
  }
  return [...sums.values()];
}

function way({ direction, kind }) {
  const arrow = make("span", { role: "img", class: "way", "aria-label": direction === "sent" ? "sent:" : "received:" }, direction === "sent" ? "→" : "←");
  return make("span", {}, arrow, ` ${KINDS[kind] ?? `kind ${kind}`}`);
}

/** How often each value of a byte came, beside how often it would by coin flips. */
function spread(width, all) {
  const [most, low, wide] = [Math.max(1, ...counts), 92, (width - 2) / 256];
  const bars = [...counts].map((each, at) => `M${(1 + wide * at).toFixed(2)} ${low}v${((-84 * each) / most).toFixed(2)}h${(0.75 * wide).toFixed(2)}V${low}z`).join("");
  const svg = shape("svg", { viewBox: `0 0 ${width} 118`, width, height: 118, role: "img", "aria-label": all ? "How often each of the 256 values came: about equally" : "No bytes yet" },
    shape("path", { class: "bars", d: bars }), shape("line", { class: "axis", x1: 0, x2: width, y1: low, y2: low }));
  [[0, "start", "0"], [width / 2, "middle", "value of a byte"], [width, "end", "255"]].forEach(([x, anchor, words]) => svg.append(shape("text", { x, y: 112, "text-anchor": anchor }, words)));
  if (all) svg.append(shape("line", { class: "chance line", x1: 0, x2: width, y1: low - (84 * all) / 256 / most, y2: low - (84 * all) / 256 / most }));
  return svg;
}

function busy(is) {
  if (is) {
    forgive();
    tape.clear();
    [counts, tallies] = [new Float64Array(256), new Map()];
  }
  $("record").disabled = $("file").disabled = is || client === null;
}

function pressed(is) {
  $("record").setAttribute("aria-pressed", is);
  $("record-text").textContent = is ? "Listening … press to end" : `Record a ${client ? spokenFor(client.offer).noun : "word"}`;
}

const size = (bytes) => (bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const say = (words) => ($("status").textContent = words);

$("serve").addEventListener("click", serve);
$("record").addEventListener("click", press);
$("file").addEventListener("change", pick);
addEventListener("pagehide", () => client?.close());
void begin();
