"""Secure LOGSUM (Pathak 2010, 4.2.1): from ξ(log θ_1), ..., ξ(log θ_n) and Bob's weights a to ξ(log sum_i a_i θ_i).

    1. Secure Exponent, n times: ξ(θ_1), ..., ξ(θ_n)
    2. Bob             prod_i ξ(θ_i)^(a_i) = ξ(sum_i a_i θ_i)
    3. Secure Logarithm

Corrections, beside those of the two protocols:

- The paper truncates a weight in an exponent to its integer part, which makes every probability below 1 zero. Weights
  are at scale 10^6, so the sum is at 10^12, and step 3 takes that scale off.
- Several sums over the same terms take their exponents once. The paper's own count of operations, O(N) for the N
  LOGSUMs of a frame, supposes this.
- One unit of the last place, 10^-12, is added to each sum, so that a sum too small to be seen has a logarithm.

Alice sees the blinded logarithms of all terms side by side, and so their ratios within a factor of 255. Correction 2.28
in docs/theory/asking.md.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ppspeech.channel import Channel
from ppspeech.crypto.paillier import Ciphertext, PaillierSecretKey, Unfinished
from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.exponent import alice_exponent, bob_exponent
from ppspeech.evidence.published.protocols.logarithm import alice_logarithm, bob_logarithm
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob, Encrypted, meet_as_alice, meet_as_bob
from ppspeech.evidence.published.protocols.real_numbers import FACTOR
from ppspeech.protocols import RegisteredProtocol

logsum = RegisteredProtocol(
    "published_logsum",
    functionality="a ciphertext of the logarithm of a weighted sum of exponentials of encrypted numbers, to bob",
    leakage="alice learns every term within 5.6 nats, so the terms' ratios too, and the sum up to a factor below 2^40",
    assumptions="both follow the protocol; decisional composite residuosity for what bob sees",
)
"""A step of `published_keyword`: it is not listed, for what Bob brings and takes away are ciphertexts."""


def alice(channel: Channel, key: PaillierSecretKey, *, count: int, insecure_demo: bool = False) -> None:
    """Alice's program, for a sum of `count` terms."""
    met = meet_as_alice(channel, key, logsum, insecure_demo=insecure_demo)
    alice_logsum(met, groups=1, terms=count, sums=1)


def bob(
    channel: Channel,
    logs: Sequence[Ciphertext],
    weights: Sequence[float],
    *,
    strict: bool = False,
    insecure_demo: bool = False,
) -> Unfinished:
    """Bob's program: encrypted logarithms at `LOG_SCALE` and weights, none negative, to the logarithm of the sum."""
    rows = encode_weights(np.array(weights, np.float64)[None, None])
    if len(logs) != rows.shape[-1]:
        raise RangeError(f"a sum of {len(logs)} terms needs as many weights, got {rows.shape[-1]}")
    return bob_logsum(meet_as_bob(channel, logsum, strict=strict, insecure_demo=insecure_demo), logs, rows)[0]


def alice_logsum(alice: Alice, *, groups: int, terms: int, sums: int) -> None:
    """Alice's steps: `groups` times, `sums` sums over the same `terms` terms."""
    alice_exponent(alice, groups * terms, group=terms)  # step 1
    alice_logarithm(alice, groups * sums)  # step 3


def bob_logsum(bob: Bob, logs: Sequence[Encrypted], weights: NDArray[np.int64]) -> list[Unfinished]:
    """Bob's: logs `groups * terms`, weights `(groups, sums, terms)` at `FACTOR`, to `groups * sums` logarithms."""
    groups, sums, terms = weights.shape
    thetas, tops = bob_exponent(bob, logs, group=terms)  # step 1
    totals = [
        _weighted_sum(bob, thetas[group * terms : (group + 1) * terms], row)  # step 2
        for group in range(groups)
        for row in weights[group]
    ]
    found = bob_logarithm(bob, totals, FACTOR * FACTOR)  # step 3
    return [bob.public.add(log, tops[at // sums]) for at, log in enumerate(found)]


def encode_weights(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Weights at `FACTOR`. Raises `RangeError` for a weight that is negative, not finite, or above 10^6."""
    if not ((weights >= 0) & (weights <= FACTOR)).all():
        raise RangeError(f"weights lie between 0 and {FACTOR}, got {weights.min()} to {weights.max()}")
    return np.rint(weights * FACTOR).astype(np.int64)


def _weighted_sum(bob: Bob, thetas: Sequence[Unfinished], weights: NDArray[np.int64]) -> Unfinished:
    public = bob.public
    scaled = [public.scale(theta, int(a)) for theta, a in zip(thetas, weights, strict=True) if a]
    total = reduce(public.add, scaled, public.scale(thetas[0], 0))
    return public.add_plain(total, 1)
