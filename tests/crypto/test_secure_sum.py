"""Sums of many parties: right, to the parties named, and uniform in between."""

import pickle
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares.sums import PairKeys, secure_sum, share_among
from ppspeech.errors import ProtocolError, RangeError
from ppspeech.network import Transcript, run_in_threads

ALARM = 1e-6


@pytest.mark.parametrize("parties", [3, 5])
@pytest.mark.parametrize("bits", [8, 40, 64])
def test_the_named_get_the_sum_and_nobody_else(parties: int, bits: int) -> None:
    ring = Ring(bits)
    terms = uniform_residues((parties, 20), bits)

    def party(number: int, channels: Mapping[int, Channel]) -> list[np.ndarray | None]:
        keys = PairKeys(channels, number)
        everyone, two = range(parties), {0, 2}
        return [secure_sum(channels, keys, terms[number], ring, who) for who in (everyone, two)]

    results = run_in_threads([lambda c, n=number: party(n, c) for number in range(parties)])
    expected = ring.reduce(terms.sum(axis=0, dtype=np.uint64))
    for number, (to_all, to_two) in enumerate(results):
        assert (to_all == expected).all()
        assert (to_two is None) == (number not in {0, 2})
        if to_two is not None:
            assert (to_two == expected).all()


def test_what_is_sent_is_uniform_and_fresh_in_every_sum() -> None:
    """Chi-square at 1e-6 on the messages of a party whose term is always zero; without masks they would be zero."""
    ring = Ring(64)
    seen: list[np.ndarray] = []

    def party(number: int, channels: Mapping[int, Channel]) -> None:
        keys = PairKeys(channels, number)
        records = {other: Transcript(channel, keep_payloads=True) for other, channel in channels.items()}
        for _ in range(2):
            secure_sum(records, keys, np.zeros(2048, np.uint64), ring, {0})
        if number == 0:
            seen.extend(np.frombuffer(entry.payload or b"", np.uint8) for entry in records[1].entries)

    run_in_threads([lambda c, n=number: party(n, c) for number in range(3)])
    assert len(seen) == 2
    assert (seen[0] != seen[1]).any()
    for message in seen:
        assert stats.chisquare(np.bincount(message, minlength=256)).pvalue > ALARM
    difference = np.bincount(seen[0] ^ seen[1], minlength=256)
    assert stats.chisquare(difference).pvalue > ALARM


def test_shares_among_two_of_four() -> None:
    ring = Ring(21)
    terms = uniform_residues((4, 50), 21)
    named = {1, 3}
    results = run_in_threads([lambda c, n=n: share_among(c, n, terms[n], ring, named) for n in range(4)])
    assert [result is not None for result in results] == [False, True, False, True]
    assert (ring.join(results[1], results[3]) == ring.reduce(terms.sum(axis=0, dtype=np.uint64))).all()


def test_a_missing_party_ends_the_sum() -> None:
    def party(number: int, channels: Mapping[int, Channel]) -> np.ndarray | None:
        keys = PairKeys(channels, number)
        if number == 2:
            return None
        return secure_sum(channels, keys, np.ones(3, np.uint64), Ring(8), {0})

    with pytest.raises(ProtocolError):
        run_in_threads([lambda c, n=number: party(n, c) for number in range(3)])


def test_a_term_of_another_length_is_refused() -> None:
    def party(number: int, channels: Mapping[int, Channel]) -> np.ndarray | None:
        return secure_sum(channels, PairKeys(channels, number), np.ones(3 + number, np.uint64), Ring(8), {0})

    with pytest.raises(ProtocolError):
        run_in_threads([lambda c, n=number: party(n, c) for number in range(3)])


def test_what_would_give_terms_away_is_refused() -> None:
    with pytest.raises(RangeError, match="three parties"):
        run_in_threads([lambda c, n=number: PairKeys(c, n) for number in range(2)])

    def party(number: int, channels: Mapping[int, Channel]) -> None:
        keys = PairKeys(channels, number)
        assert "AES" not in repr(keys)
        with pytest.raises(TypeError):
            pickle.dumps(keys)
        for receivers in (set(), {7}):
            with pytest.raises(RangeError, match="receivers"):
                secure_sum(channels, keys, np.ones(1, np.uint64), Ring(8), receivers)
        with pytest.raises(RangeError, match="two receivers"):
            share_among(channels, number, np.ones(1, np.uint64), Ring(8), {0})

    run_in_threads([lambda c, n=number: party(n, c) for number in range(3)])


def test_a_key_of_another_length_is_refused() -> None:
    def cheat(channels: Mapping[int, Channel]) -> None:
        for other in (1, 2):
            channels[other].send(Kind.SUM_KEY, bytes(31))

    with pytest.raises(ProtocolError):
        run_in_threads([cheat, lambda c: PairKeys(c, 1), lambda c: PairKeys(c, 2)])
