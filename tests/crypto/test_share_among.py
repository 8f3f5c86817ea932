"""Sums of many parties: right, as shares of the parties named, and uniform in between."""

from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import share_among
from ppspeech.errors import ProtocolError, RangeError
from ppspeech.network import Transcript, run_in_threads

ALARM = 1e-6


@pytest.mark.parametrize("parties", [3, 5])
@pytest.mark.parametrize("bits", [8, 40, 64])
def test_the_named_share_the_sum_and_nobody_else(parties: int, bits: int) -> None:
    ring = Ring(bits)
    terms = uniform_residues((parties, 20), bits)

    def party(number: int, channels: Mapping[int, Channel]) -> list[np.ndarray | None]:
        return [share_among(channels, number, terms[number], ring, who) for who in (range(parties), {0, 2})]

    results = run_in_threads([lambda c, n=number: party(n, c) for number in range(parties)])
    expected = ring.reduce(terms.sum(axis=0, dtype=np.uint64))
    assert (ring.reduce(np.sum([to_all for to_all, _ in results], axis=0, dtype=np.uint64)) == expected).all()
    assert [to_two is not None for _, to_two in results] == [number in {0, 2} for number in range(parties)]
    assert (ring.join(results[0][1], results[2][1]) == expected).all()


def test_what_is_sent_is_uniform_and_fresh_in_every_sum() -> None:
    """Chi-square at 1e-6 on the messages of a party whose term is always zero; without masks they would be zero."""
    seen: list[np.ndarray] = []

    def party(number: int, channels: Mapping[int, Channel]) -> None:
        records = {other: Transcript(channel, keep_payloads=True) for other, channel in channels.items()}
        for _ in range(2):
            share_among(records, number, np.zeros(2048, np.uint64), Ring(64), {0, 2})
        if number in {0, 2}:
            received = [entry for entry in records[1].entries if entry.direction == "received"]
            seen.extend(np.frombuffer(entry.payload or b"", np.uint8) for entry in received)

    run_in_threads([lambda c, n=number: party(n, c) for number in range(3)])
    assert len(seen) == 4
    for message in seen:
        assert stats.chisquare(np.bincount(message, minlength=256)).pvalue > ALARM
    for at, message in enumerate(seen[:2]):
        assert stats.chisquare(np.bincount(message ^ seen[1 - at], minlength=256)).pvalue > ALARM


def test_a_missing_party_ends_the_sum() -> None:
    def party(number: int, channels: Mapping[int, Channel]) -> np.ndarray | None:
        return None if number == 2 else share_among(channels, number, np.ones(3, np.uint64), Ring(8), {0, 1})

    with pytest.raises(ProtocolError):
        run_in_threads([lambda c, n=number: party(n, c) for number in range(3)])


def test_a_term_of_another_length_is_refused() -> None:
    def party(number: int, channels: Mapping[int, Channel]) -> np.ndarray | None:
        return share_among(channels, number, np.ones(3 + number, np.uint64), Ring(8), {0, 1})

    with pytest.raises(ProtocolError):
        run_in_threads([lambda c, n=number: party(n, c) for number in range(3)])


def test_what_would_give_terms_away_is_refused() -> None:
    def party(number: int, channels: Mapping[int, Channel]) -> None:
        for receivers, words in ((set(), "receivers"), ({7}, "receivers"), ({0}, "two receivers")):
            with pytest.raises(RangeError, match=words):
                share_among(channels, number, np.ones(1, np.uint64), Ring(8), receivers)

    run_in_threads([lambda c, n=number: party(n, c) for number in range(3)])
