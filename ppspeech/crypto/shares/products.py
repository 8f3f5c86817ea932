"""Products of shared residues: what T-norm needs instead of a root and a division.

The factors' shares are first brought into a ring that holds the product; there, with x = x_0 + x_1 and y = y_0 + y_1,

    x y = x_0 y_0 + x_1 y_1 + x_0 y_1 + y_0 x_1   mod 2^k.

A cross term of the first party's a and the second's b is cut by b's digits of 4 bits: the first offers, for each
digit, a table of a d 2^(4 i) for d = 0..15; the sum of what is looked up is a b. One round.
"""

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.bits import extend
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import look_up

DIGIT = 4


def square(engine: ShareEngine, residues: Residues, ring: Ring, wider: Ring) -> Residues:
    """Shares mod 2^k of the squares of signed residues `(count,)`; `wider` must hold the squares."""
    own = extend(engine, residues, ring, wider)
    return wider.reduce(own * own + np.uint64(2) * cross_product(engine, own, wider))


def scale_by_first(
    engine: ShareEngine, residues: Residues, factors: Residues | None, ring: Ring, wider: Ring
) -> Residues:
    """Shares mod 2^k of signed residues times whole factors of the first party, `(count,)` each.

    Args:
        engine: this party's.
        residues: our shares.
        factors: the first party's, as residues of `wider`; None for the second, which does not know them.
        ring: of the residues.
        wider: must hold the products.
    """
    own = extend(engine, residues, ring, wider)
    if not engine.is_first:
        return cross_product(engine, own, wider)
    assert factors is not None
    return wider.reduce(own * factors + cross_product(engine, factors, wider))


def cross_product(engine: ShareEngine, own: Residues, ring: Ring) -> Residues:
    """Shares of a b mod 2^k, for the first party's residues a and the second's b, `(count,)` each."""
    digits = _digits(ring)
    places = np.uint64(DIGIT) * np.arange(digits, dtype=np.uint64)
    values = np.arange(1 << DIGIT, dtype=np.uint64)
    if engine.is_first:
        tables = ring.reduce(own[:, None, None] * (values << places[:, None])).reshape(-1, 1 << DIGIT)
        asked = np.zeros(len(tables), np.uint64)
    else:
        asked = ((own[:, None] >> places) & np.uint64((1 << DIGIT) - 1)).reshape(-1)
        tables = np.empty((len(asked), 1 << DIGIT), np.uint64)
    found = look_up(engine, asked, tables, ring).reshape(len(own), digits)
    return ring.reduce(found.sum(axis=1, dtype=np.uint64))


def _digits(ring: Ring) -> int:
    return -(-ring.bits // DIGIT)


def multiply(engine: ShareEngine, left: Residues, right: Residues, rings: tuple[Ring, Ring], wider: Ring) -> Residues:
    """Shares mod 2^k of the products of two shared signed residues, `(count,)` each; `wider` must hold them."""
    one, other = (extend(engine, *each, wider) for each in zip((left, right), rings, strict=True))
    count = len(one)
    first = np.concatenate([one, other]) if engine.is_first else np.concatenate([other, one])
    crossed = cross_product(engine, first, wider)
    return wider.reduce(one * other + crossed[:count] + crossed[count:])
