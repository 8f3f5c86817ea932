"""Packing at its extremes, and shares that hide and add up."""

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ppspeech.crypto import Ring
from ppspeech.crypto.paillier import Packing, generate_paillier
from ppspeech.errors import RangeError

KEY = generate_paillier(512, insecure_demo=True)


def slow_pack(values: np.ndarray, bits: int) -> int:
    return sum(int(value) << (bits * i) for i, value in enumerate(values))


@given(bits=st.sampled_from(range(8, 65, 8)), data=st.data())
def test_packing_is_a_sum_of_shifted_values(bits: int, data: st.DataObject) -> None:
    bound = (1 << (bits - 1)) - 1
    values = np.array(data.draw(st.lists(st.integers(-bound, bound), min_size=1, max_size=9)), dtype=np.int64)
    packing = Packing(bits, values.size)
    packed = packing.pack(values)
    assert packed == slow_pack(values, bits)
    assert packing.unpack(packed).tolist() == values.tolist()


@pytest.mark.parametrize("bits", [8, 40, 64])
@pytest.mark.parametrize("sign", [1, -1])
def test_all_slots_at_their_extreme(bits: int, sign: int) -> None:
    bound = (1 << (bits - 1)) - 1
    packing = Packing(bits, 5)
    for values in (np.full(5, sign * bound), np.array([sign * bound, -sign * bound] * 2 + [0])):
        assert packing.unpack(packing.pack(values)).tolist() == values.tolist()


def test_rows_are_packed_one_by_one() -> None:
    rows = np.arange(-6, 6).reshape(3, 4)
    assert Packing(16, 4).pack_rows(rows) == [Packing(16, 4).pack(row) for row in rows]


def test_linear_operations_act_on_every_slot() -> None:
    """Sums of products that reach the very ends of their slots, under encryption."""
    packing = Packing.fitting(KEY.public.plaintext_modulus, 24)
    top = (1 << 23) - 1
    values = np.array([[top // 8, -(top // 8)] * (packing.slots // 2) + [0] * (packing.slots % 2)])
    weights = np.array([[7], [-7]])
    packing.check_magnitude(7 * (top // 8))
    ciphertexts = KEY.encrypt_many([int(number) for number in packing.pack_rows(values)])
    results = KEY.public.finish_many(KEY.public.scalar_products(ciphertexts, weights))
    for weight, plaintext in zip(weights, KEY.decrypt_many(results), strict=True):
        assert packing.unpack(plaintext).tolist() == (weight * values[0]).tolist()


@given(data=st.data())
def test_masked_slots_are_shares(data: st.DataObject) -> None:
    packing = Packing.fitting(KEY.public.plaintext_modulus, 40)
    bound = (1 << 39) - 1
    extremes = st.sampled_from([-bound, bound, 0, -1, 1]) | st.integers(-bound, bound)
    values = np.array(data.draw(st.lists(extremes, min_size=packing.slots, max_size=packing.slots)), dtype=np.int64)
    mask, ours = packing.draw_mask()
    masked = KEY.public.add_plain(KEY.encrypt(int(packing.pack(values))), int(mask))
    theirs = packing.masked_shares(KEY.decrypt(KEY.public.finish(masked)))
    ring = Ring(40)
    difference = ring.to_signed(ring.reduce(ring.join(ours, theirs) - ring.reduce(values.view(np.uint64))))
    assert set(difference.tolist()) <= {0, 1}
    assert difference[0] == 0, "nothing carries into the lowest slot"


def smallest_p_value(packing: Packing, masked: list[mpz]) -> float:
    """Chi-square over both bytes of every 16-bit slot and the middle byte of the guard."""
    words = np.stack([packing.masked_shares(number) for number in masked])
    columns = [words[:, slot] & np.uint64(255) for slot in range(packing.slots)]
    columns += [words[:, slot] >> np.uint64(8) for slot in range(packing.slots)]
    columns += [np.array([int(number >> (16 * packing.slots + 16)) & 255 for number in masked])]
    counts = [np.bincount(column.astype(np.int64), minlength=256) for column in columns]
    return min(float(stats.chisquare(count).pvalue) for count in counts)


@pytest.mark.parametrize("values", [[32767, -32767, 32767], [0, 0, 0]])
def test_what_the_key_holder_sees_is_uniform(values: list[int]) -> None:
    """For fixed plaintexts, at a false alarm of 1e-6 a column; the test sees a mask that is too narrow or absent."""
    packing = Packing(16, 3)
    packed = packing.pack(np.array(values))
    masks = [packing.draw_mask()[0] for _ in range(4096)]
    assert smallest_p_value(packing, [packed + mask for mask in masks]) > 1e-6
    assert smallest_p_value(packing, [packed + (1 << 48) + mask % (1 << 48) for mask in masks]) < 1e-6
    assert smallest_p_value(packing, [packed + (1 << 48) + (mask >> 16 << 16) for mask in masks]) < 1e-6


def test_the_masks_shares_alone_are_uniform() -> None:
    shares = np.concatenate([Packing(8, 16).draw_mask()[1] for _ in range(1024)])
    assert stats.chisquare(np.bincount(shares.astype(np.int64), minlength=256)).pvalue > 1e-6


def test_masked_sums_never_wrap() -> None:
    packing = Packing.fitting(KEY.public.plaintext_modulus, 40)
    packing.check_fits(KEY.public.plaintext_modulus)
    largest = 2 * ((mpz(1) << (packing.slots * 40)) - 1) + (mpz(1) << (packing.slots * 40 + 40)) - 1
    assert 2 * largest < KEY.public.plaintext_modulus
    assert largest < mpz(1) << (packing.plaintext_bits - 1)


@pytest.mark.parametrize(
    "wrong",
    [
        np.array([128, 0]),
        np.array([0, -128]),
        np.array([1, 2, 3]),
        np.array([1]),
        np.array([0.5, 1.0]),
        np.array([1, 2], np.uint64),
    ],
)
def test_values_that_do_not_fit_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(RangeError):
        Packing(8, 2).pack(wrong)


def test_overflow_is_noticed_on_unpacking() -> None:
    packing = Packing(8, 2)
    for number in (1 << 20, -(1 << 20), 127 * 257 + 1, -128 * 257 - 1):
        with pytest.raises(RangeError, match="overflowed"):
            packing.unpack(number)
    for number in (-1, 1 << packing.plaintext_bits):
        with pytest.raises(RangeError, match="not a masked"):
            packing.masked_shares(number)


@pytest.mark.parametrize(
    ("bits", "slots", "guard"), [(12, 1, 40), (0, 1, 40), (72, 1, 40), (8, 0, 40), (8, 1, 32), (8, 1, 41)]
)
def test_impossible_layouts_are_refused(bits: int, slots: int, guard: int) -> None:
    with pytest.raises(RangeError):
        Packing(bits, slots, guard)


def test_layouts_that_do_not_fit_a_key_are_refused() -> None:
    with pytest.raises(RangeError, match="longer key"):
        Packing.fitting(mpz(1) << 63, 40)
    with pytest.raises(RangeError, match="the key's plaintexts have"):
        Packing(40, 12).check_fits(KEY.public.plaintext_modulus)
    with pytest.raises(RangeError, match="hold less than"):
        Packing(8, 2).check_magnitude(128)
