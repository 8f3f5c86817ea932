"""Principal directions where the parties hold different features of the same frames (a vertical split).

    C = [[A'A, A'B], [B'A, B'B]] / s

Each party has one diagonal block; the block between them is a product of one party's numbers and the other's, which
the lattice kernel leaves in shares. Then everything goes as in `two`. The result has Alice's features first.

Precision of the block: frames over sqrt(s) have columns of length at most 1, so that weights rounded to 2^-22 and the
noise of encryption add an error of standard deviation about 2^-23 to an entry, however many frames there are.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Scale
from ppspeech.crypto.lattice import MatrixPlan, Precision, encode_weights, plan_product
from ppspeech.errors import RangeError
from ppspeech.protocols.eigen.matrix import NARROW, NARROW_FRACTION, START, START_FRACTION, upper
from ppspeech.protocols.eigen.moments import second_moments
from ppspeech.protocols.eigen.two import SQUARINGS, EigenJob, find_directions
from ppspeech.protocols.meeting import meet_as_client, meet_as_server
from ppspeech.protocols.party import Party, register_protocol

WEIGHTS = Scale(bits=24, fraction=22)

eigenvector_vertical = register_protocol(
    "eigenvector_vertical",
    functionality="the first principal directions of frames of which each party holds some features, to both",
    leakage="nothing but the public sizes; each direction is that of 2^squarings steps of the power method to 2^-16",
    assumptions="both follow the protocol; ring LWE at 128 bits, Diffie-Hellman on ed25519, AES a random permutation",
)


@eigenvector_vertical.party("alice")
def alice(
    party: Party,
    frames: Reals,
    *,
    features: Sequence[int],
    samples: int,
    bound: float,
    count: int = 1,
    squarings: int = SQUARINGS,
) -> NDArray[np.float64]:
    """Alice's program: her features of the frames, `(samples, features[0])`; both hold the same frames in order.

    `features`: how many Alice and Bob have. `bound`: what the sum of squares of neither party's frames exceeds. Returns
    unit vectors `(count, features[0] + features[1])`. Unfit frames are refused before anything is sent.
    """
    job, features = EigenJob(sum(features), count, squarings), (features[0], features[1])
    scaled = _scaled(frames, (samples, features[0]), bound)
    met = meet_as_server(party.channel)
    plan = block_plan(features, samples)
    block = met.multiply(plan, encode_weights(plan, scaled))
    return find_directions(met, _start_share(second_moments(scaled), block, features, own=0), job)


@eigenvector_vertical.party("bob")
def bob(
    party: Party,
    frames: Reals,
    *,
    features: Sequence[int],
    samples: int,
    bound: float,
    count: int = 1,
    squarings: int = SQUARINGS,
) -> NDArray[np.float64]:
    """Bob's program, with `frames` `(samples, features[1])`; see Alice's."""
    job, features = EigenJob(sum(features), count, squarings), (features[0], features[1])
    scaled = _scaled(frames, (samples, features[1]), bound)
    met = meet_as_client(party.channel)
    block = met.multiply(block_plan(features, samples), np.ascontiguousarray(scaled.T))
    return find_directions(met, _start_share(second_moments(scaled), block, features, own=1), job)


@lru_cache(maxsize=16)
def block_plan(features: tuple[int, int], samples: int) -> MatrixPlan:
    """How the block B'A `(features[1], features[0])` goes through the kernel; its bytes come before the rest."""
    precision = Precision(limit=1.0, weights=WEIGHTS, result=Scale(NARROW.bits, NARROW_FRACTION))
    return plan_product(features[1], samples, features[0], precision)


def _scaled(frames: Reals, shape: tuple[int, int], bound: float) -> NDArray[np.float64]:
    """Frames over sqrt(s), s = 2 bound."""
    if not (np.isfinite(bound) and bound > 0):
        raise RangeError(f"the public bound on a party's sum of squares must be a number above 0, got {bound}")
    given = np.asarray(frames, np.float64)
    if given.shape != shape:
        raise RangeError(f"frames must have the agreed shape {shape}, got {given.shape}")
    if not np.isfinite(given).all():
        raise RangeError("frames must be finite numbers; remove infinities and NaN")
    total = float(np.square(given).sum())
    if total > bound:
        raise RangeError(
            f"the sum of squares is {total:.6g}, above the public bound of {bound:.6g}: scale the frames, "
            "or agree on a larger bound"
        )
    scaled: NDArray[np.float64] = given / np.sqrt(2 * bound)
    return scaled


def _start_share(moments: NDArray[np.float64], block: Residues, features: tuple[int, int], own: int) -> Residues:
    """Our diagonal block in the clear and our share of B'A, as start residues of the whole matrix: upper half, flat."""
    k = features[0]
    matrix = np.zeros((sum(features), sum(features)), np.uint64)
    encoded = START.from_signed(Scale(START.bits, START_FRACTION).encode(moments))
    part = slice(0, k) if own == 0 else slice(k, None)
    matrix[part, part] = encoded
    # A residue of 32 bits with 30 after the point, moved up by 27, is one of 59 with 57: nothing wraps that did not.
    matrix[:k, k:] = START.reduce(block.T << np.uint64(START_FRACTION - NARROW_FRACTION))
    return upper(matrix)
