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
from ppspeech.crypto.shares.shared import Shared

DIGIT = 4


def square(residues: Shared, wider: Ring) -> Shared:
    """Squares of signed residues `(count,)`; `wider` must hold them."""
    own = extend(residues, wider).own
    return Shared(residues.engine, own * own + np.uint64(2) * _cross(residues.engine, own, wider, wider.bits), wider)


def multiply(left: Shared, right: Shared, wider: Ring) -> Shared:
    """Products of signed residues, `(count,)` each, of any two rings; `wider` must hold them."""
    engine = left.engine
    one, other = extend(left, wider).own, extend(right, wider).own
    first = np.concatenate([one, other] if engine.is_first else [other, one])
    crossed = _cross(engine, first, wider, wider.bits)
    return Shared(engine, one * other + crossed[: len(one)] + crossed[len(one) :], wider)


def scale_by_first(residues: Shared, factors: Residues | None, wider: Ring) -> Shared:
    """Signed residues times whole factors of the first party, `(count,)` each. `factors`: the first party's, as
    residues of `wider`; None for the second, which does not know them.
    """
    engine, own = residues.engine, extend(residues, wider).own
    if not engine.is_first:
        return Shared(engine, _cross(engine, own, wider, wider.bits), wider)
    assert factors is not None
    return Shared(engine, own * factors + _cross(engine, factors, wider, wider.bits), wider)


def cross_products(engine: ShareEngine, own: Residues, ring: Ring, width: int | None = None) -> Residues:
    """Shares of a b mod 2^k, for the first party's residues a and the second's b, `(count,)` each. `width`: bits of b
    where they are fewer, as signed residues of b lie within ±2^(width - 1): moved up by so much they have few digits,
    and what that adds, the first party takes off.
    """
    if width is None or width >= ring.bits:
        return _cross(engine, own, ring, ring.bits)
    half = np.uint64(1 << (width - 1))
    if engine.is_first:
        return ring.reduce(_cross(engine, own, ring, width) - own * half)
    return _cross(engine, ring.reduce(own + half), ring, width)


def _cross(engine: ShareEngine, own: Residues, ring: Ring, width: int) -> Residues:
    """Of the second party's residues below 2^width."""
    digits = -(-width // DIGIT)
    places = np.uint64(DIGIT) * np.arange(digits, dtype=np.uint64)
    values = np.arange(1 << DIGIT, dtype=np.uint64)
    if engine.is_first:
        tables = ring.reduce(own[:, None, None] * (values << places[:, None])).reshape(-1, 1 << DIGIT)
        asked = np.zeros(len(tables), np.uint64)
    else:
        asked = ((own[:, None] >> places) & np.uint64((1 << DIGIT) - 1)).reshape(-1)
        tables = np.empty((len(asked), 1 << DIGIT), np.uint64)
    total: Residues = look_up(engine, asked, tables, ring).reshape(len(own), digits).sum(axis=1, dtype=np.uint64)
    return total
