// The page: says who the server is and what its model promises, records a word or a sentence, asks, and shows both sides.

import { ask, showAnswer, spokenFor, takenOf } from "./asking.js";
import { ByteTape, drawFeatures, drawWave } from "./draw.js";
import { connect } from "./remote.js";
import { record, resampled, said } from "./sound.js";
import { KINDS } from "./watch.js";

const KEPT_MS = 30_000; // how long a connection waits for another question: it holds a place at the server
const $ = (id) => document.getElementById(id);
const socketAddress = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;

let client = null; // one that is connected
let closing = 0;
let offer = null;
let recording = null;
let drawing = 0;
let passed = []; // for this question: direction, kind, messages and bytes
const tape = new ByteTape($("bytes"));

function onTraffic({ kinds, bytes }) {
  passed = kinds;
  tape.add(bytes, bytes.length);
  drawing ||= requestAnimationFrame(showTraffic);
}

async function begin() {
  const server = await fetch("server.json").then((answer) => answer.json()).catch(() => {
    throw new Error("The server did not say who it is.");
  });
  $("pin").textContent = server.pin ? server.pin.match(/.{8}/g).join(" ") : "none: no TLS";
  $("pin-note").textContent = server.pin
    ? "SHA-256 of its certificate. It should be the one that whoever runs the server told you, and your browser shows."
    : "This server listens on this machine alone, where nobody else can hear.";
  $("version").textContent = `ppspeech ${server.version}.`;
  await choose();
}

/** Ask what is offered, and show it; no place is held at the server while nobody speaks. */
async function choose(model) {
  leave();
  const asked = await connected(model);
  offer = asked.offer;
  const names = asked.offers.map((each) => each.name);
  $("models").replaceChildren(...names.map((name) => new Option(name, name, name === offer.name, name === offer.name)));
  $("choice").hidden = names.length < 2;
  $("model").textContent = `${offer.name}: ${offer.task}`;
  $("privacy").textContent = offer.privacy;
  showLeft(offer.queriesLeft);
  const { noun } = spokenFor(offer);
  $("title").firstChild.data = `Say a ${noun}. `;
  document.title = `Say a ${noun}: it stays here`;
  $("same").textContent = noun === "word" ? "every word" : "all sentences of about the same length";
  pressed(false);
  $("record").disabled = false;
  say(`Press the button, say one ${noun}, and wait.`);
}

async function connected(model) {
  try {
    client = await connect(socketAddress, { model }, onTraffic);
  } catch (error) {
    const several = /choose one of ([^,]+)/.exec(error.message); // then it is the first, and the others can be chosen
    if (model !== undefined || !several) throw error;
    return connected(several[1]);
  }
  return client;
}

/** A connection that is ready: what needs no voice, nor how long it spoke, is done while it speaks. */
async function ready() {
  clearTimeout(closing);
  if (client === null) await connected(offer.name);
  await client.prepare();
  return client;
}

function leave() {
  clearTimeout(closing);
  client?.close();
  client = null;
}

async function press() {
  if (recording) return recording.stop();
  hide("error");
  $("record").disabled = true;
  forgetTraffic();
  try {
    const heard = [];
    let painting = 0; // at most once a frame: the processor has better things to do
    recording = await record((block) => {
      heard.push(...thinned(block));
      painting ||= requestAnimationFrame(() => {
        painting = 0;
        if (recording) drawWave($("wave"), Float32Array.from(heard));
      });
    }, spokenFor(offer));
    pressed(true);
    say(`Listening … say one ${spokenFor(offer).noun}.`);
    const preparing = ready();
    preparing.catch(() => {}); // said below, when it is waited for
    const { samples, rate, ended } = await recording.ended;
    pressed(false);
    await answer(samples, rate, preparing, ended);
  } catch (error) {
    if (error.name === "AudioError") keepAWhile(); // whoever serves must not see that something was wrong with the sound
    else leave();
    complain(error);
  } finally {
    recording = null;
    pressed(false);
    $("record").disabled = offer === null;
  }
}

