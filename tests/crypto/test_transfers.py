"""Extended transfers against the definition, bit matrices against numpy, hashes against one block at a time."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.crypto.transfer import aes as instructed
from ppspeech.crypto.transfer.bit_matrix import PORTION, ColumnStreams, portions, transpose_bits
from ppspeech.crypto.transfer.block_hash import CHUNK, BlockHash
from ppspeech.crypto.transfer.codes import Batch, WalshHadamard, _code_words
from ppspeech.crypto.transfer.extension import OtReceiver
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import BadLengthError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together

from .pairs import agree, lasting_setup

FALSE_ALARM = 1e-6


def random_words(*shape: int) -> np.ndarray:
    return uniform_residues(shape)


@pytest.mark.parametrize(("columns", "rows"), [(64, 64), (128, 128), (256, 640), (128, 8192)])
def test_transposition_is_numpys(columns: int, rows: int) -> None:
    matrix = np.frombuffer(uniform_bytes(columns * rows // 8), np.uint8).reshape(columns, -1)
    bits = np.unpackbits(matrix, axis=1, bitorder="little")
    expected = np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little").copy().view(np.uint64)
    assert (transpose_bits(matrix) == expected).all()


def test_columns_go_on_where_they_were_left() -> None:
    keys = np.frombuffer(uniform_bytes(32), np.uint8).reshape(2, 16)
    streams = ColumnStreams(keys)
    together = np.concatenate([streams.read(128), streams.read(256)], axis=1)
    assert (together == ColumnStreams(keys).read(384)).all()
    with pytest.raises(TypeError):
        pickle.dumps(streams)


def test_portions() -> None:
    assert portions(0) == []
    assert portions(PORTION) == [PORTION]
    assert portions(2 * PORTION + 5) == [PORTION, PORTION, 5]


def aes(key: bytes, block: np.ndarray) -> np.ndarray:
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return np.frombuffer(cipher.update(block.tobytes()), np.uint64)


@pytest.mark.parametrize("instructions", [True, False])
def test_hashes_are_their_formulas_one_block_at_a_time(instructions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the processor's instructions, where it has them, and by OpenSSL."""
    monkeypatch.setattr(instructed, "AVAILABLE", instructed.AVAILABLE and instructions)
    key = uniform_bytes(16)
    hasher = BlockHash(key)
    blocks, rows, offsets = random_words(CHUNK + 3, 2), random_words(300, 4), random_words(32, 4)
    hashed = hasher.hash_blocks(blocks, 1000)
    wide = np.empty((300, 32), np.uint64)
    hasher.hash_wide(rows, offsets, 7, wide, 64)
    narrow = np.empty((300, 32), np.uint8)
    hasher.hash_wide(rows, offsets, 7, narrow, 2)
    assert (narrow == wide & np.uint64(3)).all()
    for j in (0, 5, CHUNK - 1, CHUNK, CHUNK + 2):
        inner = aes(key, blocks[j])
        assert (hashed[j] == aes(key, inner ^ np.array([1000 + j, 0], np.uint64)) ^ inner).all()
    for j, w in ((0, 0), (17, 31), (299, 4)):
        x = rows[j] ^ offsets[w]
        tweak = np.array([7 + j, 0], np.uint64)
        u = aes(key, x[:2]) ^ x[2:]
        assert wide[j, w] == (aes(key, u ^ tweak) ^ u)[0]


HASHES = """
import numpy as np
from ppspeech.crypto.transfer import aes
from ppspeech.crypto.transfer.block_hash import BlockHash

assert (aes.AVAILABLE, aes.BLOCKS) == {expected}, (aes.AVAILABLE, aes.BLOCKS)
chance = np.random.default_rng(0)
hasher = BlockHash(bytes(range(16)))
blocks, rows, offsets = (chance.integers(0, 2**64, size, np.uint64) for size in ((99, 2), (99, 4), (256, 4)))
found = [hasher.hash_blocks(blocks, 2**40).tobytes()]
for count in (1, 2, 3, 4, 8, 16, 64, 256):
    for width, kind in ((1, np.uint8), (8, np.uint8), (27, np.uint64), (64, np.uint64)):
        result = np.empty((len(rows), count), kind)
        hasher.hash_wide(rows, offsets[:count], 2**40, result, width)
        found.append(result.tobytes())
import hashlib
print(hashlib.sha256(b"".join(found)).hexdigest())
"""


