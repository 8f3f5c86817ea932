"""The principal direction of two parties' frames on shares, beside the paper's protocol with an arbitrator.

Needs nothing.
"""

from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.crypto.paillier import generate_paillier
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.two_parties import STRANGERS, Timed, measure
from ppspeech.evidence.published.protocols.eigenvector import run_published
from ppspeech.figures import Figure
from ppspeech.protocols import Party
from ppspeech.protocols.eigen import SQUARINGS, alice, bob

FEATURES = 39
RATIO = 1.1
KEY_BITS = 2048
ROUNDS = 1 << SQUARINGS  # of the paper's protocol: as many steps of the power method as the squarings are


@BENCHES.register("eigen")
def run(quick: bool) -> list[Figure]:
    """Measure ours whole, and of the paper's protocol a few rounds, of which all are alike."""
    repeats, slice_rounds = (2, 2) if quick else (7, 8)
    frames, direction = two_parties(FEATURES, RATIO)
    cosines: list[float] = []
    best = measure([timed(frames, direction, cosines)], repeats, meet=STRANGERS)["eigen"]
    worst = min(cosines)
    each = published_round_seconds(np.concatenate(frames), slice_rounds)
    sizes = f"{FEATURES} features, ratio of eigenvalues {RATIO}, {SQUARINGS} squarings"
    note = (
        f"{sizes}; two processes, TCP on loopback, everything from the first message: meeting, offline and online; "
        f"best of {repeats} after a warm-up; {machine()}"
    )
    published_note = (
        f"{KEY_BITS} bits, fast Paillier of ours, no decoys, no padding; {slice_rounds} rounds of one party and Trent "
        f"measured ({each:.3f} s each; the parties work at the same time) and multiplied to {ROUNDS}"
    )
    published = each * ROUNDS
    return [
        Figure("eigen.k39.cos", worst, note=f"worst of {len(cosines)} runs, 1 - |cos| = {1 - worst:.2g}; {sizes}"),
        Figure.less("eigen.k39.total_s", best.total, "s", "Pathak 2010, 4.1.1", published, note),
        Figure("eigen.k39.bytes", best.bytes, "B", note="payload, both ways, setup included"),
        Figure("eigen.k39.rounds", best.rounds, note="round trips"),
        Figure("eigen.k39.published_s", published, "s", note=published_note),
    ]


def two_parties(features: int, ratio: float) -> tuple[list[Reals], Reals]:
    """Frames of both `(frames, features)` and their common principal direction.

    The first eigenvalue is `ratio` times the second, and the others fall to a hundredth of it.
    """
    rng = np.random.default_rng(8)
    values = np.concatenate([[ratio], np.linspace(1.0, 0.01, features - 1)])
    directions = np.linalg.qr(rng.normal(size=(features, features)))[0]
    mixed = np.linalg.qr(rng.normal(size=(5 * features, features)))[0]
    frames = mixed @ (np.sqrt(values)[:, None] * directions.T)
    return [frames[: 3 * features], frames[3 * features :]], directions[:, 0]


def timed(frames: list[Reals], direction: Reals, cosines: list[float]) -> Timed:
    """Ours, from meeting to result; every run enters |cos| with the true direction, which must be near 1."""
    first, second = frames
    terms: dict[str, Any] = {"features": first.shape[1], "bound": 2.0 * first.shape[1]}

    def right(found: Reals) -> bool:
        cosines.append(abs(float(found[0] @ direction)))
        return cosines[-1] >= 1 - 1e-4

    return Timed(
        "eigen",
        lambda _, channel: lambda: alice(Party("alice", {"bob": channel}), first, **terms),
        lambda _, channel: lambda: bob(Party("bob", {"alice": channel}), second, **terms),
        right,
    )


def published_round_seconds(frames: Reals, rounds: int) -> float:
    """Of the paper's protocol, the time of a round on the path that all wait for: one party's work and Trent's."""
    key = generate_paillier(KEY_BITS)
    run_published([frames], key, rounds=1)  # tables of the key
    return run_published([frames], key, rounds=rounds).seconds / rounds