async function answer(samples, rate, preparing, ended) {
  $("record").disabled = true;
  const spoken = said(samples, rate, takenOf(offer));
  if (spoken === null) {
    await preparing;
    const words = "Nothing was heard. Check that the microphone is on, and speak a little louder.";
    throw Object.assign(new Error(words), { name: "AudioError" });
  }
  const clip = await resampled(spoken, rate, modelRate());
  drawWave($("wave"), clip);
  label("wave", `Waveform of ${(clip.length / modelRate()).toFixed(2)} seconds`);
  say("Asking, without telling …");
  const asking = await preparing;
  const found = await ask(asking, clip, modelRate());
  const total = performance.now() - ended;
  show(found, total);
  showTraffic();
  const rows = await asking.features(clip, modelRate());
  drawFeatures($("features"), rows);
  label("features", `Features: ${rows.length} frames of ${rows[0]?.length ?? 0} numbers`);
  keepAWhile();
  const detail = { ...found, totalMs: total, samples: clip, rate: modelRate(), traffic: passed };
  document.dispatchEvent(new CustomEvent("answer", { detail }));
}

function show(found, total) {
  showAnswer($("word"), found);
  $("total").textContent = `${Math.round(total)} ms`;
  $("work").textContent = `${Math.round(found.workMs)} ms`;
  $("up").textContent = size(found.bytesUp);
  $("down").textContent = size(found.bytesDown);
  $("rounds").textContent = found.rounds.toLocaleString("en");
  $("answer").hidden = false;
  say(`Only this page knows the ${spokenFor(offer).noun}. Press the button for another one.`);
  showLeft(client.queriesLeft);
}

function showLeft(left) {
  $("left").textContent = left === null ? "as many as you like" : left.toLocaleString("en");
}

function showTraffic() {
  drawing = 0;
  const rows = passed.map(({ direction, kind, messages, bytes }) =>
    row(direction, direction === "sent" ? "→" : "←", KINDS[kind] ?? `kind ${kind}`, messages, bytes),
  );
  $("kinds").replaceChildren(...rows);
  label("bytes", "Bytes that were sent: they look like noise, and are");
}

function row(direction, arrow, name, messages, bytes) {
  const line = document.createElement("tr");
  const way = document.createElement("span");
  way.className = "way";
  way.textContent = arrow;
  way.setAttribute("role", "img");
  way.setAttribute("aria-label", direction === "sent" ? "sent:" : "received:");
  const first = document.createElement("td");
  first.append(way, name);
  const others = [messages.toLocaleString("en"), size(bytes)].map((text) => {
    const cell = document.createElement("td");
    cell.textContent = text;
    return cell;
  });
  line.append(first, ...others);
  return line;
}

function forgetTraffic() {
  client?.forget();
  passed = [];
  tape.clear();
}

function keepAWhile() {
  clearTimeout(closing);
  closing = setTimeout(leave, KEPT_MS);
}

function modelRate() {
  return offer.terms.mfcc.sample_rate;
}

function thinned(block) {
  const out = [];
  for (let at = 0; at < block.length; at += 16) out.push(block[at]);
  return out;
}

function pressed(is) {
  $("record").setAttribute("aria-pressed", String(is));
  $("record-text").textContent = is ? "Stop" : `Record a ${offer ? spokenFor(offer).noun : "word"}`;
  if (is) $("record").disabled = false;
}

function size(bytes) {
  return bytes < 1e4 ? `${bytes.toLocaleString("en")} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function say(text) {
  $("status").textContent = text;
}

function label(id, text) {
  $(id).setAttribute("aria-label", text);
}

function hide(id) {
  $(id).hidden = true;
}

function complain(error) {
  $("error").textContent = error instanceof Error && error.message ? error.message : String(error);
  $("error").hidden = false;
  say(offer === null ? "Reload the page to try again." : "Press the button to try again.");
}

$("record").addEventListener("click", () => void press());
$("models").addEventListener("change", (event) => {
  $("record").disabled = true;
  hide("error");
  choose(event.target.value).catch(complain);
});
addEventListener("pagehide", leave);
begin().catch(complain);
