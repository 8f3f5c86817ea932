"""Decisions on shares against the rule with its root and division."""

import numpy as np
import pytest

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares import Shared, ShareEngine, blank, record
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError
from ppspeech.protocols.speakers.norm import accept_against, is_positive, square_ring
from tests.crypto.pairs import together

RING = Ring(21)


def test_without_a_cohort_the_sign_decides() -> None:
    scores = np.array([-(2**19), -1, 0, 1, 2**19])
    shares = RING.share(RING.from_signed(scores))

    def program(engine: ShareEngine, own: Residues) -> Bits:
        return is_positive(Shared(engine, own, RING)).own

    one, other, *_ = together(lambda e, p: program(e, shares[p]), record(lambda e: program(e, blank(len(scores)))))
    assert (one ^ other).tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("threshold", [0.0, 0.7, 3.0, -0.7, -2.5])
@pytest.mark.parametrize("score", [-90_000, -3000, -10, 0, 10, 3000, 90_000])
def test_t_norm_is_that_of_the_definition(threshold: float, score: int) -> None:
    generator = np.random.default_rng(abs(score) + 1)
    cohort = generator.normal(500, 2000, size=9)
    plain = (score - cohort.mean()) / cohort.std(ddof=1)
    deviations = np.rint(abs(threshold) / np.sqrt(8) * (cohort - cohort.mean())).astype(np.int64)
    residues = np.concatenate([[round(score - cohort.mean())], deviations])
    shares = RING.share(RING.from_signed(residues))

    def program(engine: ShareEngine, own: Residues, turn: bool) -> Bits:
        both = Shared(engine, own, RING)
        return accept_against(both[:1], both[1:], turn=turn).own

    one, other, *_ = together(
        lambda e, p: program(e, shares[p], p is Side.FIRST and threshold < 0),
        record(lambda e: program(e, blank(10), False)),
    )
    assert bool((one ^ other)[0]) == (plain >= threshold)


def test_squares_that_fit_no_ring_are_refused() -> None:
    assert square_ring(Ring(27), 255).bits == 61
    with pytest.raises(RangeError, match="smaller cohort"):
        square_ring(Ring(27), 256)
