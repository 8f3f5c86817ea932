"""Products on shares against whole numbers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.products import (
    cross_products,
    multiply,
    scale_by_first,
    square,
)
from ppspeech.crypto.shares.shared import Shared
from ppspeech.crypto.transfer.setup import Side
from tests.crypto.pairs import together

RING, WIDE = Ring(21), Ring(56)
numbers = st.lists(st.integers(-(2**20), 2**20 - 1), min_size=1, max_size=6).map(lambda n: np.array(n, np.int64))


@settings(max_examples=15, deadline=None)
@given(numbers)
def test_squares(values: np.ndarray) -> None:
    shares = RING.share(RING.from_signed(values))
    one, other, *_ = together(lambda engine, party: square(Shared(engine, shares[party], RING), WIDE).residues)
    assert np.array_equal(WIDE.to_signed(WIDE.join(one, other)), values**2)


@settings(max_examples=15, deadline=None)
@given(numbers, st.integers(-(2**11), 2**11 - 1))
def test_factors_of_the_first_party(values: np.ndarray, factor: int) -> None:
    shares = RING.share(RING.from_signed(values))
    factors = WIDE.from_signed(np.full(len(values), factor) + np.arange(len(values)))
    one, other, *_ = together(
        lambda engine, party: (
            scale_by_first(Shared(engine, shares[party], RING), factors if party is Side.FIRST else None, WIDE).residues
        )
    )
    assert np.array_equal(WIDE.to_signed(WIDE.join(one, other)), values * (factor + np.arange(len(values))))


@settings(max_examples=15, deadline=None)
@given(numbers, st.integers(2, 40))
def test_cross_products_with_few_bits(values: np.ndarray, width: int) -> None:
    """The first party's residues of any size, the second's within ±2^(width - 1)."""
    ring, half = Ring(44), 1 << (width - 1)
    few = np.resize(np.array([-half, half - 1, 0, -1, 1]), len(values))
    own = ring.from_signed(values), ring.from_signed(few)
    one, other, *_ = together(lambda engine, party: cross_products(engine, own[party], ring, width))
    assert np.array_equal(ring.join(one, other), ring.reduce(own[0] * own[1]))


@settings(max_examples=15, deadline=None)
@given(numbers)
def test_products_of_shared_words(values: np.ndarray) -> None:
    small = Ring(12)
    factors = np.resize(np.array([-2048, 2047, 0, 1, -1, 777]), len(values))
    left, right = RING.share(RING.from_signed(values)), small.share(small.from_signed(factors))
    run = lambda e, p: multiply(Shared(e, left[p], RING), Shared(e, right[p], small), WIDE).residues  # noqa: E731
    one, other, *_ = together(run)
    assert np.array_equal(WIDE.to_signed(WIDE.join(one, other)), values * factors)
