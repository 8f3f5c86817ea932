// What a page asks of a model, and how it shows what it is told: one word, or a sentence with the times of its words.

const WORD = { noun: "word", silence: 0.6, longest: 4 }; // seconds after a word that end it, and of a recording
const PAUSE = 1.2; // seconds of silence that end a sentence
const SPARE = 0.05; // seconds by which a recording ends before the model's longest sentence does

const isOfSentences = (offer) => offer.kind === "sentences";

/** What is recorded for a model: its name, the silence that ends it, and how long it may be, in seconds. */
export function spokenFor(offer) {
  return isOfSentences(offer) ? { noun: "sentence", silence: PAUSE, longest: fills(offer) - SPARE } : WORD;
}

/** Seconds that are taken of what was said: a sentence as it is, and of a word what fills the frames of the model. */
export function takenOf(offer) {
  return isOfSentences(offer) || offer.terms.statistics ? Infinity : fills(offer);
}

function fills({ terms: { mfcc, shape } }) {
  return mfcc.window_s + (shape.frames - 1) * mfcc.hop_s;
}

/** The answer of a client of this model. */
export function ask(client, samples, rate) {
  return isOfSentences(client.offer) ? client.transcribe(samples, rate) : client.recognize(samples, rate);
}

/** Show an answer: a word, or words with their times. */
export function showAnswer(element, { value }) {
  const isSentence = Array.isArray(value);
  element.classList.toggle("sentence", isSentence);
  element.replaceChildren(...(isSentence ? value.flatMap(timed) : [value ?? "none of its words"]));
  if (isSentence && !value.length) element.textContent = "no words";
}

function timed({ word, start, end }) {
  const said = document.createElement("span");
  const when = document.createElement("small");
  when.textContent = `${start.toFixed(2)}–${end.toFixed(2)} s`;
  said.append(word, " ", when);
  return [said, " "];
}
