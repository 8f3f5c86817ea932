"""A word of 72 patches in a minute of recordings, boosted or by a support vector machine, between processes over TLS.

Needs nothing.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ppspeech.channel import Channel
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.two_parties import Timed, certificates, measure
from ppspeech.figures import Figure
from ppspeech.protocols import Meeting
from ppspeech.protocols.search import (
    Patches,
    PatchShape,
    answer_patches,
    ask_patches,
    encode_pieces,
    patches_cost,
    patches_rounds,
    prepare_patches,
)

SHAPE = PatchShape(pieces=1_993, numbers=208)
"""As in `reproduce patches`: frames every 30 ms, patches of 26 bands and 8 frames."""


@BENCHES.register("patches")
def run(quick: bool) -> list[Figure]:
    """Measure it, offline and online apart; the word must be found where it was put."""
    repeats = 1 if quick else 4
    work = jobs()
    with certificates() as tls:
        measured = measure(list(work.values()), repeats, tls=tls)
    where = f"two processes, TLS on loopback, {machine()}; best of {repeats} after a warm-up"
    sizes = f"{SHAPE.patches} patches, {SHAPE.places} places, {SHAPE.scale.bits} bits"
    note = f"a word in a minute of recordings; {sizes}; {where}"
    return [each for name, job in work.items() for each in measured[job.name].figures(name, "minute_s", note)]


def jobs() -> dict[str, Timed]:
    """By metric."""
    return {"patches": job(SHAPE), "patches.svm": job(replace(SHAPE, rule="linear"))}


def job(shape: PatchShape) -> Timed:
    """Patches that fit at one place, and nowhere else as well."""
    rng, place = np.random.default_rng(0), shape.places // 3
    pieces = rng.normal(size=(shape.recordings, shape.pieces, shape.numbers))
    pieces /= np.linalg.norm(pieces, axis=-1, keepdims=True)
    bins = np.repeat(np.arange(shape.bins), shape.per_bin)
    late = rng.integers(0, shape.window, shape.patches)
    late[[0, -1]] = 0, shape.window - 1  # at no other place all of them fit
    found = pieces[0, place + bins * shape.step + late]
    half = np.full(shape.patches, 0.8)
    own = Patches(shape, found, half, np.ones(shape.patches), -0.9 * shape.patches)
    encoded, total = encode_pieces(shape, pieces), shape.product_bytes + patches_cost(shape).total_bytes

    def seek(met: Meeting, channel: Channel) -> Callable[[], list[int | None]]:
        watched = replace(met, channel=channel)
        engine = prepare_patches(watched, shape)
        return lambda: ask_patches(watched, own, engine)

    def hold(met: Meeting, channel: Channel) -> Callable[[], None]:
        watched = replace(met, channel=channel)
        engine = prepare_patches(watched, shape)
        return lambda: answer_patches(watched, shape, encoded, engine)

    return Timed(shape.rule, seek, hold, lambda told: told[0] == place, total, patches_rounds(shape))
