"""Tables and shared windows against plain exponentiation, and work on several cores against one."""

import math
import os
from collections.abc import Sequence
from itertools import pairwise

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from ppspeech.crypto.paillier import RecodedWeights
from ppspeech.crypto.paillier.cores import map_numbers
from ppspeech.crypto.paillier.fixed_base import FixedBase
from ppspeech.crypto.paillier.powers import signed_windows
from ppspeech.crypto.paillier.randomizers import RandomizerPool
from ppspeech.errors import NotInGroupError, PpspeechError, RangeError

MODULUS = gmpy2.next_prime(1 << 96) * gmpy2.next_prime(1 << 90)
BASE = mpz(3) ** 200
TABLES = {length: FixedBase(BASE, MODULUS, length) for length in (1, 2, 5, 6)}


@pytest.mark.parametrize("length", TABLES)
@given(data=st.data())
def test_tables_give_powers(length: int, data: st.DataObject) -> None:
    exponents = data.draw(st.lists(st.binary(min_size=length, max_size=length), min_size=1, max_size=5))
    columns = [bytes(column) for column in zip(*exponents, strict=True)]
    expected = [gmpy2.powmod(BASE, int.from_bytes(exponent, "little"), MODULUS**2) for exponent in exponents]
    assert TABLES[length].powers(columns) == expected


@pytest.mark.parametrize("byte", [0, 255])
def test_tables_at_their_ends(byte: int) -> None:
    expected = gmpy2.powmod(BASE, int.from_bytes(bytes([byte]) * 6, "little"), MODULUS**2)
    assert TABLES[6].powers([bytes([byte])] * 6) == [expected]


def test_random_powers_are_powers_and_all_different() -> None:
    """Two random bytes give 65,536 powers; 150 draws repeat some, six bytes do not."""
    every = {gmpy2.powmod(BASE, exponent, MODULUS**2) for exponent in range(1 << 16)}
    assert set(TABLES[2].random_powers(150)) <= every
    assert len(set(TABLES[6].random_powers(150))) == 150
    assert TABLES[6].random_powers(0) == []


def test_tables_refuse_what_they_cannot_raise() -> None:
    with pytest.raises(NotInGroupError):
        FixedBase(mpz(15), mpz(21), 1)
    with pytest.raises(ValueError, match="at least one byte"):
        FixedBase(mpz(2), mpz(21), 0)
    with pytest.raises(ValueError, match="have 2 bytes, got 3"):
        TABLES[2].powers([b"a"] * 3)


@given(weights=st.lists(st.integers(-(2**62) + 1, 2**62 - 1), min_size=1, max_size=20), window=st.integers(2, 12))
def test_signed_windows_are_the_weights(weights: list[int], window: int) -> None:
    digits = signed_windows(np.array(weights), window)
    for column, weight in zip(digits.T.tolist(), weights, strict=True):
        assert sum(digit << place for place, digit in enumerate(column)) == weight
        places = [place for place, digit in enumerate(column) if digit]
        assert all(column[place] % 2 and abs(column[place]) < 1 << (window - 1) for place in places)
        assert all(later - earlier >= window for earlier, later in pairwise(places))


@given(
    weights=st.lists(st.lists(st.integers(-(2**20), 2**20), min_size=3, max_size=3), min_size=1, max_size=30),
    bases=st.lists(st.integers(1, 10**30), min_size=3, max_size=3),
)
def test_products_of_powers(weights: list[list[int]], bases: list[int]) -> None:
    modulus = gmpy2.next_prime(10**31)
    slow = [
        math.prod(gmpy2.powmod(b, w, modulus) for b, w in zip(bases, row, strict=True)) % modulus for row in weights
    ]
    assert RecodedWeights.of(np.array(weights)).apply([mpz(b) for b in bases], modulus) == slow


@given(
    weights=st.lists(st.lists(st.integers(-(2**20), 2**20), min_size=2, max_size=2), min_size=1, max_size=30),
    bases=st.lists(st.integers(1, 2**370).filter(lambda b: gmpy2.gcd(b, MODULUS) == 1), min_size=2, max_size=2),
)
def test_products_modulo_a_square_take_the_short_way_to_the_same_number(
    weights: list[list[int]], bases: list[int]
) -> None:
    plan, units = RecodedWeights.of(np.array(weights)), [mpz(b) for b in bases]
    assert plan.apply(units, MODULUS**2, root=MODULUS) == plan.apply(units, MODULUS**2)


@pytest.mark.parametrize("root", [None, MODULUS], ids=["plain", "square"])
@pytest.mark.parametrize("terms", [0, 1, 2, 7])
@pytest.mark.parametrize("rows", [0, 1, 4])
def test_terms_divided_among_cores_multiply_to_the_same(root: mpz | None, terms: int, rows: int) -> None:
    weights = np.arange(rows * terms).reshape(rows, terms) * 321 - 999
    bases = [mpz(2 * i + 3) ** 50 for i in range(terms)]
    slow = [
        math.prod(gmpy2.powmod(b, int(w), MODULUS**2) for b, w in zip(bases, row, strict=True)) % MODULUS**2
        for row in weights
    ]
    for workers in (1, 3):
        assert RecodedWeights.of(weights).apply(bases, MODULUS**2, root=root, workers=workers) == slow


def test_windows_grow_with_the_number_of_rows() -> None:
    def window(rows: int) -> int:
        return RecodedWeights.of(np.full((rows, 1), 32767)).window

    assert window(1) < window(50) < window(5000)


def test_weights_too_large_are_refused() -> None:
    with pytest.raises(RangeError, match="2\\^62"):
        RecodedWeights.of(np.array([[1 << 62]]))
    for weight in (np.iinfo(np.int64).min, np.iinfo(np.int64).max):
        with pytest.raises(RangeError, match="2\\^62"):
            RecodedWeights.of(np.array([[weight]]))


@pytest.mark.parametrize("workers", [1, 2, 3, 50])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_order_is_kept_on_any_number_of_cores(workers: int, count: int) -> None:
    def squares(part: Sequence[int]) -> list[mpz]:
        return [mpz(i) ** 20 for i in part]

    assert map_numbers(squares, range(count), size=20, workers=workers) == squares(range(count))


def test_work_is_really_divided() -> None:
    pids = map_numbers(lambda part: [mpz(os.getpid())] * len(part), range(6), size=8, workers=3)
    assert len(set(pids)) == 3
    assert pids[0] == os.getpid()


def test_a_failing_worker_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    def fail(part: Sequence[int]) -> list[mpz]:
        return [mpz(1 // (3 - i)) for i in part]

    with pytest.raises(PpspeechError, match="without a result"):
        map_numbers(fail, range(4), size=8, workers=2)
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_no_workers_is_refused() -> None:
    with pytest.raises(PpspeechError, match="at least 1"):
        map_numbers(lambda part: [], range(3), size=8, workers=0)


def test_a_forked_process_finds_the_pool_empty() -> None:
    counter = iter(range(1, 1000))
    pool = RandomizerPool(lambda count: [mpz(next(counter)) for _ in range(count)], 8)
    pool.prepare(5)
    first = pool.take(1)
    there = map_numbers(lambda part: [mpz(len(pool)) for _ in part], range(2), size=8, workers=2)
    assert there == [4, 0]
    taken = map_numbers(lambda part: pool.take(len(part)), range(2), size=8, workers=2)
    assert taken == [2, 6], "the child makes its own instead of taking what the parent holds"
    assert first == [1]
    assert repr(pool) == "RandomizerPool(3 ready)"