@pytest.mark.skipif(not instructed.AVAILABLE, reason="this processor has no instructions for AES")
def test_every_processor_hashes_alike() -> None:
    """One block a register, four, and without instructions."""
    found = set()
    kinds = {"westmere": "+aes,+sse4.2", "nehalem": "+sse4.2", "": ""}
    for name, features in kinds.items():
        expected = (bool("+aes" in features), 1) if name else (instructed.AVAILABLE, instructed.BLOCKS)
        pretended = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features} if name else {}
        ran = subprocess.run(
            [sys.executable, "-c", HASHES.format(expected=expected)],
            env=os.environ | pretended,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        found.add(ran.stdout)
    assert len(found) == 1


def test_round_keys_are_those_of_the_standard() -> None:
    """FIPS 197, appendix A.1."""
    keys = instructed.expand_key(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")).tobytes()
    assert keys[-16:].hex() == "d014f9a8c9ee2589e13f0cc8b6630ca6"


def test_the_tweak_of_wide_hashes_does_not_cancel_against_the_input() -> None:
    """H(x ⊕ d, x' ⊕ d, i ⊕ d) was H(x, x', i), where the tweak met the input before the permutation."""
    hasher, shift = BlockHash(uniform_bytes(16)), 6
    rows = random_words(1, 4)
    moved = rows ^ np.array([shift, 0, shift, 0], np.uint64)
    results = [np.empty((1, 1), np.uint64) for _ in range(2)]
    for each, tweak, result in ((rows, 9, results[0]), (moved, 9 ^ shift, results[1])):
        hasher.hash_wide(each, np.zeros((1, 4), np.uint64), tweak, result, 64)
    assert results[0] != results[1]


def test_code_words_differ_in_128_places_and_columns_are_theirs() -> None:
    words = _code_words()
    distances = np.bitwise_count(words[:, None] ^ words[None, :]).sum(axis=2)
    assert (distances[~np.eye(256, dtype=bool)] == 128).all()
    choices = np.frombuffer(uniform_bytes(200), np.uint8)
    bits = np.stack([np.packbits((choices >> bit) & 1, bitorder="little") for bit in range(8)])
    rows = transpose_bits(np.pad(WalshHadamard.encode(bits), ((0, 0), (0, 7))))
    assert (rows[:200] == words[choices]).all()
    parity = np.bitwise_count(np.arange(256)[:, None] & np.arange(256)) & 1
    assert (np.unpackbits(words.view(np.uint8), axis=1, bitorder="little") == parity).all()


@pytest.mark.parametrize("sender", list(Side))
@pytest.mark.parametrize("count", [1, 127, 128, 1000])
def test_correlated_and_random_transfers(sender: Side, count: int) -> None:
    setup = lasting_setup()
    gives, takes = setup[sender].sender, setup[1 - sender].receiver
    choices = uniform_residues(count, 1).astype(bool)
    at = np.arange(count)

    q, t = run_together(lambda c: gives.rows(c, count), lambda c: takes.rows(c, choices.view(np.uint8)))
    assert (t == q ^ np.where(choices[:, None], gives.delta, np.uint64(0))).all()

    pairs, got = run_together(lambda c: gives.random(c, count), lambda c: takes.random(c, choices))
    assert (np.stack(pairs)[choices.astype(int), at] == got).all()
    assert not (np.stack(pairs)[1 - choices.astype(int), at] == got).any()


def test_one_of_n_transfers_give_the_chosen_pad_only() -> None:
    first, second = lasting_setup()
    batches = [Batch(1, 64, 60), Batch(5, 2, 500), Batch(8, 8, 70), Batch(6, 22, 90), Batch(7, 1, 0)]
    pads, opened = run_together(lambda c: first.code.random(c, batches), lambda c: second.code.random(c, batches))
    for batch, all_pads, (choices, own) in zip(batches, pads, opened, strict=True):
        assert all_pads.shape == (batch.count, 1 << batch.bits)
        assert (all_pads[np.arange(batch.count), choices] == own).all()
        assert all(int(each.max(initial=0)) < 1 << batch.width for each in (all_pads, own))
        assert int(choices.max(initial=0)) < 1 << batch.bits
    counts = np.bincount(opened[1][0], minlength=32)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    other = pads[2][np.arange(70), opened[2][0] ^ 1]
    assert (other == opened[2][1]).sum() < 10


def test_what_the_receiver_sends_is_uniform_whatever_it_chooses() -> None:
    """Chi-square of the columns' bytes at 1e-6, with all choices 0 and all choices 1."""
    for value in (False, True):
        here, there = memory_pair()
        record = Transcript(there, keep_payloads=True)
        setup = lasting_setup()
        choices = np.full(8192, value)
        run_together(
            lambda c, s=setup: s[0].sender.rows(c, 8192),
            lambda c, s=setup, r=record, w=choices: s[1].receiver.random(r, w),
            (here, there),
        )
        sent = np.frombuffer(record.entries[0].payload or b"", np.uint8)
        assert stats.chisquare(np.bincount(sent, minlength=256)).pvalue > FALSE_ALARM


def test_choices_show_where_a_column_is_sent_twice() -> None:
    """The mutant: a receiver whose key streams start over lets the sender read off its choices."""
    keys = np.frombuffer(uniform_bytes(4096), np.uint8).reshape(128, 2, 16)
    sent = []
    for choices in (np.zeros(128, bool), uniform_residues(128, 1).astype(bool)):
        here, there = memory_pair()
        OtReceiver(keys, BlockHash(bytes(16)), b"").random(here, choices)
        message = there.receive(Kind.COLUMNS, OtReceiver.code.message_bytes(128))
        sent.append(np.frombuffer(message, np.uint8, 128 * 32).reshape(128, 32))
    assert (np.unpackbits(sent[0][0] ^ sent[1][0], bitorder="little")[:128] == choices).all()


def test_wrong_lengths_end_the_session() -> None:
    setup = agree()
    with pytest.raises(BadLengthError):
        run_together(
            lambda c: setup[0].sender.rows(c, 128),
            lambda c: c.send(Kind.COLUMNS, bytes(OtReceiver.code.message_bytes(128) - 1)),
        )
    with pytest.raises(BadLengthError):
        run_together(
            lambda c: setup[0].code.random(c, [Batch(5, 2, 128)]),
            lambda c: c.send(Kind.CODE_COLUMNS, bytes(WalshHadamard.message_bytes(128) - 1)),
        )


@pytest.mark.parametrize("shape", [(0, 1, 1), (9, 1, 1), (5, 0, 1), (5, 65, 1), (5, 1, -1)])
def test_impossible_batches_are_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(RangeError):
        Batch(*shape)


def test_secrets_are_neither_shown_nor_copied() -> None:
    for half in lasting_setup():
        for secret in (half, half.sender, half.receiver, half.code):
            assert "uint8" not in repr(secret)
            assert "array" not in repr(secret)
            for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError):
                    attempt(secret)


def test_secrets_are_of_full_length_and_never_the_same() -> None:
    """Of every sender's secret half of the bits are set, give or take 6 standard deviations."""
    setups = [*(agree() for _ in range(3)), lasting_setup()]
    for secrets in (
        [first.sender.delta for first, _ in setups],
        [second.sender.delta for _, second in setups],
        [first.code.delta for first, _ in setups],
    ):
        bits = np.unpackbits(np.stack(secrets).view(np.uint8), axis=1)
        columns = bits.shape[1]
        assert (np.abs(bits.sum(axis=1) - columns / 2) < 3 * columns**0.5).all()
        assert len({secret.tobytes() for secret in secrets}) == len(setups)
