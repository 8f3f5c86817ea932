"""The principal directions of what two parties have together, by repeated squaring on shares and without a third.

Alice has frames A, Bob frames B, of the same features. Each computes its own second moments; divided by a public bound
they are additive shares of C = (A'A + B'B) / s without a message being sent. Seven squarings on shares are 128 steps
of the power method, of which no step is shown to anyone; then the direction alone is opened. Further ones follow by
deflation: what is found is public, so each party projects it out of its own share. Pathak 2010, section 4.1.1, whose
own protocol is in `published`. Proof: Theorem 3.10 in docs/theory/together.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice import LatticeParameters, key_length
from ppspeech.crypto.shares import Cost, ShareEngine, blank, record
from ppspeech.errors import RangeError
from ppspeech.protocols.eigen.direction import reveal_direction, unit_vector
from ppspeech.protocols.eigen.matrix import (
    NARROW,
    NARROW_FRACTION,
    Met,
    begin,
    normalize,
    project,
    square,
    square_plan,
    squaring_shift,
    upper,
    widen,
)
from ppspeech.protocols.eigen.moments import DELTA, own_moments, start_share
from ppspeech.protocols.meeting import meet_as_client, meet_as_server
from ppspeech.protocols.party import Party, register_protocol

SQUARINGS = 7  # 128 steps of the power method: an eigenvalue 1.1 times the next one outweighs it 200,000-fold
MOST_SQUARINGS = 12
MOST_FEATURES = 128
"""Beyond, a flat spectrum would drown in the error of a squaring (`matrix`), and memory grows with k^2."""

eigenvector = register_protocol(
    "eigenvector",
    functionality="the first principal directions of both parties' frames together, to both",
    leakage="nothing but the public sizes; each direction is that of 2^squarings steps of the power method to 2^-16",
    assumptions="both follow the protocol; ring LWE at 128 bits, Diffie-Hellman on ed25519, AES a random permutation",
)


@eigenvector.party("alice")
def alice(
    party: Party,
    frames: Reals,
    *,
    features: int,
    bound: float,
    count: int = 1,
    squarings: int = SQUARINGS,
    epsilon: float | None = None,
    delta: float = DELTA,
    radius: float | None = None,
) -> NDArray[np.float64]:
    """Alice's program: her frames `(frames, features)`. Returns unit vectors `(count, features)`.

    `bound`: what neither party's sum of squares exceeds, public; it may be far above: up to 2^25 times cost no
    precision. `epsilon`: release the directions with (epsilon, delta)-differential privacy for one frame of hers,
    clipped to the public `radius` (`AnalyzeGauss`, add_remove); both parties add their own noise. Without, the
    directions are exact. The largest entry of each is positive. Unfit frames are refused before anything is sent.
    """
    job = EigenJob(features, count, squarings)
    own = start_share(own_moments(frames, bound, epsilon, delta, radius), features, bound, parties=2)
    return find_directions(meet_as_server(party.channel), own, job)


@eigenvector.party("bob")
def bob(
    party: Party,
    frames: Reals,
    *,
    features: int,
    bound: float,
    count: int = 1,
    squarings: int = SQUARINGS,
    epsilon: float | None = None,
    delta: float = DELTA,
    radius: float | None = None,
) -> NDArray[np.float64]:
    """Bob's program; see Alice's."""
    job = EigenJob(features, count, squarings)
    own = start_share(own_moments(frames, bound, epsilon, delta, radius), features, bound, parties=2)
    return find_directions(meet_as_client(party.channel), own, job)


@dataclass(frozen=True, slots=True)
class EigenJob:
    """What is computed, all public: 2 to 128 features, fewer directions than that, 1 to 12 squarings for each."""

    features: int
    count: int = 1
    squarings: int = SQUARINGS

    def __post_init__(self) -> None:
        if not 2 <= self.features <= MOST_FEATURES:
            raise RangeError(f"directions are found among 2 to {MOST_FEATURES} features, got {self.features}")
        if not 1 <= self.count < self.features:
            raise RangeError(f"1 to {self.features - 1} directions of {self.features} features, got {self.count}")
        if not 1 <= self.squarings <= MOST_SQUARINGS:
            raise RangeError(f"1 to {MOST_SQUARINGS} squarings, got {self.squarings}")

    @property
    def cost(self) -> Cost:
        """What the share engine does after the setup; the lattice's part is `lattice_bytes`."""
        return _cost_of_one(self) * self.count

    @property
    def lattice_bytes(self) -> tuple[int, int]:
        """What the first (Alice) and the second party (Bob) send of ciphertexts: replies; the key and queries."""
        job, products = square_plan(self.features).job, self.count * self.squarings
        return products * job.reply_bytes, products * job.query_bytes + key_length(LatticeParameters())


def find_directions(met: Met, own: Residues, job: EigenJob) -> NDArray[np.float64]:
    """Unit vectors `(count, features)`, to both of two parties who have met and hold start shares `own`."""
    with met.session():
        engine = ShareEngine(met.channel, met.setup, job.cost)
        found: list[NDArray[np.float64]] = []
        first = current = _begin(engine, own, job)
        for _ in range(job.count):
            if found:
                current = _begin(engine, project(first, np.stack(found)), job)
            found.append(unit_vector(_find_one(engine, current, job, lambda share: square(met, share))))
    return np.stack(found)


def _begin(engine: ShareEngine, own: Residues, job: EigenJob) -> Residues:
    with engine.in_flights():
        return begin(engine, own, job.features)


def _find_one(
    engine: ShareEngine, share: Residues, job: EigenJob, squared_by: Callable[[Residues], Residues]
) -> NDArray[np.int64]:
    """Square and scale in turn, then open the direction."""
    for _ in range(job.squarings - 1):
        squared = upper(squared_by(share))
        with engine.in_flights():
            share = widen(engine, _scaled(engine, squared, job), job.features)
    squared = upper(squared_by(share))
    with engine.in_flights():
        return reveal_direction(engine, _scaled(engine, squared, job), job.features)


@lru_cache(maxsize=16)
def _cost_of_one(job: EigenJob) -> Cost:
    """What the search for one direction costs, without the lattice's part."""

    def program(engine: ShareEngine) -> None:
        share = _begin(engine, blank(job.features * (job.features + 1) // 2), job)
        _find_one(engine, share, job, lambda share: blank(*share.shape))

    return record(program)


def _scaled(engine: ShareEngine, squared: Residues, job: EigenJob) -> Residues:
    return normalize(engine, squared, job.features, NARROW, NARROW_FRACTION, squaring_shift(job.features))
