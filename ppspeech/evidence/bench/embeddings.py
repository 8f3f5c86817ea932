"""A word by a head on a public embedding: two processes over TLS, beside the head in the clear and the front end.

The head is random, of a real one's size: ten words and a background, on two seconds of embeddings in four parts. The
front end is measured where it is installed (`ppspeech[embeddings]`).

Needs nothing; --quick takes about 20 s.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.audio.embeddings import EmbeddingConfig, LiveVectors, Pooling, WordVectors
from ppspeech.channel import Channel
from ppspeech.errors import MissingPackageError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.evidence.bench.two_parties import Measured, Timed, certificates, measure
from ppspeech.figures import Figure
from ppspeech.models import EmbeddingHead
from ppspeech.protocols import Meeting
from ppspeech.protocols.scores import WordArrays
from ppspeech.protocols.words import (
    KeywordJob,
    Questions,
    Told,
    Watch,
    answer,
    answer_garbled,
    attend,
    encode_models,
    garbled_bytes,
    prepare_naming,
    prepare_texts,
    recognize,
    recognize_garbled,
)
from ppspeech.service import export_words

WORDS, PARTS, AHEAD = 10, 4, 25
GOAL_MS, GOAL_BYTES = 60.0, 1_000_000
LABELS = tuple(f"word {number}" for number in range(WORDS))
SURE = 0.05  # nats: two scores that are closer may change places


@BENCHES.register("embeddings")
def run(quick: bool) -> list[Figure]:
    """One word, by logistic and by margin heads; in a circuit; told to the server; a step while listening."""
    repeats = 5 if quick else 50
    head = made_head("logistic")
    models = export_words("embedding_head", head, LABELS)
    jobs = [
        timed("word", models),
        timed("margin", export_words("embedding_head", made_head("margin"), LABELS)),
        timed_garbled("garbled", models),
        timed_watch("outcome", models, "server", 1),
        timed_watch("step", models, "client", AHEAD),
    ]
    with certificates() as tls:
        found = measure(jobs, repeats, tls=tls)
    where = f"{WORDS} words and a background, {96 * PARTS} numbers; two processes, TLS on loopback, {machine()}; " + (
        f"best of {repeats}"
    )
    figures = _word_figures(found.pop("word"), where)
    figures += _step_figures(found.pop("step"), where)
    for name, measured in found.items():
        figures += measured.figures(f"embeddings.{name}", "total_ms", where)
    vector = torch.from_numpy(made_vector()).float()[None]
    with torch.no_grad():
        plain = best_seconds(lambda: head(vector).argmax(), 10 * repeats)
    figures.append(Figure("embeddings.plain.ms", 1e3 * plain, "ms", note="the same head in the clear"))
    return figures + _front_end_figures(repeats)


def _word_figures(measured: Measured, where: str) -> list[Figure]:
    note = f"{where}; median {1e3 * measured.median:.1f} ms; offline and online, after the vector is there"
    return [
        Figure.less("embeddings.word.total_ms", 1e3 * measured.total, "ms", "the goal", GOAL_MS, note),
        Figure("embeddings.word.offline_ms", 1e3 * measured.offline, "ms", note="transfers and encryptions of zero"),
        Figure("embeddings.word.online_ms", 1e3 * measured.online, "ms", note="from the vector to the word"),
        Figure.less("embeddings.word.bytes", measured.bytes, "B", "the goal", GOAL_BYTES, "all payload, both ways"),
        Figure("embeddings.word.rounds", measured.rounds, note="round trips online"),
        Figure("embeddings.word.meeting_ms", 1e3 * measured.meeting, "ms", note="keys and base transfers, once"),
    ]


def _step_figures(measured: Measured, where: str) -> list[Figure]:
    note = f"one of {AHEAD} windows that are prepared together, every 80 ms; {where}"
    return [
        Figure("embeddings.step.online_ms", 1e3 * measured.online / AHEAD, "ms", note=note),
        Figure("embeddings.step.offline_ms", 1e3 * measured.offline / AHEAD, "ms", note=note),
        Figure("embeddings.step.bytes", measured.bytes / AHEAD, "B", note="offline and online, both ways"),
        Figure("embeddings.step.rounds", measured.rounds / AHEAD, note="round trips online"),
    ]


def _front_end_figures(repeats: int) -> list[Figure]:
    """What the public network takes here; nothing where it is not installed."""
    config = EmbeddingConfig("speech", pooling=Pooling("window", PARTS))
    try:
        vectors = WordVectors(config)
    except MissingPackageError:
        return []
    sound = np.random.default_rng(0).standard_normal(round(vectors.seconds * 16_000)).astype(np.float32)
    live = LiveVectors(vectors)
    live.feed(sound)
    step = sound[:1_280]
    note = f"mel and network, one thread of {machine()}"
    return [
        Figure("embeddings.front_end.ms", 1e3 * best_seconds(lambda: vectors.of(sound, 16_000), repeats), "ms",
               note=f"two seconds of sound to a vector; {note}"),
        Figure("embeddings.front_end.step_ms", 1e3 * best_seconds(lambda: live.feed(step), repeats), "ms",
               note=f"80 ms more; {note}"),
    ]  # fmt: skip


def made_head(kind: Literal["logistic", "margin"], seed: int = 0) -> EmbeddingHead:
    """A head whose scores lie apart as those of real ones do."""
    head = EmbeddingHead(WORDS + 1, 96 * PARTS, kind)
    drawn = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in head.head.parameters():
            parameter.copy_(3 * torch.randn(parameter.shape, generator=drawn))
        head.reject.fill_(0.5)
    return head


def made_vector(seed: int = 0) -> Reals:
    """As public speech has it."""
    return np.random.default_rng(seed).standard_normal(96 * PARTS)


def expected_word(models: WordArrays, vector: Reals) -> tuple[str | None, bool]:
    """The word in the clear, and whether it is sure."""
    scores = (models.shape.padded_monomials(vector[None]) @ models.weights)[0]
    names, order = (*models.labels, None), np.argsort(-scores)
    return names[order[0]], bool(scores[order[0]] - scores[order[1]] > SURE)


def _inputs(models: WordArrays, count: int = 1) -> tuple[list[Reals], list[str | None]]:
    """Vectors of this shape whose words are sure, and these."""
    vectors, words, seed = list[Reals](), list[str | None](), 0
    while len(vectors) < count:
        vector = np.random.default_rng(seed).standard_normal(models.shape.dimensions)
        vector /= np.linalg.norm(vector)
        word, sure = expected_word(models, vector)
        seed += 1
        if sure:
            vectors.append(vector)
            words.append(word)
    return vectors, words


def timed(name: str, models: WordArrays) -> Timed:
    """One word, on shares."""
    job, weights = KeywordJob(models.shape), encode_models(models)
    (vector,), expected = _inputs(models)

    def ask(met: Meeting, channel: Channel) -> Callable[[], object]:
        recorded = replace(met, channel=channel)
        engine = job.prepare(recorded)
        return lambda: recognize(recorded, job, [vector[None]], engine)

    def help_client(met: Meeting, _: Channel) -> Callable[[], object]:
        engine = job.prepare(met)
        return lambda: answer(met, job, models, weights, engine)

    return Timed(name, ask, help_client, lambda words: words == expected, job.total_bytes, job.rounds)


def timed_garbled(name: str, models: WordArrays) -> Timed:
    """The same in a circuit."""
    job, weights = KeywordJob(models.shape), encode_models(models)
    (vector,), expected = _inputs(models)

    def ask(met: Meeting, channel: Channel) -> Callable[[], object]:
        recorded = replace(met, channel=channel)
        prepared = prepare_naming(recorded, job)
        return lambda: recognize_garbled(recorded, job, [vector[None]], prepared)

    def help_client(met: Meeting, _: Channel) -> Callable[[], object]:
        prepared = prepare_texts(met, job, models)
        return lambda: answer_garbled(met, job, models, weights, prepared)

    return Timed(name, ask, help_client, lambda words: words == expected, garbled_bytes(models.shape), 2)


def timed_watch(name: str, models: WordArrays, told: Told, steps: int) -> Timed:
    """Windows one after the other, prepared together."""
    job, weights = Questions(models.shape, told, steps), encode_models(models)
    vectors, words = _inputs(models, steps)
    expected = words if told == "client" else [None] * steps

    def ask(met: Meeting, channel: Channel) -> Callable[[], object]:
        watch = Watch(replace(met, channel=channel), job)
        return lambda: [watch.ask(each) for each in vectors]

    def help_client(met: Meeting, _: Channel) -> Callable[[], object]:
        engine = job.prepare(met)
        return lambda: attend(met, job, models, weights, engine=engine)

    # A server that is told answers nothing: the next question goes out with what ends the last one.
    rounds = steps * job.rounds if told == "client" else None
    return Timed(name, ask, help_client, lambda found: found == expected, job.total_bytes, rounds)
