"""A garbled automaton: says what the automaton says, in shares, and opens one cell a step."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.garbled import automaton as room
from ppspeech.crypto.garbled import offer_automaton, read_automaton
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.shares import ShareEngine
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError
from ppspeech.network import Transcript

from .pairs import together

ALARM = 1e-6


def drawn(states: int, bits: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, states, (states, 1 << bits)), rng.integers(0, 2, (2, states)).astype(np.uint8)


def run(
    moves: np.ndarray, accepts: np.ndarray, start: int, text: np.ndarray, bits: int
) -> tuple[np.ndarray, np.ndarray, Transcript]:
    def program(engine: ShareEngine, side: Side) -> np.ndarray:
        if side is Side.FIRST:
            return offer_automaton(engine, moves, accepts, start, *text.shape, bits)
        return read_automaton(engine, text, len(moves), bits)

    first, second, _, online = together(program)
    return first, second, online


def in_clear(moves: np.ndarray, accepts: np.ndarray, start: int, text: np.ndarray) -> np.ndarray:
    found, state = np.zeros(text.shape, np.uint8), np.full(len(text), start)
    for at in range(text.shape[1]):
        state = moves[state, text[:, at]]
        found[:, at] = accepts[int(at == text.shape[1] - 1), state]
    return found


@pytest.mark.parametrize(
    ("states", "bits", "lines", "steps"), [(2, 1, 3, 5), (16, 5, 7, 9), (128, 3, 2, 30), (256, 5, 40, 2)]
)
def test_every_step_says_what_the_automaton_says(states: int, bits: int, lines: int, steps: int) -> None:
    moves, accepts = drawn(states, bits)
    text = np.random.default_rng(1).integers(0, 1 << bits, (lines, steps))
    first, second, online = run(moves, accepts, states - 1, text, bits)
    assert np.array_equal(first ^ second, in_clear(moves, accepts, states - 1, text))
    assert online.rounds == 1


def cells_of(online: Transcript, states: int, bits: int, lines: int) -> list[np.ndarray]:
    """Of every step, `(lines, states, symbols, 2)`."""
    parts = [np.frombuffer(e.payload or b"", np.uint64) for e in online.entries if e.kind == Kind.GARBLED]
    return [part.reshape(lines, states, 1 << bits, 2) for part in parts]


def test_rows_bits_and_cells_are_uniform() -> None:
    """Of 4,096 lines that are the same: rows that the reader stands in, its shares, and all bytes of cells."""
    states, bits, lines = 8, 2, 4096
    moves, accepts = drawn(states, bits)
    text = np.tile([1, 3, 2], (lines, 1))
    seen: list[np.ndarray] = []
    hashes = room._hashes

    def watched(hasher: Any, blocks: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        seen.append(numbers // (1 << bits) % states)
        return hashes(hasher, blocks, numbers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_hashes", watched)
        _, second, online = run(moves, accepts, 0, text, bits)
    for rows in seen[-3:]:  # before, costs were recorded on zeros
        assert stats.chisquare(np.bincount(rows, minlength=states)).pvalue > ALARM
    for step in range(3):
        assert stats.binomtest(int(second[:, step].sum()), lines).pvalue > ALARM
    for cells in cells_of(online, states, bits, lines):
        counted = np.bincount(cells.view(np.uint8).reshape(-1), minlength=256)
        assert stats.chisquare(counted).pvalue > ALARM


def test_a_reader_opens_one_cell_a_step_and_no_other() -> None:
    """With the label and the key that it holds, every other cell opens to what is no label of the next step."""
    states, bits = 4, 2
    moves = np.tile(np.arange(states)[:, None], (1, 1 << bits))  # every symbol leads back: one next label a row
    accepts = np.zeros((2, states), np.uint8)
    held: list[tuple[Any, np.ndarray, int]] = []
    hashes = room._hashes

    def watched(hasher: Any, blocks: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        held.append((hasher, blocks.copy(), int(numbers[0])))
        return hashes(hasher, blocks, numbers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_hashes", watched)
        *_, online = run(moves, accepts, 1, np.array([[2, 0]]), bits)
    (hasher, block, number), (_, after, _) = held[-2:]  # before, costs were recorded on zeros
    cells = cells_of(online, states, bits, 1)[0].reshape(-1, 2)
    opened = np.array([cells[n] ^ hashes(hasher, block, np.array([n]))[0] for n in range(len(cells))])
    right = opened[number]
    assert int(right[0]) & (states - 1) == int((after ^ right)[0, 0] ^ after[0, 0]) & (states - 1)
    same = [n for n in range(len(cells)) if (opened[n] == right).all()]
    assert same == [number]
    assert len({bytes(each) for each in opened}) == len(cells)
    assert not {bytes(each) for each in opened} & {bytes(each) for each in cells}


def test_two_runs_share_no_label_and_no_key() -> None:
    moves, accepts = drawn(4, 1)
    text = np.zeros((2, 3), np.int64)
    said = [run(moves, accepts, 0, text, 1)[2] for _ in range(2)]
    blocks = [
        {e.payload[n : n + 16] for e in each.entries if e.payload for n in range(0, len(e.payload) - 15, 16)}
        for each in said
    ]
    assert len(blocks[0]) > 40
    assert not blocks[0] & blocks[1]


def test_sizes_that_cannot_be_are_refused() -> None:
    for states, bits in ((3, 2), (1, 2), (1 << 16, 8)):
        with pytest.raises(RangeError, match=r"powers of two|cells"):
            together(lambda engine, _, q=states, s=bits: read_automaton(engine, np.zeros((1, 1), np.int64), q, s))  # type: ignore[misc]
