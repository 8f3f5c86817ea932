"""Large secret tables: the entry that both ask for, in shares that say nothing.

Chi-square tests at 1e-6 each, a dozen of them.
"""

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.shares import RowShape, SecretTable, ShareEngine, look_up_secret
from ppspeech.crypto.shares import secret_table as room
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError

from .pairs import together

ALARM = 1e-6
RUNS = 8192


@pytest.mark.parametrize(
    ("bits", "width", "rows"),
    [
        (1, 1, 1),
        (3, 9, 5),
        (5, 14, 1),
        (5, 63, 1),
        (8, 8, 16),
        (9, 4, 16),
        (10, 5, 32),
        (11, 6, 64),
        (11, 7, 64),
        (12, 7, 3),
    ],
)
def test_both_get_shares_of_the_entry_in_one_round(bits: int, width: int, rows: int) -> None:
    rng = np.random.default_rng(bits)
    entries = rng.integers(0, 1 << width, (rows, 1 << bits)).astype(np.uint64)
    own = {Side.FIRST: rng.integers(0, rows, 40), Side.SECOND: rng.integers(0, 1 << bits, 40)}
    table, shape = SecretTable.of(entries, width), RowShape(bits, width)

    def program(engine: ShareEngine, side: Side) -> np.ndarray:
        return look_up_secret(engine, shape, table if side is Side.FIRST else None, own[side])

    first, second, _, online = together(program)
    assert np.array_equal(first ^ second, entries[own[Side.FIRST], own[Side.SECOND]])
    assert online.messages == 2


def seen(row: int, place: int, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both shares, and all fields that the second opens, in many look-ups of one entry of 6 bits among 2^11."""
    shape = RowShape(11, 6)
    entries = np.arange(64 << 11).reshape(64, -1).astype(np.uint64) % 61
    table, opened = SecretTable.of(entries, 6), []
    ask = room.ask_tables

    def watched(*given: object) -> list[np.ndarray]:
        opened.append(ask(*given))  # type: ignore[arg-type]
        return opened[-1]

    def program(engine: ShareEngine, side: Side) -> np.ndarray:
        own = np.full(RUNS, row if side is Side.FIRST else place)
        return look_up_secret(engine, shape, table if side is Side.FIRST else None, own)

    monkeypatch.setattr(room, "ask_tables", watched)
    first, second, _, _ = together(program)
    assert set((first ^ second).tolist()) == {int(entries[row, place])}
    fields = opened[-1][0][:, None] >> (np.uint64(6) * np.arange(8, dtype=np.uint64))
    return first, second, fields & np.uint64(63)


def looks_uniform(values: np.ndarray) -> bool:
    return bool(stats.chisquare(np.bincount(values.astype(np.int64), minlength=64)).pvalue > ALARM)


@pytest.mark.parametrize(("row", "place"), [(0, 0), (63, 2047), (5, 300)])
def test_shares_and_fields_are_uniform_one_by_one_and_together(
    row: int, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, fields = seen(row, place, monkeypatch)
    assert looks_uniform(first)
    assert looks_uniform(second)
    for at in range(8):
        assert looks_uniform(fields[:, at])
        assert looks_uniform(fields[:, at] ^ fields[:, (at + 1) % 8]), "two fields have one mask"
    assert looks_uniform(fields[:, place >> 8] ^ second), "the mask of the mask is missing"


def test_what_cannot_be_is_refused() -> None:
    for bits, width in ((0, 1), (17, 1), (5, 0), (5, 64)):
        with pytest.raises(RangeError, match="secret table"):
            RowShape(bits, width)
    with pytest.raises(RangeError, match="2, 4, 8"):
        SecretTable.of(np.zeros((1, 6), np.uint64), 3)
    small = SecretTable.of(np.zeros((1, 4), np.uint64), 3)

    def program(engine: ShareEngine, side: Side) -> np.ndarray:
        return look_up_secret(engine, RowShape(3, 3), small if side is Side.FIRST else None, np.zeros(2, np.int64))

    with pytest.raises(RangeError, match="was agreed on"):
        together(program)
