"""Transform and multiply-accumulate against schoolbook arithmetic in unbounded integers, and against SEAL's layout."""

import numpy as np
import pytest
import tenseal.sealapi as seal

from ppspeech.crypto.lattice.ntt import _multiply_accumulate, quotients_of, spread, transform_of
from ppspeech.crypto.lattice.parameters import LatticeParameters, seal_context
from ppspeech.crypto.lattice.seal_bytes import secret_residues
from ppspeech.errors import PpspeechError

RING = LatticeParameters()
SMALL_PRIME = LatticeParameters(prime=(1 << 46) - 110591)
TRANSFORM = transform_of(RING)


def residues(seed: int, *shape: int, ring: LatticeParameters = RING) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, ring.prime, shape, dtype=np.uint64)


def negacyclic(left: np.ndarray, right: np.ndarray, prime: int) -> np.ndarray:
    """The product modulo X^n + 1, by the definition, for a `right` of few terms."""
    total = np.zeros(len(left), dtype=object)
    for place in np.flatnonzero(right):
        shifted = np.concatenate((-left[len(left) - place :].astype(object), left[: len(left) - place].astype(object)))
        total += int(right[place]) * shifted
    return total % prime


@pytest.mark.parametrize("ring", [RING, SMALL_PRIME, LatticeParameters(degree=4096)])
def test_products_are_those_of_the_definition(ring: LatticeParameters) -> None:
    transform = transform_of(ring)
    left, right = residues(0, ring.degree, ring=ring), np.zeros(ring.degree, dtype=np.uint64)
    right[[0, 1, 7, ring.degree - 1]] = [5, ring.prime - 1, 1 << 40, ring.prime // 3]
    factor = transform.forward_(right[None].copy())[0]
    product = transform.multiply_(transform.forward_(left[None].copy()), factor, quotients_of(factor, ring.prime))
    assert (transform.inverse_(product)[0] == negacyclic(left, right, ring.prime)).all()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_inverse_undoes_the_transform(workers: int) -> None:
    rows = residues(1, 5, RING.degree)
    rows[0], rows[1] = 0, RING.prime - 1
    assert (TRANSFORM.inverse_(TRANSFORM.forward_(rows.copy(), workers), workers) == rows).all()


def test_the_layout_is_that_of_seal() -> None:
    secret = secret_residues(seal.KeyGenerator(seal_context(RING)).secret_key(), RING)
    ternary = TRANSFORM.inverse_(secret[None].copy())[0]
    assert set(ternary.tolist()) == {0, 1, RING.prime - 1}


@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_multiply_accumulate_is_the_loop(outputs: int) -> None:
    query, weights = residues(2, RING.degree, 2, 7), residues(3, outputs, 7, RING.degree)
    query[0], weights[:, :, 0] = RING.prime - 1, RING.prime - 1
    factors = TRANSFORM.for_accumulation(weights.reshape(-1, RING.degree)).reshape(weights.shape).transpose(2, 0, 1)
    found = TRANSFORM.multiply_accumulate(query, np.ascontiguousarray(factors), workers=2)
    for place in (0, 1, 1000, 2047):
        expected = query[place].astype(object) @ weights[:, :, place].astype(object).T % RING.prime
        assert (expected == found[:, :, place].T).all()


def test_the_longest_sum_is_right() -> None:
    terms = TRANSFORM.most_terms
    query = np.full((1, 2, terms), RING.prime - 1, dtype=np.uint64)
    factors = np.full((1, 1, terms), RING.prime - 1, dtype=np.uint64)  # stands for (q - 1) / 2^64
    results = np.empty((1, 2, 1), dtype=np.uint64)
    _multiply_accumulate(query, factors, results, TRANSFORM.prime, TRANSFORM.prime_inverse, 0, 1)
    assert int(results[0, 0, 0]) == terms * pow(1 << 64, -1, RING.prime) % RING.prime


def test_spread_reports_what_a_thread_raised() -> None:
    def work(first: int, last: int) -> None:
        if first:
            raise PpspeechError("second part")

    with pytest.raises(PpspeechError, match="second part"):
        spread(work, 10, workers=2)
