"""Encrypted keyword recognition, Pathak 2010 table 4.1: two processes over TLS, beside the published protocol.

Needs phe.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from unittest.mock import patch

import numpy as np

from ppspeech.arrays import Bytes, Reals
from ppspeech.channel import Channel
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.evidence.bench.lattice import bare_kernel
from ppspeech.evidence.bench.two_parties import Measured, Timed, Tls, certificates, measure
from ppspeech.evidence.published.protocols.slice_timing import published_keyword_seconds
from ppspeech.figures import Figure
from ppspeech.network import run_in_processes
from ppspeech.protocols import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.scores import MOST_BITS, WordArrays, WordShape, fit_words, form_weights
from ppspeech.protocols.words import (
    FAR,
    Hearing,
    KeywordJob,
    StreamModels,
    TakenModels,
    answer,
    answer_garbled,
    encode_models,
    follow,
    garbled_bytes,
    model_bytes,
    prepare_naming,
    prepare_texts,
    recognize,
    recognize_garbled,
    stream_plan,
    usual_ahead,
)

FRAMES, DIMENSIONS, WORDS, STATES = 98, 39, 10, 5
STAYS = 0.95
RADIUS = 12.0  # of frames: standard normal ones of 39 numbers are half as long, and never beyond
FRAMES_30 = 33  # the same second at a hop of 30 ms
BATCH = 16
TURNS = 5
SPOKEN_SECONDS = 0.98


@BENCHES.register("keyword")
def run(quick: bool) -> list[Figure]:
    """Forward and Viterbi, at hops of 10 and 30 ms, streaming, batches, in a circuit, simulated links, the published
    protocol and the score in the clear.

    Everything of a job counts but the meeting (keys and 128 base transfers, once for a pair of parties) and the
    encoding of weights (once a model), which are figures of their own.
    """
    repeats = 4 if quick else 25
    models, utterance = made_models(), made_utterance()
    figures: list[Figure] = []
    with certificates() as tls:
        bare = bare_kernel(KeywordJob(models.shape).plan, models.score_weights, repeats=3 if quick else 10)
        where = f"two processes, TLS on loopback, {machine()}; best of {repeats}"
        for operation in ("forward", "viterbi"):
            variant = with_operation(models, operation)
            measured = _measure(timed(variant, [utterance]), tls, repeats)
            figures += _job_figures(f"keyword.{operation}", measured, bare, where)
            figures += _hop_figures(operation, tls, repeats, where)
        figures.append(_overhead(models, utterance, tls, repeats))
        for operation, name in (("viterbi", "utterances_per_s"), ("forward", "forward.utterances_per_s")):
            many = [made_utterance(seed) for seed in range(BATCH)]
            batch = _measure(timed(with_operation(models, operation), many), tls, max(2, repeats // 5))
            note = f"{BATCH} in lock step, {operation}, offline and online: {batch.total:.2f} s, {batch.bytes:,} bytes"
            figures.append(Figure(f"keyword.batch.{name}", BATCH / batch.total, "1/s", note=note))
        figures += _stream_figures(models, utterance, tls, repeats, where)
        figures += _garbled_figures(models, utterance, tls, repeats, where)
        figures += _link_figures(models, utterance, tls, quick)
    figures += _published_figures(quick, next(f.value for f in figures if f.metric == "keyword.forward.total_s"))
    plain = best_seconds(lambda: plain_scores(models, utterance), 5)
    return [*figures, Figure("keyword.plain_s", plain, "s", note="forward scores of the same job in the clear, numpy")]


def _measure(job: Timed, tls: Tls, repeats: int, delay: float = 0.0) -> Measured:
    return measure([job], repeats, tls=tls, delay=delay)[job.name]


def _job_figures(name: str, measured: Measured, bare: float, where: str) -> list[Figure]:
    note = f"{where}; median {measured.median:.3f} s"
    kernel = f"against SEAL's multiply_plain and add of the same scores alone, one thread: {1e3 * bare:.1f} ms"
    return [
        Figure.less(f"{name}.total_s", measured.total, "s", "saying the word", SPOKEN_SECONDS, note),
        Figure(f"{name}.offline_s", measured.offline, "s", note="transfers and encryptions, while the user speaks"),
        Figure(f"{name}.online_s", measured.online, "s", note="from features to the word"),
        Figure(f"{name}.ratio_to_bare_kernel", measured.total / bare, "x", note=kernel),
        Figure(f"{name}.bytes", measured.bytes, "B", note="payload of everything, both ways, as the formula says"),
        Figure(f"{name}.rounds", measured.rounds, note="round trips online"),
        Figure(f"{name}.meeting_s", measured.meeting, "s", note="keys and base transfers, once for a pair of parties"),
        Figure(f"{name}.client_mb", measured.megabytes, "MB", note="most memory of the client's process"),
    ]


def made_models(seed: int = 0, frames: int | None = None) -> WordArrays:
    """Ten words of five states, full covariances near the identity, at the paper's sizes; frames within a radius."""
    make = np.random.default_rng(seed)
    shape = WordShape(frames or FRAMES, DIMENSIONS, "full", WORDS, STATES, tuple(range(STATES)), radius=RADIUS)
    size = DIMENSIONS + 1
    phi = np.zeros((shape.columns, size, size))
    for each in phi:
        root = np.eye(DIMENSIONS) + make.normal(scale=0.05, size=(DIMENSIONS, DIMENSIONS))
        precision = root @ root.T
        mean = make.normal(scale=0.7, size=DIMENSIONS)
        each[:-1, :-1] = -precision / 2
        each[:-1, -1] = each[-1, :-1] = precision @ mean / 2
        peak = (np.linalg.slogdet(precision)[1] - DIMENSIONS * np.log(2 * np.pi)) / 2
        each[-1, -1] = peak - mean @ precision @ mean / 2
    transitions = np.log(np.broadcast_to([STAYS, 1 - STAYS], (WORDS, STATES, 2)))
    labels = tuple(f"word {n}" for n in range(WORDS))
    return fit_words(shape, form_weights(phi, "full"), transitions, np.zeros((WORDS, 1)), labels, floor=None)


