"""Sentences under encryption: whole and while they are spoken, on loopback and over a link, beside the clear decoder.

Needs nothing.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.audio import usual_radius
from ppspeech.channel import Channel
from ppspeech.crypto import Ring, uniform_residues
from ppspeech.crypto.shares import ShareEngine, blank, record
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.evidence.bench.two_parties import Measured, Timed, Tls, certificates, measure
from ppspeech.figures import Figure
from ppspeech.models.decoding import Unit, WordGraph, decode, lexicon_graph, loop_graph
from ppspeech.network import run_in_processes
from ppspeech.protocols import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.scores import gaussian_weights, monomials_of
from ppspeech.protocols.sentences import (
    Engine,
    GivenModels,
    Heard,
    ListeningEar,
    SentenceArrays,
    TakenModels,
    answer_garbled,
    answer_sentence,
    encode_sentences,
    follow_speech,
    garbled_bytes,
    prepare,
    prepare_answer,
    prepare_question,
    shares_cost,
    streamed,
    total_bytes,
    transcribe,
    transcribe_garbled,
)
from ppspeech.protocols.trellis import TrellisRun, plan_trellis
from ppspeech.service import Scored, export_graph

WORDS, STATES, DIMENSIONS = 11, 5, 39
FRAMES, HOP = 224, 0.03
SECONDS = FRAMES * HOP
HALF_TRIP = 0.02  # of the link: 40 ms there and back
PHONES = 40


@BENCHES.register("sentences")
def run(quick: bool) -> list[Figure]:
    """Ten words and silence of five states, full covariances, 6.7 s at 30 ms a frame; then larger vocabularies.

    Everything of an utterance counts but the meeting. Larger vocabularies run their graph alone, on random scores.
    """
    repeats = 2 if quick else 7
    arrays, graph = digits()
    said = made_utterance(arrays)
    expected = heard_in_the_clear(arrays, graph, said)
    figures = []
    with certificates() as tls:
        where = f"two processes, TLS, {machine()}; best of {repeats}"
        whole, circuit = timed_shares(arrays, said, expected), timed_garbled(arrays, said, expected)
        on_shares, garbled = (measure([job], repeats, tls=tls)[job.name] for job in (whole, circuit))
        figures += _figures("sentences", on_shares, f"shares, loopback; {where}")
        clear = best_seconds(lambda: heard_in_the_clear(arrays, graph, said), 3)
        figures.append(
            Figure("sentences.clear_rtf", clear / SECONDS, "x", note="models.decode of the same, one process, float64")
        )
        figures += _figures("sentences.garbled", garbled, f"garbled, loopback; {where}")
        far = measure([circuit], max(2, repeats // 2), tls=tls, delay=HALF_TRIP)[circuit.name]
        figures += _figures("sentences.rtt40", far, f"garbled, 40 ms round trip; {where}")
        figures += _stream_figures(arrays, said, expected, tls, 1 if quick else 5)
    sizes = {"words200": (200, False), "tree1000": (1000, True)} | ({} if quick else {"tree3000": (3000, True)})
    for name, (words, tree) in sizes.items():
        figures += vocabulary(name, words, tree, frames=24 if quick else 48)
    return figures


def _figures(name: str, measured: Measured, note: str) -> list[Figure]:
    return [
        Figure(f"{name}.rtf", measured.total / SECONDS, "x", note=f"{note}; median {measured.median / SECONDS:.3f}"),
        Figure(f"{name}.offline_rtf", measured.offline / SECONDS, "x", note="transfers, tables, encryptions"),
        Figure(f"{name}.online_rtf", measured.online / SECONDS, "x", note="from features to words"),
        Figure(f"{name}.mb_per_s", measured.bytes / SECONDS / 1e6, "MB/s", note="payload of all a second of speech"),
        Figure(f"{name}.rounds", measured.rounds, note="round trips online"),
        Figure(f"{name}.client_mb", measured.megabytes, "MB", note="most memory of the client's process"),
    ]


def digits(bits: int | None = None) -> tuple[SentenceArrays, WordGraph]:
    """Models near the identity, as many as a loop of digits and silence has."""
    make, count = np.random.default_rng(0), WORDS * STATES
    means = make.normal(scale=0.7, size=(count, DIMENSIONS))
    roots = make.normal(scale=0.05, size=(count, DIMENSIONS, DIMENSIONS))
    covariances = np.eye(DIMENSIONS) / 2 + roots @ roots.transpose(0, 2, 1)
    weights = gaussian_weights(np.zeros(count), means, covariances)
    units = {name: _unit(name, place * STATES, STATES) for place, name in enumerate(_names(WORDS - 1))}
    units[""] = replace(_unit("", (WORDS - 1) * STATES, STATES), word=None)
    graph = loop_graph(_names(WORDS - 1), units, "").drawn
    scored = Scored(weights, "full", DIMENSIONS, 8.0, usual_radius(DIMENSIONS))
    return export_graph(graph, scored, FRAMES, bits), graph


def _names(count: int) -> tuple[str, ...]:
    return tuple(f"word {number}" for number in range(count))


def _unit(name: str, first: int, states: int) -> Unit:
    stay, move = np.log(0.8), np.log(0.2)
    chances = tuple(
        tuple(stay if j == i else move if j == i + 1 else -1e30 for j in range(states)) for i in range(states)
    )
    leave = (*(-1e30,) * (states - 1), float(move))
    return Unit(name, tuple(range(first, first + states)), (0.0, *(-1e30,) * (states - 1)), chances, leave)


def made_utterance(arrays: SentenceArrays, seed: int = 1) -> Reals:
    """Frames of states in the order of some words, a little shorter than the longest."""
    make = np.random.default_rng(seed)
    forms = arrays.weights
    frames = FRAMES - 5
    path = np.repeat(make.permutation(forms.shape[1]), -(-frames // forms.shape[1]))[:frames]
    spoken: Reals = make.normal(size=(frames, DIMENSIONS)) * 0.7 + 0.02 * path[:, None]
    return spoken


def heard_in_the_clear(arrays: SentenceArrays, graph: WordGraph, said: Reals) -> list[Heard]:
    """By `decode` of the compiled graph, on the same clipped frames."""
    shape = arrays.shape
    compiled = graph.compile()
    stays = dict.fromkeys(range(shape.scores))
    assert len(stays) == shape.scores
    scores = monomials_of(shape.clipped(said), shape.terms) @ _unstayed(arrays, graph)
    found = decode(compiled, torch.from_numpy(scores))
    return [Heard(word.word, word.start, word.end) for word in found.words]


def _unstayed(arrays: SentenceArrays, graph: WordGraph) -> Reals:
    """The weights by pdf, without ln of staying."""
    weights = np.zeros((arrays.shape.monomials, arrays.shape.scores))
    stays = {edge.source: edge.log_weight for edge in graph.edges if edge.source == edge.target}
    for vertex, (pdf, column) in enumerate(zip(graph.pdfs, arrays.shape.columns, strict=True)):
        if pdf is not None:
            weights[:, pdf] = arrays.weights[:, column]
            weights[-1, pdf] -= stays.get(vertex, 0.0)
    return weights


def _is(expected: list[Heard]) -> Callable[[list[Heard]], bool]:
    return lambda heard: [each for each in heard if each.word] == expected


def timed_shares(arrays: SentenceArrays, said: Reals, expected: list[Heard]) -> Timed:
    """A whole utterance on shares."""
    shape, weights = arrays.shape, encode_sentences(arrays)

    def client(met: Meeting, channel: Channel) -> Callable[[], list[Heard]]:
        here = replace(met, channel=channel)
        engine = prepare(here, shape)
        return lambda: transcribe(here, shape, said, engine)

    def server(met: Meeting, channel: Channel) -> Callable[[], None]:
        here = replace(met, channel=channel)
        engine = prepare(here, shape)
        return lambda: answer_sentence(here, arrays, weights, engine)

    return Timed("shares", client, server, _is(expected), total_bytes(shape), 1 + shares_cost(shape).rounds)


def timed_garbled(arrays: SentenceArrays, said: Reals, expected: list[Heard]) -> Timed:
    """A whole utterance in a circuit."""
    shape, weights = arrays.shape, encode_sentences(arrays)

    def client(met: Meeting, channel: Channel) -> Callable[[], list[Heard]]:
        here = replace(met, channel=channel)
        prepared = prepare_question(here, shape)
        return lambda: transcribe_garbled(here, shape, said, prepared)

    def server(met: Meeting, channel: Channel) -> Callable[[], None]:
        here = replace(met, channel=channel)
        prepared = prepare_answer(here, arrays)
        return lambda: answer_garbled(here, arrays, weights, prepared)

    return Timed("garbled", client, server, _is(expected), garbled_bytes(shape))


def _stream_figures(arrays: SentenceArrays, said: Reals, expected: list[Heard], tls: Tls, repeats: int) -> list[Figure]:
    """Frames come when they are spoken; how long after the last one the words are there."""
    ways: Sequence[tuple[str, Engine, float]] = (
        ("sentences.stream", "shares", 0.0),
        ("sentences.stream.rtt40", "garbled", HALF_TRIP),
    )
    figures = []
    for name, engine, delay in ways:

        def client(channel: Channel, engine: Engine = engine) -> list[tuple[float, float]]:
            met, models, found = meet_as_client(channel), TakenModels(streamed(arrays.shape, engine)), []
            with met.session():
                for _ in range(1 + repeats):
                    ear = ListeningEar(met, arrays.shape, models, engine)
                    found.append(_speak(ear, said, expected))
            return found[1:]

        def server(channel: Channel, engine: Engine = engine) -> None:
            met, models = meet_as_server(channel), GivenModels(streamed(arrays.shape, engine), arrays.weights)
            with met.session():
                for _ in range(1 + repeats):
                    follow_speech(met, arrays, models, engine)

        found = run_in_processes(client, server, tls=tls, delay=delay)
        after, busy = (statistics.median(each) for each in zip(*found, strict=True))
        note = f"{engine}, {2e3 * delay:.0f} ms round trip, frames as they are spoken; median of {repeats}"
        figures.append(Figure(f"{name}.answer_ms", 1e3 * after, "ms", note=f"words after the last frame; {note}"))
        figures.append(
            Figure(f"{name}.busy", busy, "", note=f"share of the time that the client computes or waits; {note}")
        )
    return figures


def _speak(ear: ListeningEar, said: Reals, expected: list[Heard]) -> tuple[float, float]:
    """Seconds from the last frame to the words, and the share of the time before that went into hearing."""
    began, busy = time.perf_counter(), 0.0
    for number, frame in enumerate(said, 1):
        time.sleep(max(0.0, began + number * HOP - time.perf_counter()))
        at = time.perf_counter()
        if number < len(said):
            ear.hear(frame[None])
            busy += time.perf_counter() - at
    ear.hear(said[-1:])
    heard = ear.finish()
    after = time.perf_counter() - at
    if [each for each in heard if each.word] != expected:
        raise RuntimeError("a stream heard other words than the clear decoder: no figure can be trusted")
    return after, busy / (len(said) * HOP)


def vocabulary(name: str, words: int, tree: bool, frames: int) -> list[Figure]:
    """Milliseconds a frame of a larger graph on shares, offline and online, on random scores; checked with the twin.
    Before it, what a server takes to plan it.
    """
    make = np.random.default_rng(words)
    units = {f"p{phone}": _unit(f"p{phone}", phone, 1) for phone in range(PHONES)}
    spelled = {
        f"w{n}": tuple(f"p{p}" for p in make.integers(0, PHONES, int(make.integers(4, 8)))) for n in range(words)
    }
    lexicon = {word: parts for parts, word in {parts: word for word, parts in spelled.items()}.items()}
    graph = lexicon_graph(lexicon, units).drawn if tree else _flat(lexicon, units)
    scored = Scored(np.zeros((3, PHONES)), "diagonal", 1, 1.0, 1.0)
    began = time.process_time()
    arrays = export_graph(graph, scored, frames, 19)
    shape = arrays.shape
    shares_cost(shape)
    planned = time.process_time() - began
    plan, ring = plan_trellis(shape.trellis, frames), Ring(shape.bits)
    cost = record(lambda engine: _run(engine, plan, None, blank(frames, shape.scores, 1)))
    emissions = uniform_residues((frames, shape.scores, 1), shape.bits - 4)
    nothing = np.zeros_like(emissions)

    def party(met: Meeting, channel: Channel, weights: object, scores: object) -> Callable[[], object]:
        engine = ShareEngine(channel, met.setup, cost)
        return lambda: _run(engine, plan, weights, scores)

    job = Timed(
        name,
        lambda met, channel: party(met, channel, None, nothing),
        lambda met, channel: party(met, channel, arrays.move_residues, ring.reduce(emissions)),
        lambda _: True,
        cost.total_bytes,
        cost.rounds,
    )
    measured = measure([job], 2)[name]
    note = (
        f"{len(lexicon)} words of 4 to 7 phones, one state each, {len(shape.columns):,} vertices, {plan.operations:,} "
        f"maxima and {2 * plan.interval} round trips a frame, {measured.bytes / frames / HOP / 1e6:.1f} MB/s at 30 ms; "
        f"online {1e3 * measured.online / frames:.1f} ms; random scores"
    )
    once = f"from a graph to its schedule and cost, {frames} frames, CPU of one party; once a model and length"
    return [
        Figure(f"sentences.{name}.ms_per_frame", 1e3 * measured.total / frames, "ms", note=note),
        Figure(f"sentences.{name}.plan_s", planned, "s", note=once),
    ]


def _flat(lexicon: dict[str, tuple[str, ...]], units: dict[str, Unit]) -> WordGraph:
    """Words that share nothing: each its own chain of phones."""
    chains = {
        word: Unit(
            word,
            tuple(units[part].pdfs[0] for part in parts),
            (0.0, *(-1e30,) * (len(parts) - 1)),
            _unit(word, 0, len(parts)).log_transitions,
            _unit(word, 0, len(parts)).log_exit,
        )
        for word, parts in lexicon.items()
    }
    return loop_graph(tuple(chains), chains).drawn


def _run(engine: ShareEngine, plan: object, weights: object, scores: object) -> None:
    run = TrellisRun(engine, plan, weights)  # type: ignore[arg-type]
    with engine.in_flights():
        run.advance(scores)  # type: ignore[arg-type]
