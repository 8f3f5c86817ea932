"""Encrypted speaker verification and identification between two processes over TLS, beside TenSEAL's dot product."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import MatrixPlan, VectorEvaluator, VectorKeyHolder
from ppspeech.crypto.shares import Cost, ShareEngine
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds
from ppspeech.evidence.bench.speaker_trials import eer_differences
from ppspeech.figures import Figure
from ppspeech.network import ClientTls, ServerTls, Transcript, make_certificate, run_in_processes
from ppspeech.protocols import Kind, MetClient, MetServer, meet_as_client, meet_as_server
from ppspeech.protocols.scores import LinearColumns, LinearPlan, LinearScorer, MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers import (
    Answer,
    Enrolled,
    GalleryPlan,
    HardenedPlan,
    HardenedScorer,
    Identification,
    Keeper,
    Prober,
    judge_as_server,
    name_best,
    prove_as_client,
)
from ppspeech.protocols.speakers import speaker_mixture_verification as by_mixtures
from ppspeech.protocols.speakers import speaker_verification as linearly
from ppspeech.storage import data_folder

DIMENSIONS = 256
ENROLLED = (1000, 10_000)
FRAMES, COMPONENTS, CEPSTRA = 300, 64, 39
IDENTIFIED = 1000
THRESHOLD = 0.5
CLAIMED = 3

Tls = tuple[ClientTls, ServerTls]


@dataclass(frozen=True)
class Job:
    """One query of a client that has met its server.

    Attributes:
        name: in the metrics.
        product: the encrypted product it begins with.
        cost: of what follows, on shares.
        ask: the client's online part; its answer must be `expected`.
        answer: the server's online part.
        arrange: offline work of the server alone, whose result `answer` gets.
        expected: the answer in the clear.
    """

    name: str
    product: MatrixPlan
    cost: Cost
    ask: Callable[[MetClient, ShareEngine], object]
    answer: Callable[[MetServer, ShareEngine, Any], object]
    expected: object
    arrange: Callable[[], object] = lambda: None

    @property
    def bytes(self) -> int:
        """Payload, offline and online, both ways, by the formulas."""
        return self.product.total_bytes + self.cost.total_bytes


@dataclass(frozen=True)
class Measured:
    """Milliseconds of one job, those of the best repeat, and the median of all."""

    total: float
    offline: float
    online: float
    median: float


@BENCHES.register("speakers")
def run(quick: bool) -> list[Figure]:
    """Measure queries, the stronger variants, the peer, and what encryption does to the equal error rate.

    Raises:
        CorpusError: without a data folder, before anything is measured.
        PpspeechError: if an answer is wrong, or bytes or rounds are not those of the formulas.
    """
    data_folder()
    repeats = 4 if quick else 20
    load = os.getloadavg()[0]
    work = jobs()
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        tls = ClientTls(pin=make_certificate(certificate, key, days=1)), ServerTls(certificate, key)
        measured = measure(work, repeats, tls)
        hardened = _hardened(tls, 2 if quick else 5)
        templates = _templates(tls, repeats)
    note = f"two processes, TLS on loopback; best of {repeats} after a warm-up; {os.cpu_count()} cores, load {load:.1f}"
    peer = _tenseal_dot(4 if quick else 20)
    figures = [figure for job in work for figure in _figures(job, measured[job.name], note, peer)]
    return [*figures, hardened, *templates, *eer_differences(quick)]


def jobs() -> list[Job]:
    """Verification among many, identification with hidden numbers, and mixtures against a background model; seeded."""
    generator = np.random.default_rng(0)
    work = [_verification(generator, count) for count in ENROLLED]
    work += [_identification(generator), _mixtures(generator, "sum"), _mixtures(generator, "max")]
    return work


def _unit(vectors: Reals) -> Reals:
    unit: Reals = vectors / np.linalg.norm(vectors, axis=0)
    return unit


def _verification(generator: np.random.Generator, count: int) -> Job:
    plan = LinearPlan(DIMENSIONS, count, reach=1)
    models = _unit(generator.normal(size=(DIMENSIONS, count)))
    scorer = LinearScorer.of(plan, LinearColumns.of(models), THRESHOLD)
    job = linearly.Verification(plan, "client")
    row = plan.check_embedding(models[:, CLAIMED])
    return Job(
        str(count),
        plan.product,
        job.cost,
        lambda met, engine: linearly.decide(engine, job, met.multiply(plan.product, row)[0], CLAIMED),
        lambda met, engine, _: linearly.decide(engine, job, linearly.server_scores(met, scorer), None),
        expected=True,
    )


def _identification(generator: np.random.Generator) -> Job:
    plan = LinearPlan(DIMENSIONS, IDENTIFIED, reach=1)
    models = _unit(generator.normal(size=(DIMENSIONS, IDENTIFIED * 9 // 10)))
    job = Identification(plan, "client")
    names = [f"speaker {number}" for number in range(models.shape[1])]
    enrolled = Enrolled.of(job, LinearColumns.of(models), names, THRESHOLD)
    row = plan.check_embedding(models[:, CLAIMED])
    nobody = np.zeros((plan.models, job.residues), np.uint64)
    return Job(
        f"identify.{IDENTIFIED}",
        plan.product,
        job.cost,
        lambda met, engine: name_best(engine, job, met.multiply(plan.product, row)[0], nobody),
        lambda met, engine, order: name_best(engine, job, linearly.server_scores(met, order.scorer), order.names),
        expected=Answer(names[CLAIMED]),
        arrange=enrolled.arrange,
    )


def _mixtures(generator: np.random.Generator, joined: Any) -> Job:
    """One enrolled speaker, adapted in its means, against the background model; frames drawn from the speaker."""
    shape = (1, COMPONENTS, CEPSTRA)
    weights = np.log(generator.dirichlet(np.full(COMPONENTS, 5.0), size=1))
    background = Mixtures(weights, generator.normal(size=shape), generator.uniform(0.3, 1.5, size=shape))
    moved = background.means + generator.normal(0, 0.2, size=shape)
    plan = MixturePlan(FRAMES, CEPSTRA, COMPONENTS, joined=joined, norm=14.0)
    speaker, threshold = Mixtures(weights, moved, background.covariances), 0.05
    scorer = MixtureScorer.of(plan, background, speaker, threshold)
    parts = generator.integers(COMPONENTS, size=FRAMES)
    drawn = moved[0, parts] + generator.normal(size=(FRAMES, CEPSTRA)) * np.sqrt(background.covariances[0, parts])
    lengths = np.linalg.norm(drawn, axis=1, keepdims=True)
    frames = plan.expand(drawn * np.minimum(1, 0.99 * plan.norm / lengths))
    over = np.logaddexp if joined == "sum" else np.maximum
    plain = [over.reduce(frames @ each.weights("diagonal")[:, 0], axis=1) for each in (speaker, background)]
    job = by_mixtures.MixtureVerification(plan, "client")
    return Job(
        "gmm_ubm" if joined == "sum" else "gmm_ubm_max",
        plan.product,
        job.cost,
        lambda met, engine: by_mixtures.decide(engine, job, met.multiply(plan.product, frames), 0, None),
        lambda met, engine, _: by_mixtures.decide(
            engine, job, met.multiply(plan.product, scorer.weights), None, scorer
        ),
        expected=bool((plain[0] - plain[1]).mean() >= threshold),
    )


def measure(work: list[Job], repeats: int, tls: Tls | None = None) -> dict[str, Measured]:
    """Run every job `repeats` times after once to warm up, client and server in a process each.

    Raises:
        PpspeechError: if an answer is wrong, or bytes or rounds are not those of the formulas.
    """

    def client(channel: Channel) -> dict[str, Measured]:
        met = meet_as_client(channel)
        with met.session():
            return {job.name: _measure_client(met, job, repeats) for job in work}

    def server(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            for job in work:
                for _ in range(1 + repeats):
                    _wait_for_each_other(channel)
                    arranged = job.arrange()
                    engine = met.prepare(job.product, job.cost)
                    _wait_for_each_other(channel)
                    job.answer(met, engine, arranged)
                    _wait_for_each_other(channel)

    return run_in_processes(client, server, tls=tls)


def _measure_client(met: MetClient, job: Job, repeats: int) -> Measured:
    times = []
    for repeat in range(1 + repeats):
        _wait_for_each_other(met.channel)
        began = time.perf_counter()
        offline, online = Transcript(met.channel), Transcript(met.channel)
        engine = replace(met, channel=offline).prepare(job.product, job.cost)
        _wait_for_each_other(met.channel)
        prepared = time.perf_counter()
        engine.channel = online
        got = job.ask(replace(met, channel=online), engine)
        _wait_for_each_other(met.channel)
        ended = time.perf_counter()
        sent = offline.bytes_up + offline.bytes_down + online.bytes_up + online.bytes_down
        if got != job.expected or (sent, online.rounds) != (job.bytes, 1 + job.cost.rounds):
            raise PpspeechError(
                f"{job.name}: {got} with {sent} bytes in {online.rounds} rounds is not what it should be"
            )
        if repeat:
            times.append((1e3 * (ended - began), 1e3 * (prepared - began), 1e3 * (ended - prepared)))
    return Measured(*min(times), statistics.median(each[0] for each in times))


def _wait_for_each_other(channel: Channel) -> None:
    channel.send(Kind.READY, b"")
    channel.receive(Kind.READY, 0)


def _figures(job: Job, measured: Measured, note: str, dot: float) -> list[Figure]:
    name = f"speakers.{job.name}"
    what = {
        "gmm_ubm": f"{COMPONENTS} components x {FRAMES} frames, model and background, log-add",
        "gmm_ubm_max": f"{COMPONENTS} components x {FRAMES} frames, model and background, max",
        f"identify.{IDENTIFIED}": f"{IDENTIFIED} places x {DIMENSIONS}, the name of the best, who is enrolled hidden",
    }.get(job.name, f"{job.name} enrolled x {DIMENSIONS}, the claimed one hidden among all, scores hidden")
    both = f"{what}; offline {measured.offline:.0f}, online {measured.online:.0f} ms; {note}"
    seconds = job.name.startswith("gmm")
    value, unit = (measured.total / 1e3, "s") if seconds else (measured.total, "ms")
    total = Figure(f"{name}.{unit}", value, unit, note=both)
    if job.product.rows == 1:
        peer = dot * job.product.columns
        said = f"{both}; TenSEAL: extrapolated from {dot:.1f} ms a dot product, and its key holder sees all scores"
        total = replace(
            total, peer=f"TenSEAL {version('tenseal')} dot", peer_value=peer, ratio=peer / measured.total, note=said
        )
    return [
        total,
        Figure(f"{name}.median_{unit}", measured.median / 1e3 if seconds else measured.median, unit, note=both),
        Figure(f"{name}.offline_ms", measured.offline, "ms", note=both),
        Figure(f"{name}.online_ms", measured.online, "ms", note=both),
        Figure(f"{name}.bytes", job.bytes, "B", note="payload, offline and online, both ways, as the formula says"),
        Figure(f"{name}.rounds", 1 + job.cost.rounds, note="round trips online"),
    ]


def _tenseal_dot(columns: int) -> float:
    """Milliseconds a dot product by TenSEAL's CKKS vectors, bytes and decryption counted, from `columns` of them."""
    generator = np.random.default_rng(1)
    probe, models = _unit(generator.normal(size=(DIMENSIONS, 1))), _unit(generator.normal(size=(DIMENSIONS, columns)))
    holder = VectorKeyHolder("ckks")
    evaluator = VectorEvaluator(holder.public_context, "ckks")
    seconds = best_seconds(lambda: holder.finish(evaluator.reply(holder.query(probe.T), 1, models), 1, columns), 2)
    return 1e3 * seconds / columns


