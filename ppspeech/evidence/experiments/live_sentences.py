"""Sentences by a front end that waits for nothing, beside the usual one, which normalizes what it has heard to the end.

Digits of 15 people never heard (AudioMNIST), joined to sentences that are played at any level down to -30 dB, at 30 ms
a frame. The usual front end scales every sentence to its peak and normalizes it by its own means; the live one keeps
the level and takes the means and deviations of the built-in voices. Some sentences are then spoken to a server over
TLS, on shares and in a circuit, and written down as they come.

Needs the corpus audiomnist; --quick takes about 40 s.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import MfccConfig, in_usual_range
from ppspeech.channel import Channel
from ppspeech.data import publicly_normalized
from ppspeech.evidence.bench.two_parties import certificates
from ppspeech.evidence.connected import DIGITS, HOP_S, Connected, audiomnist_digits, rate_of
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.network import run_in_processes
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.sentences import (
    Engine,
    GivenModels,
    Heard,
    ListeningEar,
    SentenceArrays,
    TakenModels,
    check_heard,
    follow_speech,
    streamed,
)
from ppspeech.service import SentenceDeployment, export_bank

LEVELS = (-30.0, 0.0)  # dB
STREAMED = 12  # sentences
PIECE = 5  # frames that are heard at once


@EXPERIMENTS.register("live-sentences")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001 (nothing to draw)
    """Word error rates of both front ends, and sentences whose words are those in the clear. `quick`: 30 sentences."""
    count = 30 if quick else 120
    usual = replace(MfccConfig.wideband(), hop_s=HOP_S)
    live = publicly_normalized(replace(usual, level="keep"))
    made = {
        name: audiomnist_digits(count, DIGITS, mfcc=mfcc, levels=LEVELS)
        for name, mfcc in (("usual", usual), ("live", live))
    }
    errors = {name: each.errors(each.sentences) for name, each in made.items()}
    spoken_words = sum(len(text) for _, text in made["live"].sentences)
    figures = [
        rate_of(
            "sentences.live.wer",
            errors["live"],
            "normalized by utterance",
            errors["usual"].rate,
            note=f"word error rate of {count} sentences, {spoken_words} words, at {LEVELS[0]:g} to {LEVELS[1]:g} dB",
        )
    ]
    said = made["live"].sentences[:STREAMED]
    frames = [in_usual_range(features, live) for features, _ in said]
    arrays = export_bank(made["live"].bank, made["live"].config, SentenceDeployment(frames=max(map(len, frames))))
    clear = [_in_the_clear(made["live"], features) for features, _ in said]
    engines: tuple[Engine, ...] = ("shares", "garbled")
    for engine in engines:
        found = spoken(arrays, frames, engine)
        pairs = list(zip(found, clear, strict=True))
        words = sum([w.word for w in one] == [w.word for w in other] for one, other in pairs)
        times = sum(one == other for one, other in pairs)
        apart = [
            max(abs(x.start - y.start), abs(x.end - y.end))
            for one, other in pairs
            if len(one) == len(other)
            for x, y in zip(one, other, strict=True)
        ]
        note = (
            f"same words, written down while they are spoken, over TLS; times as well in {times}, elsewhere within "
            f"{max(apart)} frames; {arrays.shape.bits} bits, {arrays.shape.fraction} after the point"
        )
        made_of = (words, len(clear), "sentences", "sentences", "the clear decoder", len(clear), note)
        figures.append(Figure.count(f"sentences.live.{engine}_equal", *made_of))
    return figures


def _in_the_clear(made: Connected, features: object) -> list[Heard]:
    found = made.transcriber.words(features)  # type: ignore[arg-type]
    return [Heard(word.word, word.start, word.end) for word in found]


def spoken(arrays: SentenceArrays, utterances: Sequence[Reals], engine: Engine) -> list[list[Heard]]:
    """What a client hears, without silence, of sentences that come piece by piece."""
    shape = arrays.shape

    def client(channel: Channel) -> list[list[Heard]]:
        met, models, found = meet_as_client(channel), TakenModels(streamed(shape, engine)), []
        with met.session():
            for frames in utterances:
                ear = ListeningEar(met, shape, models, engine)
                for at in range(0, len(frames), PIECE):
                    ear.hear(np.asarray(frames[at : at + PIECE], np.float64))
                found.append(ear.finish())
        return [[each for each in check_heard(shape, heard) if each.word] for heard in found]

    def server(channel: Channel) -> None:
        met, models = meet_as_server(channel), GivenModels(streamed(shape, engine), arrays.weights)
        with met.session():
            for _ in utterances:
                follow_speech(met, arrays, models, engine)

    with certificates() as tls:
        return run_in_processes(client, server, tls=tls)
