"""Fixed point against exact arithmetic, and the ring against Python's integers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ppspeech.crypto import Ring, Scale
from ppspeech.crypto.numbers import exact_product
from ppspeech.errors import RangeError

words64 = st.integers(0, 2**64 - 1)


@given(bits=st.integers(2, 64), fraction=st.integers(0, 60), data=st.data())
def test_encoding_is_exact_rounding(bits: int, fraction: int, data: st.DataObject) -> None:
    scale = Scale(bits, fraction)
    value = data.draw(st.floats(-scale.bound, scale.bound, allow_subnormal=False))
    exact = round(Fraction(value) * 2**fraction)  # ties to even, like ours
    if abs(exact) < 2 ** (bits - 1):
        encoded = scale.encode(np.array([value]))
        assert encoded.tolist() == [exact]
        assert scale.decode(encoded)[0] == pytest.approx(value, abs=0.5 * 2.0**-fraction + abs(value) * 2.0**-52)
    else:
        with pytest.raises(RangeError):
            scale.encode(np.array([value]))


@pytest.mark.parametrize("value", [8.0, -8.0, 7.999, 1e300, -1e300])
def test_beyond_the_bound_is_refused_with_the_value_and_the_bound(value: float) -> None:
    with pytest.raises(RangeError, match=rf"^{value} does not fit 12 bits.*below 8.0".replace("+", r"\+")):
        Scale(12, 8).encode(np.array([[0.0, value]]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(RangeError, match="finite"):
        Scale(12, 8).encode(np.array([0.0, value]))


def test_shapes_are_kept() -> None:
    scale = Scale(20, 4)
    assert scale.encode(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert scale.decode(scale.encode(np.ones((2, 3), np.float32))).tolist() == [[1.0] * 3] * 2


@given(
    left=st.integers(2, 20),
    right=st.integers(2, 20),
    terms=st.integers(1, 900),
)
def test_a_products_scale_holds_the_worst_case(left: int, right: int, terms: int) -> None:
    product = Scale(left, 1).product(Scale(right, 2), terms)
    worst = terms * (2 ** (left - 1) - 1) * (2 ** (right - 1) - 1)
    assert worst < 2 ** (product.bits - 1)
    assert product.fraction == 3


@pytest.mark.parametrize(("bits", "fraction"), [(1, 0), (65, 0), (8, -1), (8, 1001)])
def test_impossible_scales_are_refused(bits: int, fraction: int) -> None:
    with pytest.raises(RangeError):
        Scale(bits, fraction)


def test_products_too_wide_are_refused() -> None:
    with pytest.raises(RangeError, match="coarser"):
        Scale(40, 0).product(Scale(30, 0), 2)
    with pytest.raises(RangeError, match="at least one term"):
        Scale(4, 0).product(Scale(3, 0), 0)


def test_the_integer_twin_has_no_overflow() -> None:
    big = np.full((1, 3), 2**62)
    assert exact_product(big, big.T)[0, 0] == 3 * 2**124


@given(bits=st.integers(1, 64), a=words64, b=words64)
def test_the_ring_wraps_like_integers(bits: int, a: int, b: int) -> None:
    ring, modulus = Ring(bits), 2**bits
    left, right = np.array([a], np.uint64), np.array([b], np.uint64)
    assert ring.reduce(left + right)[0] == (a + b) % modulus
    assert ring.reduce(left * right)[0] == a * b % modulus
    signed = (a % modulus) - modulus if a % modulus >= modulus // 2 else a % modulus
    assert ring.to_signed(ring.reduce(left))[0] == signed
    assert ring.from_signed(np.array([signed]))[0] == a % modulus


@pytest.mark.parametrize("bits", [1, 21, 40, 63, 64])
def test_shares_join_and_each_is_uniform(bits: int) -> None:
    """Chi-square at a false alarm of 1e-6 a share, for a fixed secret."""
    ring = Ring(bits)
    secret = np.full(1 << 14, int(ring.mask) // 3, np.uint64)
    shares = ring.share(secret)
    assert (ring.join(*shares) == secret).all()
    for share in shares:
        assert int(share.max()) <= int(ring.mask)
        top = (share >> np.uint64(max(0, bits - 6))).astype(np.int64)
        assert stats.chisquare(np.bincount(top, minlength=1 << min(bits, 6))).pvalue > 1e-6


@pytest.mark.parametrize("value", [128, -129])
def test_signed_values_beyond_the_ring_are_refused(value: int) -> None:
    with pytest.raises(RangeError, match="between -128 and 127"):
        Ring(8).from_signed(np.array([0, value]))


@pytest.mark.parametrize("bits", [0, 65])
def test_impossible_rings_are_refused(bits: int) -> None:
    with pytest.raises(RangeError):
        Ring(bits)
