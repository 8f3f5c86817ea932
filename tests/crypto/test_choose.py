"""One of many shared words by the second party's index: right everywhere, and alike for every index."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import Shared, check_index, choose
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError

from .pairs import together

RING = Ring(21)


def chosen(rows: int, candidates: int, index: int) -> tuple[np.ndarray, np.ndarray, list[tuple[str, int, int]]]:
    """What was chosen, what should have been, and the shape of the conversation."""
    words = uniform_residues((rows, candidates), RING.bits)
    shares = RING.share(words)
    one, other, _, online = together(
        lambda engine, party: choose(Shared(engine, shares[party], RING), index if party is Side.SECOND else None).own,
    )
    return RING.join(one, other), words[:, index], online.shape()


@pytest.mark.parametrize(
    ("rows", "candidates", "index"),
    [(1, 1, 0), (3, 2, 1), (5, 7, 6), (1, 256, 255), (2, 257, 256), (1, 1000, 517), (1, 70_000, 69_999)],
)
def test_the_word_at_the_index(rows: int, candidates: int, index: int) -> None:
    got, wanted, _ = chosen(rows, candidates, index)
    assert np.array_equal(got, wanted)


def test_every_row_may_have_an_index_of_its_own() -> None:
    words, index = uniform_residues((5, 300), RING.bits), np.array([0, 299, 255, 256, 17])
    shares = RING.share(words)
    one, other, _, _ = together(
        lambda engine, party: choose(Shared(engine, shares[party], RING), index if party is Side.SECOND else None).own,
    )
    assert np.array_equal(RING.join(one, other), words[np.arange(5), index])


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_index_among_any_number(data: st.DataObject) -> None:
    candidates = data.draw(st.integers(1, 600))
    index = data.draw(st.integers(0, candidates - 1))
    got, wanted, _ = chosen(2, candidates, index)
    assert np.array_equal(got, wanted)


def test_the_conversation_is_alike_for_every_index() -> None:
    assert chosen(1, 300, 0)[2] == chosen(1, 300, 299)[2] == chosen(1, 300, 128)[2]


@pytest.mark.parametrize("index", [-1, 5, 1.0, "2", None, True])
def test_what_is_no_index_is_refused(index: object) -> None:
    with pytest.raises(RangeError, match="numbers 0 to 4"):
        check_index(index, 5)  # type: ignore[arg-type]
