"""Sentences recognized under encryption: words and times beside those in the clear.

Digits of 15 people never heard (AudioMNIST), of known people (FSDD), both joined to sentences, and sentences as they
were spoken (yesno), at 30 ms a frame; two processes over TLS.

Needs the corpora audiomnist, fsdd and yesno; --quick takes about 30 s.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import in_usual_range
from ppspeech.channel import Channel
from ppspeech.evidence.bench.two_parties import certificates
from ppspeech.evidence.connected import CONNECTED, Connected, rate_of
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.models import decode, total_word_errors
from ppspeech.network import run_in_processes
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.sentences import (
    Heard,
    SentenceArrays,
    answer_garbled,
    answer_sentence,
    check_heard,
    encode_sentences,
    transcribe,
    transcribe_garbled,
)
from ppspeech.service import SentenceDeployment, at_length, export_bank

STEP = 32
GARBLED = 12  # sentences that run in a circuit too


@EXPERIMENTS.register("encrypted-sentences")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001 (nothing to draw)
    """How many sentences have the words of the clear decoder, and those whose times are the same too.

    `quick`: FSDD alone, twelve sentences.
    """
    figures = []
    for name in ("fsdd",) if quick else CONNECTED:
        made = CONNECTED[name]()
        figures += compare(name, made, 12 if quick else len(made.sentences))
    return figures


def compare(name: str, made: Connected, count: int) -> list[Figure]:
    """One corpus."""
    said = made.sentences[:count]
    frames = [in_usual_range(features, made.config.front_end) for features, _ in said]
    longest = -(-max(len(each) for each in frames) // STEP) * STEP
    arrays = export_bank(made.bank, made.config, SentenceDeployment(frames=longest))
    clear = [_in_the_clear(made, features) for features, _ in said]
    found = encrypted(arrays, frames, garbled=False)
    circuits = encrypted(arrays, frames[:GARBLED], garbled=True)
    texts = [text for _, text in said]
    errors, clear_errors = (
        total_word_errors(zip(texts, ([h.word for h in heard] for heard in each), strict=True))
        for each in (found, clear)
    )
    words = sum(map(len, texts))
    shape = arrays.shape
    note = (
        f"{count} sentences, {words} words; {shape.bits} bits, {shape.fraction} after the point; scores can be "
        f"{arrays.most_apart:,.0f} nats apart, shares hold {shape.scale.bound:,.0f}"
    )
    alike = sum(_words(one) == _words(other) for one, other in zip(found, clear, strict=True))
    times = sum(one == other for one, other in zip(found, clear, strict=True))
    circuit = sum(_words(one) == _words(other) for one, other in zip(circuits, clear[:GARBLED], strict=True))

    def counted(metric: str, found: int, sentences: int, said: str | None = None) -> Figure:
        beside = ("sentences", "sentences", "the clear decoder", sentences)
        return Figure.count(f"sentences.{name}.{metric}", found, sentences, *beside, note=said)

    about = f"word error rate; {note}"
    return [
        counted("equal", alike, count, f"same words; {note}"),
        counted("times_equal", times, count, "times as well"),
        counted("garbled_equal", circuit, len(circuits)),
        rate_of(f"sentences.{name}.wer", errors, "the clear decoder", clear_errors.rate, about),
    ]


def _words(heard: Sequence[Heard]) -> list[str]:
    return [each.word for each in heard]


def _in_the_clear(made: Connected, features: object) -> list[Heard]:
    found = decode(made.graph, made.transcriber.scores(features).double())  # type: ignore[arg-type]
    return [Heard(word.word, word.start, word.end) for word in found.words]


def encrypted(arrays: SentenceArrays, utterances: Sequence[Reals], *, garbled: bool) -> list[list[Heard]]:
    """What a client hears, without silence; each utterance padded to a multiple of 32 frames."""
    lengths = [min(arrays.shape.frames, -(-len(each) // STEP) * STEP) for each in utterances]
    served = {length: at_length(arrays, length) for length in sorted(set(lengths))}

    def client(channel: Channel) -> list[list[Heard]]:
        met, found = meet_as_client(channel), []
        ask = transcribe_garbled if garbled else transcribe
        with met.session():
            for length, frames in zip(lengths, utterances, strict=True):
                found.append(ask(met, served[length].shape, np.asarray(frames, np.float64)))
        shapes = [served[length].shape for length in lengths]
        whole = [check_heard(shape, heard) for shape, heard in zip(shapes, found, strict=True)]
        return [[each for each in heard if each.word] for heard in whole]

    def server(channel: Channel) -> None:
        met = meet_as_server(channel)
        encoded = {length: encode_sentences(each) for length, each in served.items() if each.network is None}
        with met.session():
            for length in lengths:
                if garbled:
                    answer_garbled(met, served[length], encoded[length])
                else:
                    answer_sentence(met, served[length], encoded.get(length))

    with certificates() as tls:
        return run_in_processes(client, server, tls=tls)
