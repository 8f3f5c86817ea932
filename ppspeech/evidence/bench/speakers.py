"""Encrypted speaker verification and identification between two processes over TLS, beside TenSEAL's dot product.

Needs the corpus audiomnist.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import MatrixPlan, VectorEvaluator, VectorKeyHolder
from ppspeech.crypto.shares import Cost, ShareEngine
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.evidence.bench.speaker_trials import eer_differences
from ppspeech.evidence.bench.two_parties import Measured, Meet, Timed, Tls, certificates, measure
from ppspeech.figures import Figure
from ppspeech.protocols import Meeting
from ppspeech.protocols.scores import LinearColumns, LinearPlan, LinearScorer, MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers import (
    GalleryPlan,
    HardenedScorer,
    HardenedTerms,
    Identification,
    Identity,
    Keeper,
    Prober,
    Verification,
    arrange_columns,
    decide,
    judge_as_server,
    name_best,
    prove_as_client,
)
from ppspeech.storage import data_folder

DIMENSIONS = 256
ENROLLED = (1000, 10_000)
FRAMES, COMPONENTS, CEPSTRA = 300, 64, 39
IDENTIFIED = 1000
THRESHOLD = 0.5
CLAIMED = 3


@BENCHES.register("speakers")
def run(quick: bool) -> list[Figure]:
    """Measure queries, the stronger variants, the peer, and what encryption does to the equal error rate.

    Without a data folder it raises `CorpusError` before anything is measured.
    """
    data_folder()
    repeats = 4 if quick else 20
    load = machine()
    work = jobs()
    with certificates() as tls:
        measured = measure(work, repeats, tls=tls)
        hardened = _hardened(tls, repeats, measured)
        templates = _templates(tls, repeats)
    note = f"two processes, TLS on loopback; best of {repeats} after a warm-up; {load}"
    peer = _tenseal_dot(4 if quick else 20)
    figures = [figure for name, each in measured.items() for figure in _figures(name, each, note, peer)]
    return [*figures, *hardened, *templates, *eer_differences(quick)]


def jobs() -> list[Timed]:
    """Verification among many, identification with hidden numbers, and mixtures against a background model; seeded."""
    generator = np.random.default_rng(0)
    work = [verification_job(str(count), generator, count) for count in ENROLLED]
    work += [
        identification_job(f"identify.{IDENTIFIED}", generator, IDENTIFIED),
        _mixtures(generator, "sum"),
        _mixtures(generator, "max"),
    ]
    return work


def _unit(vectors: Reals) -> Reals:
    unit: Reals = vectors / np.linalg.norm(vectors, axis=0)
    return unit


def verification_job(name: str, generator: np.random.Generator, count: int) -> Timed:
    """A claim among so many who are enrolled."""
    plan = LinearPlan(DIMENSIONS, count, reach=1)
    models = _unit(generator.normal(size=(DIMENSIONS, count)))
    scorer = LinearScorer.of(plan, LinearColumns.of(models), THRESHOLD)
    job = Verification(plan, "client")
    row = plan.rows(models[:, CLAIMED])
    return _job(
        name,
        plan.product,
        job.cost,
        lambda met, engine: decide(engine, job, met.multiply(plan.product, row), CLAIMED),
        lambda met, engine, _: decide(engine, job, scorer.multiply(met), scorer=scorer),
        expected=True,
    )


def identification_job(name: str, generator: np.random.Generator, places: int) -> Timed:
    """A name among so many places, of which a tenth is empty."""
    plan = LinearPlan(DIMENSIONS, places, reach=1)
    models = _unit(generator.normal(size=(DIMENSIONS, places * 9 // 10)))
    job = Identification(plan, "client")
    names = [f"speaker {number}" for number in range(models.shape[1])]
    columns = LinearColumns.of(models)
    row = plan.rows(models[:, CLAIMED])
    return _job(
        name,
        plan.product,
        job.cost,
        lambda met, engine: name_best(engine, job, met.multiply(plan.product, row)),
        lambda met, engine, order: name_best(engine, job, order.scorer.multiply(met), order),
        expected=Identity(names[CLAIMED]),
        arrange=lambda: arrange_columns(job, columns, names, THRESHOLD),
    )


def _mixtures(generator: np.random.Generator, joined: Any) -> Timed:
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
    frames = plan.rows(drawn * np.minimum(1, 0.99 * plan.norm / lengths))
    over = np.logaddexp if joined == "sum" else np.maximum
    plain = [over.reduce(frames @ each.weights("diagonal")[:, 0], axis=1) for each in (speaker, background)]
    job = Verification(plan, "client")
    return _job(
        "gmm_ubm" if joined == "sum" else "gmm_ubm_max",
        plan.product,
        job.cost,
        lambda met, engine: decide(engine, job, met.multiply(plan.product, frames), 0),
        lambda met, engine, _: decide(engine, job, scorer.multiply(met), scorer=scorer),
        expected=bool((plain[0] - plain[1]).mean() >= threshold),
    )


def _job(
    name: str,
    product: MatrixPlan,
    cost: Cost,
    ask: Callable[[Meeting, ShareEngine], object],
    answer: Callable[[Meeting, ShareEngine, Any], object],
    expected: object,
    arrange: Callable[[], object] = lambda: None,
) -> Timed:
    """One query: an encrypted product, then `cost` on shares; `arrange` is offline work of the server alone."""

    def client(met: Meeting, channel: Channel) -> Callable[[], object]:
        own = replace(met, channel=channel)
        engine = own.prepare(product, cost)
        return lambda: ask(own, engine)

    def server(met: Meeting, channel: Channel) -> Callable[[], object]:  # noqa: ARG001 (that of the meeting)
        arranged = arrange()
        engine = met.prepare(product, cost)
        return lambda: answer(met, engine, arranged)

    total = product.total_bytes + cost.total_bytes
    return Timed(name, client, server, lambda got: got == expected, total, 1 + cost.rounds)


def _figures(job: str, measured: Measured, note: str, dot: float) -> list[Figure]:
    what = {
        "gmm_ubm": f"{COMPONENTS} components x {FRAMES} frames, model and background, log-add",
        "gmm_ubm_max": f"{COMPONENTS} components x {FRAMES} frames, model and background, max",
        f"identify.{IDENTIFIED}": f"{IDENTIFIED} places x {DIMENSIONS}, the name of the best, who is enrolled hidden",
    }.get(job, f"{job} enrolled x {DIMENSIONS}, the claimed one hidden among all, scores hidden")
    both = f"{what}; offline {1e3 * measured.offline:.0f}, online {1e3 * measured.online:.0f} ms; {note}"
    if job.startswith("gmm"):
        return measured.figures(f"speakers.{job}", "s", both)
    total, *others = measured.figures(f"speakers.{job}", "ms", both)
    peer = dot * int(job.rpartition(".")[2])
    said = f"{both}; TenSEAL: extrapolated from {dot:.1f} ms a dot product, and its key holder sees all scores"
    beside = f"TenSEAL {version('tenseal')} dot"
    return [replace(total, peer=beside, peer_value=peer, ratio=peer / total.value, note=said), *others]


def _tenseal_dot(columns: int) -> float:
    """Milliseconds a dot product by TenSEAL's CKKS vectors, bytes and decryption counted, from `columns` of them."""
    generator = np.random.default_rng(1)
    probe, models = _unit(generator.normal(size=(DIMENSIONS, 1))), _unit(generator.normal(size=(DIMENSIONS, columns)))
    holder = VectorKeyHolder("ckks")
    evaluator = VectorEvaluator(holder.public_context, "ckks")
    seconds = best_seconds(lambda: holder.finish(evaluator.reply(holder.query(probe.T), 1, models), 1, columns), 2)
    return 1e3 * seconds / columns


