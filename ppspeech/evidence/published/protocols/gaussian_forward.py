"""Simplified Secure Forward Algorithm (Pathak 2010, 4.2.1): Gaussian emissions from encrypted products of features.

    1. Alice -> Bob    for each frame, ξ(z_i z_j) for all i and j, z = [x, 1]
    2. Bob             ξ(log b_j(x_t)) = ξ(z' W_j z) for each state
    3. both            steps 5-8 of `forward`

All (d + 1)^2 products are sent, as printed, though half of them are the others again. Corrections: `gaussian_word`;
products and weights are both at 10^6, so log b_j is at 10^12, the scale of all logarithms here.
"""

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.crypto.paillier import RecodedWeights, Unfinished
from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.gaussian_word import GaussianWord
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob
from ppspeech.evidence.published.protocols.real_numbers import FACTOR, encode
from ppspeech.protocols import Kind

LARGEST_FEATURE = 1e6


def send_products(alice: Alice, frames: Reals) -> None:
    """Step 1, for frames `(frames, d)` that `check_frames` lets pass."""
    check_frames(frames)
    for frame in frames:
        z = np.append(frame, 1.0)
        alice.send(Kind.PRODUCTS, [encode(product) for product in np.outer(z, z).ravel().tolist()])


def receive_emissions(bob: Bob, plan: RecodedWeights, frames: int) -> list[list[Unfinished]]:
    """Step 2: for each frame log b_j of all states that the plan has rows for, at `LOG_SCALE`."""
    return [bob.public.scalar_products(bob.receive(Kind.PRODUCTS, plan.terms), plan) for _ in range(frames)]


def emission_plan(words: list[GaussianWord], *, strict: bool = False) -> RecodedWeights:
    """W of all states of all words, as integers: a row a state, `(d + 1)^2` terms."""
    weights = np.concatenate([word.weights(strict=strict) for word in words])
    integers: NDArray[np.int64] = np.rint(weights * FACTOR).astype(np.int64)
    return RecodedWeights.of(integers.reshape(len(weights), -1))


def check_frames(frames: Reals) -> None:
    """Raises `RangeError` for frames that are not `(frames, d)`, or a feature that is not finite or above 10^6."""
    if frames.ndim != 2 or not frames.size:
        raise RangeError(f"frames have the shape (frames, features) and there is at least one, got {frames.shape}")
    if not (np.abs(frames) <= LARGEST_FEATURE).all():
        raise RangeError(f"features are finite and at most {LARGEST_FEATURE:.0e} in magnitude: normalize them first")
