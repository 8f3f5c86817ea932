"""Products of shared words: what T-norm needs instead of a root and a division.

The factors' shares are first brought into a ring that holds the product; there, with x = x_0 + x_1 and y = y_0 + y_1,

    x y = x_0 y_0 + x_1 y_1 + x_0 y_1 + y_0 x_1   mod 2^k.

A cross term of the first party's a and the second's b is cut by b's digits of 4 bits: the first offers, for each
digit, a table of a d 2^(4 i) for d = 0..15; the sum of what is looked up is a b. One round.
"""

import numpy as np
from numpy.typing import NDArray

from ppspeech.crypto.engine import ShareEngine
from ppspeech.crypto.fixed_point import Ring
from ppspeech.crypto.look_up import look_up, look_up_cost
from ppspeech.crypto.share_cost import Cost
from ppspeech.crypto.truncate import extend, extend_cost

Words = NDArray[np.uint64]

DIGIT = 4


def square(engine: ShareEngine, words: Words, ring: Ring, wider: Ring) -> Words:
    """Shares mod 2^k of the squares of signed words `(count,)`; `wider` must hold the squares."""
    own = extend(engine, words, ring, wider)
    return wider.reduce(own * own + np.uint64(2) * cross_product(engine, own, wider))


def square_cost(ring: Ring, wider: Ring, count: int) -> Cost:
    """`square` of `count` words."""
    return extend_cost(ring, wider, count) + cross_product_cost(wider, count)


def scale_by_first(engine: ShareEngine, words: Words, factors: Words | None, ring: Ring, wider: Ring) -> Words:
    """Shares mod 2^k of signed words times whole factors of the first party, `(count,)` each.

    Args:
        engine: this party's.
        words: our shares.
        factors: the first party's, as words of `wider`; None for the second, which does not know them.
        ring: of the words.
        wider: must hold the products.
    """
    own = extend(engine, words, ring, wider)
    if not engine.is_first:
        return cross_product(engine, own, wider)
    assert factors is not None
    return wider.reduce(own * factors + cross_product(engine, factors, wider))


def scale_by_first_cost(ring: Ring, wider: Ring, count: int) -> Cost:
    """`scale_by_first` of `count` words."""
    return square_cost(ring, wider, count)


def cross_product(engine: ShareEngine, own: Words, ring: Ring) -> Words:
    """Shares of a b mod 2^k, for the first party's words a and the second's b, `(count,)` each."""
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


def cross_product_cost(ring: Ring, count: int) -> Cost:
    """`cross_product` of `count` pairs."""
    return look_up_cost(DIGIT, ring, count * _digits(ring))


def _digits(ring: Ring) -> int:
    return -(-ring.bits // DIGIT)


def multiply(engine: ShareEngine, left: Words, right: Words, rings: tuple[Ring, Ring], wider: Ring) -> Words:
    """Shares mod 2^k of the products of two shared signed words, `(count,)` each; `wider` must hold them."""
    one, other = (extend(engine, *each, wider) for each in zip((left, right), rings, strict=True))
    count = len(one)
    first = np.concatenate([one, other]) if engine.is_first else np.concatenate([other, one])
    crossed = cross_product(engine, first, wider)
    return wider.reduce(one * other + crossed[:count] + crossed[count:])


def multiply_cost(rings: tuple[Ring, Ring], wider: Ring, count: int) -> Cost:
    """`multiply` of `count` pairs."""
    extended = extend_cost(rings[0], wider, count) + extend_cost(rings[1], wider, count)
    return extended + cross_product_cost(wider, 2 * count)
