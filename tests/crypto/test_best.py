"""The best of many, and what it is called."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import (
    TEXT_RING,
    Shared,
    best,
    blank,
    knock_out,
    read_text,
    record,
    sieve,
    tell_best,
    text_residues,
    text_size,
)
from ppspeech.crypto.shares.shared import SharedBits
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import ModelError, RangeError

from .pairs import together

RING = Ring(21)


@pytest.mark.parametrize("candidates", [1, 2, 3, 8, 13])
def test_both_ways_name_the_first_of_the_largest(candidates: int) -> None:
    scores = Ring(3).to_signed(uniform_residues(candidates, 3)) * 100_000
    names = [f"speaker number {number}" for number in range(candidates)]
    given, texts = RING.share(RING.from_signed(scores)), TEXT_RING.share(text_residues(names, 20))
    first, second, _, _ = together(
        lambda e, p: [x.residues for x in knock_out(Shared(e, given[p], RING), Shared(e, texts[p], TEXT_RING))]
    )
    assert RING.to_signed(RING.join(first[0], second[0])) == scores.max()
    assert read_text(TEXT_RING.join(first[1], second[1])) == names[scores.argmax()]
    known, size = (text_residues(names, 20), None), (candidates, 3)
    nothing, told, _, _ = together(lambda e, p: tell_best(Shared(e, given[p][None], RING), known[p], size, TEXT_RING))
    assert nothing is None
    assert read_text(told[0]) == names[scores.argmax()]


def test_every_row_has_a_best_of_its_own() -> None:
    scores = np.array([[3, 1, 2], [-5, -1, -3], [0, 0, 7]])
    given = RING.share(RING.from_signed(scores))
    texts = text_residues(["yes", "no", "größer"], 14), None
    _, told, _, _ = together(lambda e, p: tell_best(Shared(e, given[p], RING), texts[p], (3, 2), TEXT_RING))
    assert [read_text(row) for row in told] == ["yes", "no", "größer"]


def test_where_nobody_wins_nobody_is_told() -> None:
    """Scores so far apart that comparisons wrap: each of three loses once."""
    third = 2**21 // 3
    given = RING.share(np.array([[0, third, 2 * third]], np.uint64))
    texts = text_residues(["a", "b", "c"], 7), None
    _, told, _, _ = together(lambda e, p: tell_best(Shared(e, given[p], RING), texts[p], (3, 1), TEXT_RING))
    assert read_text(told[0]) is None


def products(scores: Shared, texts: np.ndarray | None, shape: tuple[int, int], ring: Ring) -> np.ndarray | None:
    """As it was: what is opened is the sum of all texts whose bit is 1."""
    shared = Shared(scores.engine, np.zeros(shape, np.uint64) if texts is None else texts, ring)
    return (best.argmax(scores)[..., None] * shared).sum(axis=1).open_to(Side.SECOND)


@pytest.mark.parametrize(("tell", "most"), [(products, 32), (tell_best, 6)], ids=["products", "transfer"])
def test_whatever_bits_the_second_party_brings_one_text_is_told(
    tell: Callable[..., np.ndarray | None], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that shifts its shares in the comparisons makes any of them won: with products it reads them all."""
    rows, names = 600, ["one", "two", "three", "four", "five"]
    monkeypatch.setattr(best, "argmax", lambda s: SharedBits(s.engine, uniform_residues(s.shape, 1).astype(np.uint8)))
    given, texts = RING.share(np.zeros((rows, 5), np.uint64)), (text_residues(names, 7), None)
    _, told, _, _ = together(lambda e, p: tell(Shared(e, given[p], RING), texts[p], (5, 1), TEXT_RING))
    assert len({int(row[0]) for row in told}) == most
    assert ({read_text(row) for row in told} <= {*names, None}) is (tell is tell_best)


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=9))
def test_texts_come_back(text: str) -> None:
    length = max(21, len(text.encode()))
    residues = text_residues([text, "b"], length)
    assert residues.shape == (2, text_size(length))
    assert residues.max() <= TEXT_RING.mask
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    assert [read_text(row) for row in residues] == [shown, "b"]


@pytest.mark.parametrize("text", ["", "eight by", "a\0b"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ModelError, match="1 to 7 bytes"):
        text_residues([text], 7)


def test_what_is_no_text_is_shown_as_such_and_nobody_has_none() -> None:
    """An error would tell the party that sent it which text was opened."""
    assert read_text(np.zeros(4, np.uint64)) is None
    assert read_text(np.array([2**56 - 1], np.uint64)) == 7 * "\ufffd"
    assert read_text(text_residues(["a\x1b[2J\u202eb"], 14)[0]) == "a\ufffd[2J\ufffdb"
    assert read_text(text_residues(["\x07"], 7)[0]) == "\ufffd"


def sieved(scores: np.ndarray, bits: int, finalists: int, ring: Ring) -> tuple[int, int]:
    """The score that a sieve leaves, and its place."""
    given = ring.share(ring.from_signed(scores))

    def run(engine, party):  # type: ignore[no-untyped-def]
        left, place = sieve(Shared(engine, given[party], ring), bits, finalists)
        return left.residues, place

    first, second, _, _ = together(run)
    return int(ring.to_signed(ring.join(first[0], second[0]))[0]), int((first[1] ^ second[1])[0])


@pytest.mark.parametrize("candidates", [1, 2, 3, 64, 65, 127, 1000])
def test_a_sieve_keeps_the_largest_of_scores_that_are_steps_apart(candidates: int) -> None:
    ring, bits = Ring(16), 12
    most = 1 << 14
    scores = np.random.default_rng(candidates).permutation(np.arange(candidates)) * 16 - most // 2
    assert sieved(scores, bits, 4, ring) == (scores.max(), scores.argmax())


@pytest.mark.parametrize("seed", range(6))
def test_a_sieve_loses_less_than_a_step_a_coarse_level(seed: int) -> None:
    """Scores are crowded: chance decides often, and the final alone is exact. A step is 2^-8 of the ring."""
    ring, levels, step = Ring(14), 5, 64
    scores = np.random.default_rng(seed).integers(-4000, 4000, size=512)
    score, place = sieved(scores, 8, 16, ring)
    assert score == scores[place]
    assert scores.max() - levels * step < score <= scores.max()


def test_finalists_are_compared_whole() -> None:
    """As many as there are finalists: no chance at all, even a step of the ring apart."""
    scores = np.arange(64)[::-1].copy()
    assert sieved(scores, 4, 64, Ring(12)) == (63, 0)
    left = [sieved(scores, 4, 1, Ring(12))[0] for _ in range(8)]
    assert min(left) < 63  # compared by 4 bits they are all alike


def test_the_extremes_of_the_ring_compare_right() -> None:
    ring, step = Ring(16), 16
    far = (1 << 15) - 2 * step - 1
    for scores in ([0, far], [far, 0], [-far // 2, far - far // 2]):
        assert sieved(np.array(scores), 12, 1, ring)[1] == int(np.argmax(scores))


def test_a_sieve_of_other_bits_is_refused() -> None:
    for bits, finalists in ((1, 64), (22, 64), (12, 0)):
        with pytest.raises(RangeError, match="somebody is left"):
            record(lambda e, b=bits, f=finalists: sieve(Shared(e, blank(4), RING), b, f))  # type: ignore[misc]