def with_operation(models: WordArrays, operation: str) -> WordArrays:
    """The same models, scored otherwise."""
    shape = WordShape.from_params(models.shape.to_params() | {"operation": operation, "bits": MOST_BITS})
    return fit_words(shape, models.weights, models.transitions, models.initial, models.labels, floor=None)


@contextmanager
def unchecked() -> Iterator[None]:
    """Transfers whose checks compare nothing, for the time that they take: all hashes of columns are zero. For this
    process and those it starts; no part of the product knows of it.
    """

    def none(challenge: bytes, columns: Bytes) -> Bytes:  # noqa: ARG001
        return np.zeros((len(columns), 16), np.uint8)

    with patch("ppspeech.crypto.transfer.extension.hash_columns", none):
        yield


def _overhead(models: WordArrays, utterance: Reals, tls: Tls, repeats: int) -> Figure:
    """What it costs to hold against peers that cheat: with checked transfers, and without, in turns."""
    job = timed(models, [utterance])
    times: list[list[float]] = [[], []]
    turns = max(2, repeats // TURNS)
    for _ in range(turns):
        times[0].append(_measure(job, tls, max(2, repeats // turns)).total)
        with unchecked():
            times[1].append(_measure(job, tls, max(2, repeats // turns)).total)
    best = [min(each) for each in times]
    note = (
        f"forward, {1e3 * best[0]:.0f} ms with checked transfers, {1e3 * best[1]:.0f} ms without; that no voice brings "
        f"scores out of range, by the radius of frames, costs nothing; best of {turns} turns"
    )
    return Figure("active.forward.overhead", best[0] / best[1], "x", note=note)


def made_utterance(seed: int = 1, frames: int | None = None) -> Reals:
    """98 frames of 39 features, normalized."""
    return np.random.default_rng(seed).normal(size=(frames or FRAMES, DIMENSIONS))


def plain_scores(models: WordArrays, frames: Reals) -> Reals:
    """Forward or Viterbi scores of all words in the clear, with numpy."""
    shape = models.shape
    combine = np.logaddexp if shape.operation == "forward" else np.maximum
    emissions = (shape.frame_monomials(frames) @ models.weights).reshape(len(frames), shape.words, shape.states)
    gamma = np.full((shape.words, shape.states), -1e30)
    gamma[:, 0] = models.initial[:, 0] + emissions[0, :, 0]
    for emission in emissions[1:]:
        arriving = gamma + models.transitions[:, :, 0]
        arriving[:, 1:] = combine(arriving[:, 1:], gamma[:, :-1] + models.transitions[:, :-1, 1])
        gamma = arriving + emission
    result: Reals = combine.reduce(gamma, axis=1)
    return result


def timed(models: WordArrays, utterances: list[Reals], ahead: int | None = None) -> Timed:
    """The recognition of some utterances on shares, whose words are compared with those in the clear."""
    chosen = KeywordJob(models.shape, len(utterances), ahead or usual_ahead(models.shape, len(utterances)))
    expected = [_sure_word(models, each) for each in utterances]
    weights = encode_models(models, chosen.utterances)

    def ask(met: Meeting, channel: Channel) -> Callable[[], object]:
        recorded = replace(met, channel=channel)
        engine = chosen.prepare(recorded)
        return lambda: recognize(recorded, chosen, utterances, engine)

    def help_client(met: Meeting, channel: Channel) -> Callable[[], object]:  # noqa: ARG001 (that of the meeting)
        engine = chosen.prepare(met)
        return lambda: answer(met, chosen, models, weights, engine)

    return Timed("keyword", ask, help_client, _right(expected), chosen.total_bytes, chosen.rounds)


def timed_garbled(models: WordArrays, utterances: list[Reals]) -> Timed:
    """The same in a circuit."""
    job = KeywordJob(models.shape, len(utterances))
    expected = [_sure_word(models, each) for each in utterances]
    weights = encode_models(models, job.utterances)

    def ask(met: Meeting, channel: Channel) -> Callable[[], object]:
        recorded = replace(met, channel=channel)
        prepared = prepare_naming(recorded, job)
        return lambda: recognize_garbled(recorded, job, utterances, prepared)

    def help_client(met: Meeting, channel: Channel) -> Callable[[], object]:  # noqa: ARG001 (that of the meeting)
        prepared = prepare_texts(met, job, models)
        return lambda: answer_garbled(met, job, models, weights, prepared)

    return Timed("keyword", ask, help_client, _right(expected), garbled_bytes(models.shape, job.utterances), 2)


def _right(expected: list[str | None]) -> Callable[[list[str | None]], bool]:
    return lambda words: all(wanted in {None, word} for word, wanted in zip(words, expected, strict=True))


def _sure_word(models: WordArrays, utterance: Reals) -> str | None:
    """The word in the clear; None where two are closer than an encrypted score is right."""
    scores = plain_scores(models, utterance)
    order = np.argsort(-scores)
    return models.labels[order[0]] if scores[order[0]] - scores[order[1]] > 1 else None


def _stream_figures(models: WordArrays, utterance: Reals, tls: Tls, repeats: int, where: str) -> list[Figure]:
    shape, expected = models.shape, _sure_word(models, utterance)

    def ask(channel: Channel) -> list[tuple[float, float, float]]:
        met = meet_as_client(channel)
        times = []
        with met.session():
            taken = TakenModels(shape)
            for _ in range(1 + repeats):
                began = time.perf_counter()
                hearing = Hearing(met, taken)
                started = time.perf_counter()
                for frame in utterance[:-1]:
                    hearing.hear(frame)
                spoken = time.perf_counter()
                hearing.hear(utterance[-1])
                word = hearing.finish()
                ended = time.perf_counter()
                if expected not in {None, word}:
                    raise PpspeechError(f"streaming heard {word!r} where {expected!r} was said")
                times.append((ended - spoken, (spoken - started) / (FRAMES - 1), started - began))
        return times[1:]

    def serve(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            hidden = StreamModels(models)
            for _ in range(1 + repeats):
                follow(met, hidden)

    times = run_in_processes(ask, serve, tls=tls)
    answers, frames, begins = ([1e3 * seconds for seconds in column] for column in zip(*times, strict=True))
    last = f"last frame to word; median {statistics.median(answers):.1f} ms; {where}"
    sizes = f"{stream_plan(shape).job.reply_bytes:,} bytes and the recursion; model {model_bytes(shape):,} bytes once"
    each = f"a frame of 10 ms of speech, median; {sizes}"
    return [
        Figure("keyword.streaming.answer_ms", min(answers), "ms", note=last),
        Figure("keyword.streaming.frame_ms", statistics.median(frames), "ms", note=each),
        Figure("keyword.streaming.begin_ms", min(begins), "ms", note="offline, an utterance"),
    ]


def _hop_figures(operation: str, tls: Tls, repeats: int, where: str) -> list[Figure]:
    """The word of 98 frames at a hop of 30 ms, as encrypted services of sentences have it."""
    models = with_operation(made_models(frames=FRAMES_30), operation)
    measured = _measure(timed(models, [made_utterance(frames=FRAMES_30)]), tls, repeats)
    name, note = f"keyword.hop30.{operation}", f"{FRAMES_30} frames; {where}; median {measured.median:.3f} s"
    return [
        Figure.less(f"{name}.total_s", measured.total, "s", "saying the word", SPOKEN_SECONDS, note),
        Figure(f"{name}.bytes", measured.bytes, "B", note="payload of everything, both ways, as the formula says"),
        Figure(f"{name}.rounds", measured.rounds, note="round trips online"),
    ]


def _garbled_figures(models: WordArrays, utterance: Reals, tls: Tls, repeats: int, where: str) -> list[Figure]:
    """In a circuit: on loopback, and over a round trip of 40 ms, where it is what clients choose."""
    job = timed_garbled(with_operation(models, "viterbi"), [utterance])
    fewer = max(2, repeats // 3)
    near, far = _measure(job, tls, repeats), _measure(job, tls, fewer, 0.020)
    slow = f"Viterbi in a circuit, round trip 40 ms, simulated; {far.rounds} round trips; best of {fewer}"
    return [
        *near.figures("keyword.garbled", "total_s", f"Viterbi in a circuit; {where}"),
        Figure("keyword.rtt40.online_s", far.online, "s", note=f"from features to the word; {slow}"),
        Figure("keyword.rtt40.offline_s", far.offline, "s", note=f"transfers and tables, before; {slow}"),
    ]


def _link_figures(models: WordArrays, utterance: Reals, tls: Tls, quick: bool) -> list[Figure]:
    """The same over links with a round trip of 1, 10 and 40 ms: a step a frame, a step for eight, and best paths in a
    circuit.
    """
    best = with_operation(models, "viterbi")
    ways = {"viterbi.frames": timed(best, [utterance]), "viterbi.garbled": timed_garbled(best, [utterance])}
    if not quick:
        ways |= {"forward.frames": timed(models, [utterance]), "forward.ahead": timed(models, [utterance], FAR)}
    figures = []
    for milliseconds in (40,) if quick else (1, 10, 40):
        for way, job in ways.items():
            measured = _measure(job, tls, 1, milliseconds / 2e3)
            note = f"round trip {milliseconds} ms, simulated; {measured.rounds} of them online, {measured.bytes:,} B"
            figures.append(Figure(f"keyword.link{milliseconds}ms.{way}.online_s", measured.online, "s", note=note))
    return figures


def _published_figures(quick: bool, ours: float) -> list[Figure]:
    """The published protocol on a slice, with our Paillier and with phe."""
    figures = []
    for bits in (512, 2048):
        for peer in ("ours", "phe"):
            found = published_keyword_seconds(
                FRAMES, DIMENSIONS, WORDS, STATES, bits, slice_frames=2 if quick else 3, slice_words=WORDS, peer=peer
            )
            name = f"keyword.published_{bits}.total_s" if peer == "ours" else f"keyword.published_{bits}.phe_s"
            tool = "our Paillier" if peer == "ours" else f"phe {version('phe')}"
            note = f"{tool}; {found.what}; we take {found.extrapolated_s / ours:,.0f} times less"
            figures.append(Figure(name, found.extrapolated_s, "s", note=note))
    return figures
