"""Secure Logarithm (Pathak 2010, 4.2.1): from ξ(θ) to ξ(log θ), with Alice's help.

    1. Bob -> Alice    ξ(θ)^β = ξ(β θ) for a random β
    2. Alice -> Bob    ξ(log β θ)
    3. Bob             ξ(log β θ) ξ(-log β) = ξ(log θ)

Corrections, without which it does not run or is not what it says:

- β is an integer from 1 to 2^40 - 1, not any element of Z_N: the product must not wrap around, or it has no logarithm.
- Integers: θ stands for the real number θ / scale, and Bob takes log scale off together with log β. Logarithms are at
  scale 10^12 (`real_numbers`).
- What Bob sends is re-randomized, unless `strict` (`paillier_parties`).

What stays wrong is the masking. β θ lies within a few bits of 2^40 θ, and maskings of one θ have θ as their greatest
common divisor. θ = 0 cannot be hidden: Alice finds no logarithm and stops. Correction 2.28 in docs/theory/asking.md.
"""

import math
from collections.abc import Sequence

from gmpy2 import mpz

from ppspeech.channel import Channel
from ppspeech.crypto import uniform_below
from ppspeech.crypto.paillier import Ciphertext, PaillierSecretKey, Unfinished
from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob, Encrypted, meet_as_alice, meet_as_bob
from ppspeech.evidence.published.protocols.real_numbers import FACTOR, LOG_SCALE, encode
from ppspeech.protocols import Kind, RegisteredProtocol

BETA_BITS = 40

logarithm = RegisteredProtocol(
    "published_logarithm",
    functionality="ciphertexts of the logarithms of encrypted numbers, to bob",
    leakage="alice learns each number up to a factor below 2^40: its size within a few bits, its divisors, whether it "
    "is zero or negative, and all of it from a few runs on the same number",
    assumptions="both follow the protocol; decisional composite residuosity for what bob sees",
)
"""A step of `published_keyword`: it is not listed, for what Bob brings and takes away are ciphertexts."""


def alice(channel: Channel, key: PaillierSecretKey, *, count: int, insecure_demo: bool = False) -> None:
    """Alice's program, for `count` numbers."""
    alice_logarithm(meet_as_alice(channel, key, logarithm, insecure_demo=insecure_demo), count)


def bob(
    channel: Channel,
    thetas: Sequence[Ciphertext],
    *,
    scale: int = FACTOR,
    strict: bool = False,
    insecure_demo: bool = False,
) -> list[Unfinished]:
    """Bob's program: encrypted numbers at `scale` to their encrypted logarithms at `LOG_SCALE`."""
    met = meet_as_bob(channel, logarithm, strict=strict, insecure_demo=insecure_demo)
    return bob_logarithm(met, thetas, scale)


def alice_logarithm(alice: Alice, count: int) -> None:
    """Alice's steps. Raises `RangeError` for a number that is not positive."""
    products = alice.receive(Kind.SCALED, count)
    if min(products, default=1) <= 0:
        raise RangeError("asked for the logarithm of a number that is zero or negative")
    alice.send(Kind.LOGARITHM, [encode(math.log(product), LOG_SCALE) for product in products])  # step 2


def bob_logarithm(bob: Bob, thetas: Sequence[Encrypted], scale: int, *, bits: int = BETA_BITS) -> list[Unfinished]:
    """Bob's steps: positive numbers at `scale` to their logarithms at `LOG_SCALE`; β has so many bits."""
    betas = [1 + int(uniform_below((mpz(1) << bits) - 1)) for _ in thetas]
    bob.send(Kind.SCALED, [bob.public.scale(theta, beta) for theta, beta in zip(thetas, betas, strict=True)])  # step 1
    logs = bob.receive(Kind.LOGARITHM, len(betas))
    return [
        bob.public.add_plain(log, -encode(math.log(beta) + math.log(scale), LOG_SCALE))  # step 3
        for log, beta in zip(logs, betas, strict=True)
    ]
