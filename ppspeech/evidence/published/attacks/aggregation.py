"""What parties of `published.aggregation` find out by following it and keeping notes: the noise.

Without its noise, what is published is the exact mean of the local classifiers, of which nothing was claimed.
"""

import math

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.crypto.paillier import Ciphertext, PaillierPublicKey
from ppspeech.evidence.published.protocols.aggregation import NUMBERS, PartyView, aggregate


def mean_without_noise(view: PartyView, parties: int) -> Reals:
    """What the chosen party knows: the published classifier less its own noise, the exact mean of all `(d,)`."""
    return aggregate(view.shares, parties) - NUMBERS.decode(view.noise)


def find_exponent(public: PaillierPublicKey, base: Ciphertext, power: Ciphertext, bound: int) -> int | None:
    """η with power = base^η and |η| <= bound, or None: about 2 sqrt(2 bound) products.

    Baby steps base^0, base^1, … are kept in a table; giant steps go down from power base^bound = base^(η + bound).
    """
    modulus, width = public.modulus, math.isqrt(2 * bound) + 1
    table: dict[mpz, int] = {}
    value = mpz(1)
    for step in range(width):
        table.setdefault(value, step)
        value = value * base.value % modulus
    giant = gmpy2.invert(value, modulus)
    at = power.value * gmpy2.powmod(base.value, bound, modulus) % modulus
    for stride in range(width + 1):
        if at in table:
            return stride * width + table[at] - bound
        at = at * giant % modulus
    return None


def find_noise(view: PartyView, owner: int, bound: int) -> NDArray[np.int64] | None:
    """η of party `owner` in steps of 2^-20, from what party 0 was sent; None where it is beyond the bound."""
    found = [find_exponent(view.curator, view.indicator[owner], term, bound) for term in view.noise_terms[owner]]
    values = [value for value in found if value is not None]
    return np.array(values, np.int64) if len(values) == len(found) else None
