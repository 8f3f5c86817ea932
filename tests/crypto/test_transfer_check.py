"""Receivers that do not choose alike in all columns: what they read without the check, and that they fail with it."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from ppspeech.arrays import Bytes
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.crypto.transfer.check import CHECK_ROWS, HASH_BYTES, hash_columns
from ppspeech.crypto.transfer.codes import Batch, CodeReceiver, CodeSender, WalshHadamard
from ppspeech.crypto.transfer.extension import Code, ColumnReceiver, ColumnSender, OtReceiver, OtSender
from ppspeech.crypto.transfer.setup import PairSetup, Side
from ppspeech.errors import CheatError
from ppspeech.network import memory_pair, run_together

from .pairs import lasting_setup

KINDS: dict[str, tuple[type[ColumnSender], type[ColumnReceiver]]] = {
    "1-of-2": (OtSender, OtReceiver),
    "1-of-n": (CodeSender, CodeReceiver),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def extension(name: str) -> tuple[ColumnSender, ColumnReceiver]:
    """Both sides, as after base transfers."""
    gives, takes = KINDS[name]
    columns = gives.code.columns
    secret = uniform_residues(columns, 1).astype(bool)
    keys = np.frombuffer(uniform_bytes(32 * columns), np.uint8).reshape(columns, 2, 16)
    hasher = BlockHash(uniform_bytes(16))
    return gives(secret, keys[np.arange(columns), secret.astype(int)], hasher, b""), takes(keys, hasher, b"")


def flipping(code: type[Code], flips: Callable[[Bytes], Bytes]) -> type[Code]:
    """A receiver's code that says something else in some columns than what was chosen."""

    class Flipping(code):
        @classmethod
        def encode(cls, parts: Bytes) -> Bytes:
            columns = code.encode(parts).copy()
            return columns ^ flips(np.zeros_like(columns))

    return Flipping


def one_a_row(columns: Bytes) -> Bytes:
    """Row j differs in column j: transfer j asks for bit j of s."""
    for row in range(len(columns)):
        columns[row, row // 8] = 1 << (row % 8)
    return columns


def in_columns(*places: int) -> Callable[[Bytes], Bytes]:
    """Only these columns differ, in row 0."""

    def flips(columns: Bytes) -> Bytes:
        columns[list(places), 0] = 1
        return columns

    return flips


def bits_of(rows: np.ndarray) -> np.ndarray:
    return np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), bitorder="little")


