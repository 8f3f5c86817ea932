"""The published protocol's time, on a clock that says what each part took: the arithmetic of the extrapolation."""

from collections.abc import Callable

import pytest

from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols import slice_timing
from ppspeech.evidence.published.protocols.slice_timing import SAMPLE, Size, published_keyword_seconds


@pytest.fixture
def steady_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part is done, and said to take one second."""

    def timed(work: Callable[[], object]) -> tuple[float, object]:
        return 1.0, work()

    monkeypatch.setattr(slice_timing, "_timed", timed)


@pytest.mark.usefixtures("steady_clock")
def test_each_part_grows_with_what_it_is_made_of() -> None:
    timed = published_keyword_seconds(98, 3, 10, 5, 256, slice_frames=2, slice_words=4)
    crossing = 10 * (97 * 21 + 13) / (4 * (1 * 21 + 13))
    assert timed.measured_s == 4
    assert timed.extrapolated_s == pytest.approx(49 + 49 * 2.5 + crossing + 1)
    assert "2 x 3, 4 words x 5 states run, extrapolated by operations to 98 x 3, 10 words x 5 states" in timed.what
    assert "tables of powers" in timed.what


@pytest.mark.usefixtures("steady_clock")
def test_operations_of_phe_are_counted_one_by_one() -> None:
    """All operations take 1 / 64 s here."""
    frames, dimensions, words, states = 3, 7, 2, 5
    timed = published_keyword_seconds(frames, dimensions, words, states, 256, slice_frames=1, slice_words=2, peer="phe")
    encryptions = frames * 8 * 8
    terms = 2 * encryptions * words * states
    recursion = 0
    for sums in (states, states, 1):  # two steps and the last
        exponentials, logarithms = states, sums
        recursion += 2 * (exponentials + logarithms)  # Bob's re-randomization, Alice's decryption
        recursion += exponentials + logarithms + 1  # Alice's answers
        powers = exponentials + logarithms + states * sums  # by μ, β and a
        additions = 2 * (exponentials + logarithms) + states * sums
        recursion += powers + additions
    assert timed.extrapolated_s == pytest.approx((encryptions + terms + words * recursion) / SAMPLE)
    assert "phe" in timed.what


def test_a_real_clock() -> None:
    timed = published_keyword_seconds(2, 2, 2, 2, 256, slice_frames=2, slice_words=2)
    assert timed.extrapolated_s == pytest.approx(timed.measured_s)
    assert timed.measured_s > 0
    assert "tables" not in timed.what
    theirs = published_keyword_seconds(2, 2, 2, 2, 256, slice_frames=2, slice_words=2, peer="phe")
    assert theirs.extrapolated_s > 0


def test_counts_of_the_seeds_table() -> None:
    size = Size(98, 39, 10, 5)
    assert (size.products, size.crossing) == (98 * 1600, 10 * (97 * 21 + 13))


@pytest.mark.parametrize(("frames", "words"), [(0, 2), (3, 2), (1, 1), (1, 4)])
def test_slices_that_are_none_are_refused(frames: int, words: int) -> None:
    with pytest.raises(RangeError, match="a slice has"):
        published_keyword_seconds(2, 2, 3, 2, 256, slice_frames=frames, slice_words=words)
