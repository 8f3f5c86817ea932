"""What a party of `published.eigenvector` finds out by following it and keeping notes: everyone's second moments.

Let C be the second moments of all frames together. The norm of a round is n = |M' y|^2 = y' C y, and the next genuine
vector is y⁺ = r⁺ C y / sqrt(n). Therefore

    y·y⁺ = r⁺ y' C y / sqrt(n) = r⁺ sqrt(n):   r⁺ is known, and   C y = sqrt(n) y⁺ / r⁺.

r⁺ is a whole number, and y·y' / sqrt(n) for a decoy y' almost never is: decoys are found out. k pairs determine C.
"""

import itertools

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.errors import PpspeechError
from ppspeech.evidence.published.protocols.eigenvector import SCALING_BITS, Seen

WHOLE = 1e-3  # how near to a whole number counts: one decoy in 500 passes for one pair, and few for two


def genuine_rounds(seen: Seen) -> list[int]:
    """The numbers of the rounds that were no decoys: the longest chain in which every scaling is a whole number."""
    rounds = len(seen.vectors)
    chains: list[list[int]] = [[] for _ in range(rounds)]
    for at in reversed(range(rounds)):
        # A decoy that passes by chance leads nowhere: of all that may follow, the one with the longest chain does.
        scalings = {later: _scaling(seen, at, later) for later in range(at + 1, rounds)}
        genuine = [later for later, r in scalings.items() if 0.5 < r < 2**SCALING_BITS and abs(r - round(r)) < WHOLE]
        follow = [chains[later] for later in genuine]
        chains[at] = [at, *max(follow, key=len, default=[])]
    return max(chains, key=len)


def recover_moments(seen: Seen) -> Reals:
    """C, `(features, features)`, plus a multiple of the identity for padding; needs as many pairs as features."""
    rounds = genuine_rounds(seen)
    pairs = list(itertools.pairwise(rounds))
    features = seen.vectors.shape[1]
    if len(pairs) < features:
        raise PpspeechError(f"{features} features need as many pairs of genuine rounds, got {len(pairs)}")
    lengths = np.linalg.norm(seen.vectors, axis=1)
    before = np.stack([seen.vectors[at] / lengths[at] for at, _ in pairs])
    after = np.stack(
        [
            np.sqrt(seen.norms[at]) * seen.vectors[later] / (round(_scaling(seen, at, later)) * lengths[at])
            for at, later in pairs
        ]
    )
    moments: Reals = np.linalg.lstsq(before, after, rcond=None)[0]
    symmetric: Reals = (moments + moments.T) / 2
    return symmetric


def _scaling(seen: Seen, at: int, later: int) -> float:
    """r of round `later` if it continues round `at`."""
    return float(seen.vectors[at] @ seen.vectors[later] / np.sqrt(seen.norms[at]))