def read_secret(sender: ColumnSender, receiver: ColumnReceiver) -> np.ndarray:
    """The attack: every row is t_j, or differs from it by s_j in place j; one message that the receiver knows a
    transfer tells which, since it can hash both. Returns s as read."""
    receiver.code = flipping(receiver.code, one_a_row)
    count = receiver.code.columns
    zeros = np.zeros(count, np.uint8)
    units = np.zeros((count, count // 64), np.uint64)
    units[np.arange(count), np.arange(count) // 64] = np.uint64(1) << (np.arange(count) % 64).astype(np.uint64)
    held = {}

    def hashed(rows: np.ndarray) -> np.ndarray:
        if isinstance(receiver, OtReceiver):
            return receiver.hasher.hash_blocks(rows, 0)[:, 0]
        pads = np.empty((count, 1), np.uint64)
        receiver.hasher.hash_wide(rows, np.zeros((1, 4), np.uint64), 0, pads, 64)
        return pads[:, 0]

    def cheat(channel: object) -> None:
        held["rows"] = receiver.rows(channel, zeros)

    def offer(channel: object) -> np.ndarray:
        if isinstance(sender, OtSender):
            return sender.random(channel, count)[0]
        return sender.random(channel, [Batch(1, 64, count)])[0][:, 0]

    seen, _ = run_together(offer, cheat)
    assert ((seen == hashed(held["rows"])) ^ (seen == hashed(held["rows"] ^ units))).all()
    return seen == hashed(held["rows"] ^ units)


@every_kind
def test_one_flipped_bit_a_row_reads_the_whole_secret_where_nobody_checks(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ColumnSender, "_check", lambda *_: None)
    sender, receiver = extension(name)
    assert (read_secret(sender, receiver) == bits_of(sender.delta)).all()


@every_kind
def test_one_flipped_bit_a_row_is_refused(name: str) -> None:
    with pytest.raises(CheatError, match="does not follow the protocol"):
        read_secret(*extension(name))


@every_kind
def test_a_flip_in_one_column_is_one_guess_of_one_bit(name: str) -> None:
    """It passes where that bit of s is 0, which it thereby learns, and ends the session where it is 1."""
    passed = []
    for column in (1, 2, 77, 127) * 4:
        sender, receiver = extension(name)
        receiver.code = flipping(receiver.code, in_columns(column))
        try:
            run_together(lambda c, s=sender: s.rows(c, 8), lambda c, r=receiver: r.rows(c, np.zeros(8, np.uint8)))
        except CheatError:
            passed.append(False)
        else:
            passed.append(True)
        assert passed[-1] == (bits_of(sender.delta)[column] == 0)


@every_kind
def test_many_columns_are_never_guessed(name: str) -> None:
    for _ in range(5):
        sender, receiver = extension(name)
        receiver.code = flipping(receiver.code, in_columns(*range(1, 81)))
        with pytest.raises(CheatError):
            run_together(lambda c, s=sender: s.rows(c, 8), lambda c, r=receiver: r.rows(c, np.zeros(8, np.uint8)))


@every_kind
def test_whatever_else_is_changed_in_a_message_is_noticed(name: str) -> None:
    """A bit of the hashes shown, of their digest, or of a column (unless s hides it: tried in all columns at once)."""
    size = KINDS[name][0].code.message_bytes(8)
    columns = KINDS[name][0].code.columns * (128 + CHECK_ROWS) // 8
    for place in (columns, columns + HASH_BYTES - 1, size - 32, size - 1):
        sender, receiver = extension(name)
        here, there = memory_pair()
        receiver.rows(there, np.zeros(8, np.uint8))
        message = bytearray(here.receive(receiver.code.kind, size))
        message[place] ^= 1
        there.send(receiver.code.kind, bytes(message))
        with pytest.raises(CheatError):
            sender.rows(here, 8)


@pytest.mark.parametrize("cheat", list(Side))
def test_both_parties_are_checked_and_a_cheat_spends_the_setup(cheat: Side) -> None:
    setup = lasting_setup()
    receiver = setup[cheat].receiver
    receiver.code = flipping(Code, one_a_row)

    def party(half: PairSetup, channel: object) -> None:
        with half.session(channel):
            if half.party is cheat:
                half.receiver.random(channel, np.zeros(128, bool))
                channel.receive(1, 1)
            half.sender.random(channel, 128)

    with pytest.raises(CheatError):
        run_together(lambda c: party(setup[0], c), lambda c: party(setup[1], c))
    assert not setup[1 - cheat].usable


def test_a_cheat_in_the_setup_itself_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtReceiver, "code", flipping(Code, one_a_row))
    with pytest.raises(CheatError):
        run_together(lambda c: PairSetup.agree(c, Side.FIRST), lambda c: PairSetup.agree(c, Side.SECOND))


def test_hashes_are_linear_and_differ_from_challenge_to_challenge() -> None:
    columns = np.frombuffer(uniform_bytes(20 * 48), np.uint8).reshape(20, 48)
    one, other = uniform_bytes(32), uniform_bytes(32)
    assert (
        hash_columns(one, columns[:10] ^ columns[10:])
        == hash_columns(one, columns)[:10] ^ hash_columns(one, columns)[10:]
    ).all()
    assert not hash_columns(one, np.zeros((1, 48), np.uint8)).any()
    assert (hash_columns(one, columns) != hash_columns(other, columns)).any(axis=1).all()
    parts = np.frombuffer(uniform_bytes(8 * 16), np.uint8).reshape(8, 16)
    assert (
        WalshHadamard.encode(parts) ^ WalshHadamard.encode(parts ^ parts[:1])
        == WalshHadamard.encode(np.repeat(parts[:1], 8, axis=0))
    ).all()


@every_kind
def test_a_challenge_depends_on_every_column_and_on_all_that_was_said_before(name: str) -> None:
    """Who knew it in advance could send columns that collide under it."""
    _, receiver = extension(name)
    here, there = memory_pair()
    seen = {receiver.said}
    for _ in range(3):
        receiver.rows(there, np.zeros(1, np.uint8))
        message = here.receive(receiver.code.kind, receiver.code.message_bytes(1))
        seen.add(receiver.said)
    assert len(seen) == 4
    sizes = receiver.code.columns * 32
    for place in (0, sizes // 2, sizes - 1):
        copies = [extension(name)[0] for _ in range(2)]
        for copy, flip in zip(copies, (0, 1), strict=True):
            changed = bytearray(message)
            changed[place] ^= flip
            there.send(receiver.code.kind, bytes(changed))
            with pytest.raises(CheatError):
                copy.rows(here, 1)
        assert copies[0].said != copies[1].said


@every_kind
@pytest.mark.parametrize("choice", [0, 255])
def test_what_the_check_shows_of_the_choices_is_uniform(name: str, choice: int) -> None:
    """Chi-square at 1e-6 of the hashes of 64 messages with the same choices: 128 unused rows blind them."""
    _, receiver = extension(name)
    here, there = memory_pair()
    shown = []
    for _ in range(64):
        receiver.rows(there, np.full(128, choice & ((1 << receiver.code.bits) - 1), np.uint8))
        message = here.receive(receiver.code.kind, receiver.code.message_bytes(128))
        shown.append(message[-HASH_BYTES * receiver.code.bits - 32 : -32])
    values = np.frombuffer(b"".join(shown), np.uint8)
    for half in (values & 15, values >> 4):
        assert stats.chisquare(np.bincount(half, minlength=16)).pvalue > 1e-6


def test_what_the_check_costs() -> None:
    """A portion of 2^16 transfers: 128 rows more, and hashes; less than one in four hundred bytes."""
    for code in (Code, WalshHadamard):
        bare = code.columns * 2**16 // 8
        assert bare < code.message_bytes(2**16) < bare * 1.0025
    assert WalshHadamard.total_bytes(3 * 2**16 + 5) == 3 * WalshHadamard.message_bytes(
        2**16
    ) + WalshHadamard.message_bytes(5)
    assert Code.total_bytes(0) == 0


def test_transfers_of_many_portions_agree() -> None:
    sender, receiver = extension("1-of-2")
    choices = uniform_residues(2**16 + 300, 1).astype(bool)
    pairs, got = run_together(lambda c: sender.random(c, len(choices)), lambda c: receiver.random(c, choices))
    assert (np.where(choices, pairs[1], pairs[0]) == got).all()
    assert sender.said == receiver.said


def test_kinds_tell_setups_from_batches() -> None:
    assert Kind.BASE_COLUMNS not in {Code.kind, WalshHadamard.kind}
