"""A keyword in a minute of recordings, and a clip among 120 templates, between two processes over TLS.

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
SAID = 400, 448
WARPED = WarpShape(length=24, dimensions=39, templates=120)


@BENCHES.register("spotting")
def run(quick: bool) -> list[Figure]:
    """Measure both jobs, offline and online apart; what is found must be what was put there."""
    repeats = 3 if quick else 10
    with certificates() as tls:
        measured = measure([_spotting(), _templates()], repeats, tls=tls)
    where = f"two processes, TLS on loopback, {machine()}; best of {repeats} after a warm-up"
    minute, clip = measured["spotting"], measured["templates"]
    sizes = f"{STATES} states, {SHAPE.blocks} blocks of {SHAPE.window} frames, {SHAPE.bits} bits"
    return [
        *minute.figures("spotting", "minute_s", f"a keyword in a minute of recordings; {sizes}; {where}"),
        *clip.figures("dtw", "clip_s", f"{WARPED.templates} templates of {WARPED.length} frames; {where}"),
    ]


def _spotting() -> Timed:
    rng = np.random.default_rng(0)
    means, variances = rng.normal(size=(1, STATES, 39)), np.full((1, STATES, 39), 0.3)
    keyword = Keywords.of_gaussians(
        SHAPE, means, variances, np.log(np.full((1, STATES), 0.7)), np.zeros(1), np.zeros(1)
    )
    frames = rng.normal(size=(MINUTE, 39))
    frames[slice(*SAID)] = np.repeat(means[0], (SAID[1] - SAID[0]) // STATES, axis=0)
    recordings = Recordings(SHAPE, [frames], [np.full(MINUTE, -45.0)])
    encoded, cost = encode(recordings), spotting_cost(SHAPE)

    def seek(met: Meeting, channel: Channel) -> Callable[[], Answers]:
        watched = replace(met, channel=channel)
        engine = prepare(watched, SHAPE)
        return lambda: ask(watched, keyword, engine)

    def hold(met: Meeting, channel: Channel) -> Callable[[], None]:
        watched = replace(met, channel=channel)
        engine = prepare(watched, SHAPE)
        return lambda: answer(watched, recordings, encoded, engine)

    def right(answers: Answers) -> bool:
        found = answers[0][0]
        return found is not None and (found.starts[0], found.end) == SAID

    return Timed("spotting", seek, hold, right, SHAPE.product.total_bytes + cost.total_bytes, 1 + cost.rounds)


def _templates() -> Timed:
    rng = np.random.default_rng(1)
    frames = rng.normal(size=(WARPED.templates, WARPED.length, WARPED.dimensions))
    own = Templates(WARPED, frames, tuple(f"word {number % 10}" for number in range(WARPED.templates)))
    utterance: Reals = frames[77] + 0.3 * rng.normal(size=frames[77].shape)
    encoded, cost = own.encoded(), warping_cost(WARPED)

    def seek(met: Meeting, channel: Channel) -> Callable[[], str | None]:
        watched = replace(met, channel=channel)
        engine = prepare_warping(watched, WARPED)
        return lambda: read_label(nearest(watched, WARPED, utterance, engine))

    def hold(met: Meeting, channel: Channel) -> Callable[[], None]:
        watched = replace(met, channel=channel)
        engine = prepare_warping(watched, WARPED)
        return lambda: serve_templates(watched, own, encoded, engine)

    total = WARPED.product.total_bytes + cost.total_bytes
    return Timed("templates", seek, hold, lambda told: told == "word 7", total, 1 + cost.rounds)
