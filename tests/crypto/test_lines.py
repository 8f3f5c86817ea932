"""Functions by straight lines: right to the error they state, in shares that say nothing. Chi-square tests at 1e-6."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from ppspeech.arrays import Reals
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares import Lines, ShareEngine, follow_lines, scale_public
from ppspeech.crypto.shares import lines as room
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError

from .pairs import together

ALARM = 1e-6


def coupled(strength: float, x: Reals) -> Reals:
    return 2 * np.arctanh(np.tanh(strength) * np.tanh(x / 2))


@pytest.mark.parametrize(
    ("bits", "fraction", "index", "slope"),
    [(15, 11, 7, 8), (16, 11, 8, 8), (12, 8, 5, 6), (20, 12, 8, 12), (9, 5, 2, 2)],
)
def test_lines_are_right_to_their_error_in_one_round(bits: int, fraction: int, index: int, slope: int) -> None:
    ring = Ring(bits)
    strengths = (0.2, -0.5, 1.0)
    lines = Lines.of([partial(coupled, each) for each in strengths], ring, fraction, index, slope)
    edge = 2 * (1 << lines.cut)
    x = np.concatenate((np.random.default_rng(1).integers(edge - (1 << (bits - 1)), 1 << (bits - 1), 900), [0, 1, -1]))
    which = np.arange(len(x)) % 3
    shares = ring.share(ring.from_signed(x))

    def program(engine: ShareEngine, side: Side) -> np.ndarray:
        return follow_lines(engine, shares[side], lines, which)

    first, second, _, online = together(program)
    found = ring.to_signed(ring.reduce(first + second)) * 2.0**-fraction
    wanted = np.array([coupled(strengths[n], v * 2.0**-fraction) for n, v in zip(which, x, strict=True)])
    assert np.abs(found - wanted).max() <= lines.error
    assert online.messages == 2
    if bits - fraction <= 5 and index >= 7:
        assert lines.error < 2.0**-8


@pytest.mark.parametrize("eighths", [0, 1, 4, 7, 8])
def test_public_fractions_are_right_to_a_unit(eighths: int) -> None:
    ring = Ring(15)
    x = np.random.default_rng(2).integers(-(1 << 13), 1 << 13, 2_000)
    shares = ring.share(ring.from_signed(x))

    def program(engine: ShareEngine, side: Side) -> np.ndarray:
        return scale_public(engine, shares[side], ring, eighths)

    first, second, *_ = together(program)
    found = ring.to_signed(ring.reduce(first + second))
    assert np.abs(found - x * eighths / 8).max() <= 1


def test_shares_and_fields_are_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """One number, shared in one way, many times: the fields that the second opens, their products, and both results."""
    ring, runs = Ring(12), 8192
    lines = Lines.of([partial(coupled, 0.7)], ring, 8, 6, 8)
    own = {Side.FIRST: np.full(runs, 700, np.uint64), Side.SECOND: np.full(runs, 1999, np.uint64)}
    opened: list[list[np.ndarray]] = []
    ask = room.ask_tables

    def watched(*given: object) -> list[np.ndarray]:
        opened.append(ask(*given))  # type: ignore[arg-type]
        return opened[-1]

    monkeypatch.setattr(room, "ask_tables", watched)

    def program(engine: ShareEngine, side: Side) -> np.ndarray:
        return follow_lines(engine, own[side], lines, np.zeros(runs, np.int64))

    first, second, *_ = together(program)
    both, products = opened[-1]
    height, slope = both & lines.line.mask, both >> np.uint64(lines.line.bits)
    seen = [height, slope, height ^ slope, first, second, *products.reshape(runs, lines.digits).T]
    for values in seen:
        for shift in (0, 4):
            low = ((values >> np.uint64(shift)) & np.uint64(15)).astype(np.int64)
            assert stats.chisquare(np.bincount(low, minlength=16)).pvalue > ALARM


def test_sizes_that_cannot_be_are_refused() -> None:
    for bits, index, slope in ((15, 9, 8), (15, 0, 8), (30, 8, 8), (5, 2, 2), (8, 8, 4)):
        with pytest.raises(RangeError, match="cannot be had"):
            Lines.of([np.tanh], Ring(bits), 4, index, slope)
    with pytest.raises(RangeError, match="0 to 8 eighths"):
        together(lambda engine, _: scale_public(engine, np.zeros(1, np.uint64), Ring(8), 9))