def _hardened(tls: Tls, repeats: int) -> Figure:
    """One model of 256 numbers against a client that may do anything."""
    generator = np.random.default_rng(2)
    plan = HardenedPlan(DIMENSIONS, 1)
    model = _unit(generator.normal(size=(DIMENSIONS, 1))).clip(-plan.limit, plan.limit)
    scorer = HardenedScorer.of(plan, LinearColumns.of(model), THRESHOLD)

    def client(channel: Channel) -> float:
        def once() -> None:
            prove_as_client(channel, plan, model[:, 0], 0)
            _wait_for_each_other(channel)

        return best_seconds(once, repeats)

    def server(channel: Channel) -> None:
        for _ in range(1 + repeats):
            if not judge_as_server(channel, scorer):
                raise PpspeechError("the hardened verification rejects the speaker of its own model")
            _wait_for_each_other(channel)

    seconds = run_in_processes(client, server, tls=tls)
    formula = (
        f"1 model x {DIMENSIONS} numbers of {plan.level_bits} bits; up 32 (F b + log2 N) + 16 = {plan.bytes_up:,}, "
        f"down 32 + N (32 F b + 16 x 2^{plan.score_bits}) = {plan.bytes_down:,} bytes; F b Diffie-Hellman transfers"
    )
    return Figure("speakers.hardened.ms", 1e3 * seconds, "ms", note=formula)