def _hardened(tls: Tls, repeats: int, linear: dict[str, Measured]) -> list[Figure]:
    """Claims against a client that may do anything, beside the linear protocol, which trusts it."""
    generator = np.random.default_rng(2)
    work = [hardened_job(str(count), generator, count) for count in (1, *ENROLLED)]
    measured = measure(work, repeats, meet=AGREED, tls=tls)
    figures = []
    for job in work:
        terms, ours = HardenedTerms.usual(DIMENSIONS, int(job.name)), 1e3 * measured[job.name].total
        formula = (
            f"{terms.models} enrolled, codes of D = {terms.bits} bits of {DIMENSIONS} numbers, offline and online; up "
            f"{terms.bytes_up:,}, down N (D / 8 + 24) + 56 D = {terms.bytes_down:,} bytes"
        )
        if job.name in linear:
            beside = "linear scores", 1e3 * linear[job.name].total
            figures.append(Figure.less(f"speakers.hardened.{job.name}.ms", ours, "ms", *beside, note=formula))
        else:
            figures.append(Figure("speakers.hardened.ms", ours, "ms", note=formula))
    return figures


def hardened_job(name: str, generator: np.random.Generator, count: int) -> Timed:
    """A claim among so many who are enrolled, of a client that may do anything."""
    terms = HardenedTerms.usual(DIMENSIONS, count)
    models = _unit(generator.normal(size=(DIMENSIONS, count))).T
    scorer, claimed = HardenedScorer.of(terms, dict(enumerate(models)), THRESHOLD), min(CLAIMED, count - 1)

    def server(setup: PairSetup, channel: Channel) -> Callable[[], object]:
        def judge() -> None:
            if not judge_as_server(channel, setup, scorer):
                raise PpspeechError("the hardened verification rejects the speaker of its own model")

        return judge

    return Timed(
        name,
        lambda setup, channel: lambda: prove_as_client(channel, setup, terms, models[claimed], claimed),
        server,
        lambda _: True,
    )


def _templates(tls: Tls, repeats: int) -> list[Figure]:
    """A probe against 1,000 templates encrypted under an enrollment key."""
    generator = np.random.default_rng(3)
    plan = GalleryPlan(DIMENSIONS, ENROLLED[0])
    templates = _unit(generator.normal(size=(DIMENSIONS, ENROLLED[0]))).T
    keeper = Keeper(plan, templates, THRESHOLD)
    gallery = keeper.publish()

    own = Prober(gallery)
    probe = plan.product.job.reply_bytes + plan.cost.total_bytes
    job = Timed(
        "templates",
        lambda setup, channel: lambda: own.ask(channel, setup, templates[CLAIMED], CLAIMED),
        lambda setup, channel: lambda: keeper.answer(channel, setup),
        lambda found: found is True,
    )
    seconds = measure([job], repeats, meet=AGREED, tls=tls)["templates"].total
    note = f"{ENROLLED[0]} templates x {DIMENSIONS}, offline and online; gallery {len(gallery.templates):,} bytes once"
    return [
        Figure("speakers.templates.ms", 1e3 * seconds, "ms", note=note),
        Figure("speakers.templates.bytes", probe, "B", note="a probe; as the formula says"),
    ]


def _agree(side: Side) -> Meet:
    return lambda channel: nullcontext(PairSetup.agree(channel, side))


AGREED = _agree(Side.SECOND), _agree(Side.FIRST)  # transfers alone
