"""Blind and permute: the same words in an order that neither party chose alone."""

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.paillier.scheme import PaillierSecretKey, generate_paillier
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares.blind_permute import blind_permute, blind_permute_bytes
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import BadCiphertextError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together


@pytest.fixture(scope="module")
def keys() -> tuple[PaillierSecretKey, PaillierSecretKey]:
    return generate_paillier(256, insecure_demo=True), generate_paillier(256, insecure_demo=True)


def run(
    keys: tuple[PaillierSecretKey, PaillierSecretKey], words: np.ndarray, ring: Ring
) -> tuple[np.ndarray, np.ndarray, Transcript]:
    shares = ring.share(words)
    here, there = memory_pair()
    record = Transcript(there)
    first, second = run_together(
        lambda c: blind_permute(c, Side.FIRST, keys[0], keys[1].public, shares[0], ring),
        lambda c: blind_permute(record, Side.SECOND, keys[1], keys[0].public, shares[1], ring),
        (here, there),
    )
    return first, second, record


@pytest.mark.parametrize("bits", [8, 21, 64])
def test_the_same_words_in_another_order(keys: tuple[PaillierSecretKey, PaillierSecretKey], bits: int) -> None:
    ring = Ring(bits)
    words = np.concatenate([uniform_residues(38, bits), np.array([0, (1 << bits) - 1], np.uint64)])
    first, second, record = run(keys, words, ring)
    result = ring.join(first, second)
    assert sorted(result.tolist()) == sorted(words.tolist())
    assert (result != words).any()
    assert record.bytes_up == record.bytes_down == blind_permute_bytes(keys[0].public, keys[1].public, 40)


def test_every_place_and_every_share_is_equally_likely(keys: tuple[PaillierSecretKey, PaillierSecretKey]) -> None:
    """Chi-square at 1e-6: where the first of five words ends, and the low bits of both shares."""
    ring, places, low = Ring(8), np.zeros(5, int), np.zeros((2, 16), int)
    words = np.array([9, 1, 2, 3, 4], np.uint64)
    for _ in range(120):
        first, second, _ = run(keys, words, ring)
        places[int(np.flatnonzero(ring.join(first, second) == 9)[0])] += 1
        for which, share in enumerate((first, second)):
            low[which] += np.bincount((share & np.uint64(15)).astype(int), minlength=16)
    for counts in (places, *low):
        assert stats.chisquare(counts).pvalue > 1e-6


def test_keys_too_short_and_ciphertexts_that_are_none(keys: tuple[PaillierSecretKey, PaillierSecretKey]) -> None:
    short = generate_paillier(64, insecure_demo=True)
    with pytest.raises(RangeError, match="need keys"):
        blind_permute(memory_pair()[0], Side.FIRST, short, short.public, np.zeros(1, np.uint64), Ring(32))

    public = keys[0].public
    with pytest.raises(BadCiphertextError):
        run_together(
            lambda c: c.send(Kind.SHARES, public.key_id + bytes(public.ciphertext_bytes)),
            lambda c: blind_permute(c, Side.SECOND, keys[1], public, np.zeros(1, np.uint64), Ring(8)),
        )
