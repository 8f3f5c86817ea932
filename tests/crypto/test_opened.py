"""What a party opens: masked entries, blinded bits, and hashes of which no two have the same tweak.

What travels lies under pads and looks uniform even where nothing else hides it; what a party makes of it with its own
pads is what counts. Chi-square tests at 1e-6; all inputs are fixed, so whatever varies is masks.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import unpack_numbers
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import LogAdd, Shared, SharedBits, ShareEngine, argmax, log_add, look_up, maximum, select
from ppspeech.crypto.shares.correlations import Correlations, Products
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.crypto.transfer.codes import Batch
from ppspeech.crypto.transfer.setup import Side
from ppspeech.network import run_together

from .pairs import agree, lasting_setup, together

RING = Ring(21)
RUNS = 3000
FALSE_ALARM = 1e-6

Opened = list[tuple[int, np.ndarray]]


def is_uniform(values: np.ndarray, bits: int) -> bool:
    kept = values.astype(np.uint64) >> np.uint64(max(0, bits - 8))
    return bool(stats.chisquare(np.bincount(kept.astype(int), minlength=1 << min(8, bits))).pvalue > FALSE_ALARM)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """The entries that the second party opens, with their bits, table by table."""
    module = import_module("ppspeech.crypto.shares.look_up")
    seen: Opened = []

    def spied(uncover: Callable[..., None]) -> Callable[..., None]:
        def spy(stream: Any, at: int, bits: int, width: int, index: Any, pads: Any, result: Any) -> None:
            uncover(stream, at, bits, width, index, pads, result)
            if stream.any():  # not the zeros of a recorder
                seen.append((width, result.copy()))

        return spy

    for name in ("_open_bits", "_open_bytes"):
        monkeypatch.setattr(module, name, spied(getattr(module, name)))
    return seen


def shared(engine: ShareEngine, side: Side, value: int, *shape: int) -> Shared:
    """A fixed residue that the first party has, in all runs."""
    own = np.full((RUNS, *shape), value if side is Side.FIRST else 0, np.uint64)
    return Shared(engine, own, RING)


PROGRAMS: dict[str, Callable[[ShareEngine, Side], object]] = {
    "comparison": lambda e, s: shared(e, s, 5).is_negative().own,
    "maximum": lambda e, s: maximum(shared(e, s, 2**20 + 3), shared(e, s, 9)).own,
    "look-up": lambda e, s: look_up(e, shared(e, s, 3).own, np.arange(16, dtype=np.uint64), Ring(6)),
    "look-up of wide residues": lambda e, s: look_up(e, shared(e, s, 3).own, np.arange(16, dtype=np.uint64), RING),
    "log-add": lambda e, s: log_add(e, shared(e, s, 77).own, shared(e, s, 70).own, LogAdd(RING, 6, 3)),
    "argmax": lambda e, s: argmax(shared(e, s, 4, 3)).own,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_entries_that_are_opened_are_uniform(name: str, opened: Opened) -> None:
    together(PROGRAMS[name])
    assert opened
    for width, values in opened:
        assert is_uniform(values, width), width


def test_tables_without_masks_are_noticed(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every comparison would be open to the second party, under pads as uniform as ever."""
    take = Correlations.take_offered

    def bare(self: Correlations, shape: Any, count: int) -> Any:
        tables = take(self, shape, count)
        tables.masks = np.zeros_like(tables.masks)
        return tables

    monkeypatch.setattr(Correlations, "take_offered", bare)
    together(PROGRAMS["comparison"], setup=agree())
    assert not any(is_uniform(values, width) for width, values in opened)


def joint_bits(value: int) -> np.ndarray:
    """d_0 ⊕ d_1 of the products of a maximum: both parties see both, and the compared bit is d ⊕ a_0 ⊕ a_1."""
    _, _, _, online = together(lambda e, s: maximum(shared(e, s, value), shared(e, s, 0)).own)
    words = [unpack_numbers(each.payload or b"", RUNS, 24) for each in online.entries if each.kind == Kind.PRODUCT]
    assert len(words) == 2
    return (words[0] ^ words[1]) >> np.uint32(RING.bits) & np.uint32(1)


@pytest.mark.parametrize("value", [5, 2**20 + 5])
def test_compared_bits_are_blinded_by_both_parties_choices(value: int) -> None:
    assert is_uniform(joint_bits(value), 1)


def test_compared_bits_in_the_clear_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With choices of zero each party's own bit still looks uniform, being a share; the two together are the bit."""
    take = Correlations.take_products

    def bare(self: Correlations, count: int) -> Products:
        products = take(self, count)
        products.bits = np.zeros_like(products.bits)
        return products

    monkeypatch.setattr(Correlations, "take_products", bare)
    for value, negative in ((5, 0), (2**20 + 5, 1)):
        assert (joint_bits(value) == 1 - negative).all()


def test_products_of_known_bits_show_neither_of_them() -> None:
    """Select, where one party knows the bit: what the other sees of it is uniform."""
    for bit in (0, 1):
        _, _, _, online = together(
            lambda e, s, b=bit: (
                select(
                    SharedBits(e, np.full(RUNS, b if s is Side.FIRST else 0, np.uint8)),
                    shared(e, s, 3),
                    shared(e, s, 4),
                ).own
            )
        )
        (received,) = (each.payload or b"" for each in online.entries if each.direction == "received")
        assert is_uniform(unpack_numbers(received, RUNS, 24) >> np.uint32(RING.bits) & np.uint32(1), 1)


def test_no_tweak_is_used_for_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several batches, in both directions and of both kinds: every hash of a setup has its tweaks but once, a
    sender's for both of its rows."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    plain, wide = BlockHash.hash_blocks, BlockHash.hash_wide

    def spied_plain(self: BlockHash, blocks: np.ndarray, first: int) -> np.ndarray:
        ranges.setdefault(id(self), []).append((first, len(blocks)))
        return plain(self, blocks, first)

    def spied_wide(self: BlockHash, rows: np.ndarray, offsets: np.ndarray, first: int, *rest: Any) -> None:
        ranges.setdefault(id(self), []).append((first, len(rows)))
        wide(self, rows, offsets, first, *rest)

    monkeypatch.setattr(BlockHash, "hash_blocks", spied_plain)
    monkeypatch.setattr(BlockHash, "hash_wide", spied_wide)
    first, second = agree()
    for count in (3, 130):
        choices = uniform_residues(count, 1).astype(bool)
        for gives, takes in ((first.sender, second.receiver), (second.sender, first.receiver)):
            run_together(lambda c, g=gives, n=count: g.random(c, n), lambda c, t=takes, w=choices: t.random(c, w))
        batches = [Batch(2, 3, count), Batch(5, 40, 2)]
        run_together(lambda c, b=batches: first.code.random(c, b), lambda c, b=batches: second.code.random(c, b))
    for half in (first, second):
        for side, times in ((half.sender, 2), (half.receiver, 1), (half.code, 1)):
            used = [tweak for start, count in ranges[id(side.hasher)] for tweak in range(start, start + count)]
            assert sorted(used) == sorted([*range(side.done)] * times)
    names = [
        half.hasher.permute(np.zeros((1, 2), np.uint64)).tobytes()
        for half in (first.sender, first.receiver, first.code)
    ]
    assert len(set(names)) == 3  # and each direction has a permutation of its own


def test_hashers_of_two_setups_differ() -> None:
    one, other = lasting_setup()[0], agree()[0]
    zero = np.zeros((1, 2), np.uint64)
    assert (one.code.hasher.permute(zero).copy() != other.code.hasher.permute(zero)).any()
