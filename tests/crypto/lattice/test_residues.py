"""Changes of modulus against exact rounding."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.lattice.parameters import LatticeParameters
from ppspeech.crypto.lattice.residues import from_residues, to_residues

RING = LatticeParameters()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, RING.prime - 1), min_size=1, max_size=20))
def test_rounding_to_words_is_exact_rounding(values: list[int]) -> None:
    found = to_residues(np.array(values, dtype=np.uint64), RING).tolist()
    for value, word in zip(values, found, strict=True):
        exact = value * (1 << 32) / RING.prime
        assert min(abs(word - exact), abs(word + (1 << 32) - exact)) <= 0.5 + 1e-6


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=20))
def test_rounding_from_words_is_exact_rounding(words: list[int]) -> None:
    found = from_residues(np.array(words, dtype=np.uint64), RING).tolist()
    expected = [(2 * word * RING.prime + (1 << 32)) // (1 << 33) % RING.prime for word in words]
    assert found == expected
