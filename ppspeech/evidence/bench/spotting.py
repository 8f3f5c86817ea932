"""A keyword in a minute and in ten of recordings, and a clip among 120 templates, between two processes over TLS.

Needs nothing.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.two_parties import Timed, certificates, measure
from ppspeech.figures import Figure
from ppspeech.protocols import Meeting
from ppspeech.protocols.search import (
    Answers,
    Keywords,
    Recordings,
    SpotShape,
    Templates,
    WarpShape,
    answer,
    ask,
    encode,
    nearest,
    prepare,
    prepare_warping,
    read_label,
    serve_templates,
    spotting_cost,
    warping_cost,
)

MINUTE, STATES = 2_000, 12
SHAPE = SpotShape(
    frames=MINUTE, dimensions=39, terms="diagonal", states=(STATES,), block=100, longest=50, scores=(-1_500, -10),
    garbage=(-90, 20), constant=200, fraction=7,
)  # fmt: skip
"""Frames every 30 ms, blocks of 3 s that overlap by 1.5 s: as in `reproduce spotting`."""
AVERAGE = replace(SHAPE, passes=6, fraction=5)
MINUTES = 10
TOGETHER = replace(SHAPE, recordings=MINUTES, dimensions=120, terms="linear", states=(9,), limit=13.0, radius=143.0,
                   scores=(-22, 8), garbage=(0, 0), fraction=4)  # fmt: skip
"""Ten recordings in one question, for three of forty sub-word units of three states."""
WARPED = WarpShape(length=24, dimensions=39, templates=120)


@BENCHES.register("spotting")
def run(quick: bool) -> list[Figure]:
    """Measure both jobs, offline and online apart; what is found must be what was put there."""
    repeats = 3 if quick else 10
    with certificates() as tls:
        measured = measure(jobs(), repeats, tls=tls)
    where = f"two processes, TLS on loopback, {machine()}; best of {repeats} after a warm-up"
    minute, clip = measured["spotting"], measured["templates"]
    sizes = f"{STATES} states, {SHAPE.blocks} blocks of {SHAPE.window} frames, {SHAPE.bits} bits"
    average = f"the best average of a minute, {AVERAGE.passes} passes, {AVERAGE.bits} bits; {where}"
    together = measured["together"]
    units = f"three units of forty, {TOGETHER.columns} states, {TOGETHER.bits} bits; {where}"
    return [
        *minute.figures("spotting", "minute_s", f"a keyword in a minute of recordings; {sizes}; {where}"),
        *measured["average"].figures("spotting.average", "minute_s", average),
        *together.figures(
            "spotting.together", "minutes10_s", f"{MINUTES} recordings of a minute in one question; {units}"
        ),
        *clip.figures("dtw", "clip_s", f"{WARPED.templates} templates of {WARPED.length} frames; {where}"),
    ]


def jobs(
    shapes: tuple[SpotShape, SpotShape, SpotShape] = (SHAPE, AVERAGE, TOGETHER), warped: WarpShape = WARPED
) -> list[Timed]:
    """The best sum, the best average, many recordings at once, and templates."""
    names = ("spotting", "average", "together")
    return [*(spot_job(name, shape) for name, shape in zip(names, shapes, strict=True)), templates_job(warped)]


def spot_job(name: str, shape: SpotShape) -> Timed:
    """A keyword that is said once in noise; as an average, any part of where it is said is right."""
    rng, (states,) = np.random.default_rng(0), shape.states
    size, first = (1, states, shape.dimensions), shape.frames // 5
    said = first, first + 4 * states
    rest = np.log(np.full((1, states), 0.7)), np.zeros(1), np.zeros(1)
    if shape.terms == "linear":  # ratios about their middle, as an archive has them
        rows = np.eye(shape.dimensions)[None, :states]
        keyword = Keywords.of_units(shape, rows, np.full((1, states), -7.0), *rest[1:])
        frames, spoken, garbage = rng.normal(-8, 1, (shape.frames, shape.dimensions)), 12 * rows[0], 0.0
    else:
        spoken = rng.normal(size=size)[0]
        keyword = Keywords.of_gaussians(shape, spoken[None], np.full(size, 0.3), *rest)
        frames, garbage = rng.normal(size=(shape.frames, shape.dimensions)), -1.15 * shape.dimensions
    frames[slice(*said)] = np.repeat(spoken, 4, axis=0)
    level = np.full(shape.frames, garbage)
    recordings = Recordings(shape, [frames] * shape.recordings, [level] * shape.recordings)
    encoded, cost = encode(recordings), spotting_cost(shape)

    def seek(met: Meeting, channel: Channel) -> Callable[[], Answers]:
        watched = replace(met, channel=channel)
        engine = prepare(watched, shape)
        return lambda: ask(watched, keyword, engine)

    def hold(met: Meeting, channel: Channel) -> Callable[[], None]:
        watched = replace(met, channel=channel)
        engine = prepare(watched, shape)
        return lambda: answer(watched, recordings, encoded, engine)

    def right(answers: Answers) -> bool:
        spans = [(found.starts[0], found.end) for found in answers[0] if found is not None]
        if shape.passes:
            return len(spans) == shape.recordings and all(said[0] <= begin < end <= said[1] for begin, end in spans)
        return spans == [said] * shape.recordings

    return Timed(name, seek, hold, right, shape.product.total_bytes + cost.total_bytes, 1 + cost.rounds)


def templates_job(shape: WarpShape) -> Timed:
    """An utterance near one of the templates."""
    rng = np.random.default_rng(1)
    frames = rng.normal(size=(shape.templates, shape.length, shape.dimensions))
    own = Templates(shape, frames, tuple(f"word {number % 10}" for number in range(shape.templates)))
    utterance: Reals = frames[-1] + 0.3 * rng.normal(size=frames[-1].shape)
    encoded, cost = own.encoded(), warping_cost(shape)

    def seek(met: Meeting, channel: Channel) -> Callable[[], str | None]:
        watched = replace(met, channel=channel)
        engine = prepare_warping(watched, shape)
        return lambda: read_label(nearest(watched, shape, utterance, engine))

    def hold(met: Meeting, channel: Channel) -> Callable[[], None]:
        watched = replace(met, channel=channel)
        engine = prepare_warping(watched, shape)
        return lambda: serve_templates(watched, own, encoded, engine)

    total = shape.product.total_bytes + cost.total_bytes
    return Timed("templates", seek, hold, lambda told: told == own.labels[-1], total, 1 + cost.rounds)