def _templates(tls: Tls, repeats: int) -> list[Figure]:
    """A probe against 1,000 templates encrypted under an enrollment key."""
    generator = np.random.default_rng(3)
    plan = GalleryPlan(DIMENSIONS, ENROLLED[0])
    templates = _unit(generator.normal(size=(DIMENSIONS, ENROLLED[0]))).T
    keeper = Keeper(plan, templates, THRESHOLD)
    gallery = keeper.publish()

    def prober(channel: Channel) -> float:
        own, setup = Prober(gallery), PairSetup.agree(channel, Side.SECOND)

        def once() -> None:
            if own.ask(channel, setup, templates[CLAIMED], CLAIMED) is not True:
                raise PpspeechError("a template does not match itself")

        return best_seconds(once, repeats)

    def answerer(channel: Channel) -> None:
        setup = PairSetup.agree(channel, Side.FIRST)
        for _ in range(1 + repeats):
            keeper.answer(channel, setup)

    seconds = run_in_processes(prober, answerer, tls=tls)
    probe = plan.product.job.reply_bytes + plan.cost.total_bytes
    note = f"{ENROLLED[0]} templates x {DIMENSIONS}, offline and online; gallery {len(gallery.templates):,} bytes once"
    return [
        Figure("speakers.templates.ms", 1e3 * seconds, "ms", note=note),
        Figure("speakers.templates.bytes", probe, "B", note="a probe; as the formula says"),
    ]
