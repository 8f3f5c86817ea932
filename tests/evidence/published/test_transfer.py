"""1-of-n transfer of entries of several words."""

import numpy as np
import pytest
from scipy import stats

from ppspeech.errors import RangeError
from ppspeech.evidence.published.protocols.transfer import choose_entries, offer_entries
from ppspeech.network import memory_pair
from ppspeech.protocols.message_kinds import Kind

from .views import ALARM, run_recorded


@pytest.mark.parametrize(("count", "entries", "words"), [(1, 2, 4), (7, 5, 1), (3, 256, 2), (40, 13, 3)])
def test_the_chosen_entries_come_and_the_others_stay_hidden(count: int, entries: int, words: int) -> None:
    rng = np.random.default_rng(count)
    tables = rng.integers(0, 2**64, (count, entries, words), dtype=np.uint64)
    choices = rng.integers(0, entries, count)
    chosen, _, record = run_recorded(
        lambda c: choose_entries(c, choices, entries, words), lambda c: offer_entries(c, tables)
    )
    assert (chosen == tables[np.arange(count), choices]).all()
    (offer,) = [entry.payload for entry in record.entries if entry.kind == Kind.OFFER]
    assert not any(word.tobytes() in offer for word in tables.ravel())


def test_messages_look_alike_whatever_is_chosen_and_offered() -> None:
    """Chi-square on the bytes of all choices and all offers of constant tables, at 1e-4 each."""
    shapes = []
    for choice in (0, 3):
        tables = np.full((400, 4, 1), choice, np.uint64)
        *_, record = run_recorded(
            lambda c, i=choice: choose_entries(c, np.full(400, i), 4, 1), lambda c, t=tables: offer_entries(c, t)
        )
        shapes.append(record.shape())
        said = {entry.kind: np.frombuffer(entry.payload or b"", np.uint8) for entry in record.entries}
        assert stats.chisquare(np.bincount(said[Kind.CHOICE], minlength=4)).pvalue > ALARM
        assert stats.chisquare(np.bincount(said[Kind.OFFER], minlength=256)).pvalue > ALARM
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(("choices", "entries"), [([5], 5), ([-1], 5), ([0], 1), ([0], 257)])
def test_choices_that_are_none_are_refused_before_anything_is_sent(choices: list[int], entries: int) -> None:
    here, there = memory_pair()
    with pytest.raises(RangeError):
        choose_entries(here, np.array(choices), entries, 1)
    here.close()
    with pytest.raises(Exception, match="the peer is gone"):
        there.receive(1, 1)


@pytest.mark.parametrize("entries", [1, 257])
def test_tables_too_short_or_long_are_refused(entries: int) -> None:
    with pytest.raises(RangeError, match="2 to 256"):
        offer_entries(memory_pair()[0], np.zeros((1, entries, 1), np.uint64))
