"""Secure Exponent (Pathak 2010, 4.2.1): from ξ(log θ) to ξ(θ), with Alice's help.

    1. Bob -> Alice    ξ(log θ) ξ(log β) = ξ(log β θ)
    2. Alice -> Bob    ξ(β θ)
    3. Bob             ξ(β θ)^(1/β) = ξ(θ)

As printed, with β from Z*_{N^2}, this cannot run: such a β has no real logarithm, exponents of ciphertexts act mod N
and not mod N^2, and an inverse mod N gives θ only if β divides the integer that Alice rounded β θ to; otherwise a
random number of the size of N. Corrections:

- β = 1 / μ for a random integer μ from 1 to 255. Step 3 is then a power by μ. Alice rounds θ / μ to six places, so θ
  comes back within μ / 2 units of its last place: a larger μ would hide more and leave no digits.
- Normalization. "Normalizing α_t(1), ..., α_t(N) in each iteration" is required by the paper, which names no party and
  no step for it, and Bob has only ciphertexts. Alice does it: of each group of terms she subtracts the largest
  logarithm before step 2 and sends its encryption along. She sees the blinded logarithms anyway.
- What Bob sends is re-randomized, unless `strict`.

What stays wrong: log θ - log μ tells log θ within 5.6 nats, and the largest of several runs on one θ tells it exactly.
Correction 2.28 in docs/theory/asking.md.
"""

import math
from collections.abc import Sequence

from gmpy2 import mpz

from ppspeech.channel import Channel
from ppspeech.crypto import uniform_below
from ppspeech.crypto.paillier import Ciphertext, PaillierSecretKey, Unfinished
from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.paillier_parties import Alice, Bob, Encrypted, meet_as_alice, meet_as_bob
from ppspeech.evidence.published.protocols.real_numbers import LOG_SCALE, decode, encode
from ppspeech.protocols import Kind, RegisteredProtocol

MU_LARGEST = 255
LARGEST_LOG = 60.0  # the largest logarithm whose exponential Alice gives: what follows must have room in her plaintexts

exponent = RegisteredProtocol(
    "published_exponent",
    functionality="ciphertexts of the exponentials of encrypted numbers, to bob",
    leakage="alice learns each logarithm within log 255 = 5.6 nats, and exactly from some runs on the same number",
    assumptions="both follow the protocol; decisional composite residuosity for what bob sees",
)
"""A step of `published_keyword`: it is not listed, for what Bob brings and takes away are ciphertexts."""


def alice(channel: Channel, key: PaillierSecretKey, *, count: int, insecure_demo: bool = False) -> None:
    """Alice's program, for `count` numbers."""
    alice_exponent(meet_as_alice(channel, key, exponent, insecure_demo=insecure_demo), count)


def bob(
    channel: Channel, logs: Sequence[Ciphertext], *, strict: bool = False, insecure_demo: bool = False
) -> list[Unfinished]:
    """Bob's program: encrypted logarithms at `LOG_SCALE` to encrypted numbers at `FACTOR`."""
    return bob_exponent(meet_as_bob(channel, exponent, strict=strict, insecure_demo=insecure_demo), logs)[0]


def alice_exponent(alice: Alice, count: int, *, group: int = 0) -> None:
    """Alice's steps; so many numbers at a time (`group`) are normalized by their largest, 0 for none."""
    blinded = decode(alice.receive(Kind.BLINDED_LOG, count), LOG_SCALE)
    tops = [max(blinded[at : at + group]) for at in range(0, count, group)] if group else []
    relative = [log - (tops[at // group] if group else 0.0) for at, log in enumerate(blinded)]
    if max(relative, default=0.0) > LARGEST_LOG:
        raise RangeError(f"e^{max(relative):.6g} is too large: exponents stay below {LARGEST_LOG}")
    thetas = [encode(math.exp(log)) for log in relative]
    alice.send(Kind.EXPONENTIAL, thetas + [encode(top, LOG_SCALE) for top in tops])  # step 2


def bob_exponent(bob: Bob, logs: Sequence[Encrypted], *, group: int = 0) -> tuple[list[Unfinished], list[Ciphertext]]:
    """Bob's steps. `logs`: at `LOG_SCALE`. `group`: so many at a time are normalized; 0 for none. Returns exponentials
    at `FACTOR`, and for each group the logarithm they were divided by, at `LOG_SCALE`.
    """
    factors = [1 + int(uniform_below(mpz(MU_LARGEST))) for _ in logs]
    blinded = [
        bob.public.add_plain(log, -encode(math.log(mu), LOG_SCALE)) for log, mu in zip(logs, factors, strict=True)
    ]
    bob.send(Kind.BLINDED_LOG, blinded)  # step 1
    replies = bob.receive(Kind.EXPONENTIAL, len(logs) + (len(logs) // group if group else 0))
    thetas = [bob.public.scale(reply, mu) for reply, mu in zip(replies, factors, strict=False)]  # step 3
    return thetas, replies[len(logs) :]
