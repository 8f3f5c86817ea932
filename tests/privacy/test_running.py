"""Sums that are told again after every round: of what blocks, with what noise, and what one row costs."""

import math

import pytest
import torch

from ppspeech.errors import PrivacyError
from ppspeech.privacy import AnalyzeGauss, Relation
from ppspeech.privacy.mechanisms import RunningMoments

RECORD = Relation("record", "add_remove")


def running(rounds: int, sigma: float = 0.02, features: int = 2) -> RunningMoments:
    block = AnalyzeGauss(sigma=sigma, radius=1.0, features=features, delta=1e-5, relation=RECORD)
    return RunningMoments(rounds=rounds, block=block)


def test_what_is_told_is_the_sum_so_far() -> None:
    rows = torch.nn.functional.normalize(torch.randn(21, 2, generator=torch.Generator().manual_seed(0)), dim=1).double()
    told = running(21).release(rows).value
    assert torch.allclose(told, (rows.unsqueeze(2) * rows.unsqueeze(1)).cumsum(0), atol=0.4)
    assert running(21).release(rows[:0]).value.shape == (0, 2, 2)


@pytest.mark.parametrize("rounds", [1, 2, 7, 8, 100])
def test_no_row_is_in_more_blocks_than_it_pays_for(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by what each released block holds; every block is released once."""
    held: list[torch.Tensor] = []
    release = AnalyzeGauss.release
    monkeypatch.setattr(AnalyzeGauss, "release", lambda self, rows: held.append(rows) or release(self, rows))
    one = running(rounds, features=1)
    list(one.follow(iter(torch.arange(1.0, rounds + 1).unsqueeze(1))))
    counts = torch.bincount(torch.cat(held).flatten().long())[1:]
    assert len(held) == rounds
    assert int(counts.max()) == one.levels == math.floor(math.log2(rounds)) + 1
    l2, block = one.event.l2, one.block.event.l2
    assert l2 == pytest.approx(math.sqrt(one.levels) * block)


def test_noise_is_that_of_the_blocks_and_calibrated_for_all() -> None:
    one = RunningMoments.calibrated(epsilon=1.0, delta=1e-5, rounds=7, radius=1.0, features=30, relation=RECORD)
    assert one.guarantee.epsilon == pytest.approx(1.0, rel=1e-4)
    assert one.guarantee.float_safe
    told = one.release(torch.zeros(7, 30)).value
    for number, blocks in ((3, 2), (4, 1), (7, 3)):
        seen = told[number - 1][*torch.triu_indices(30, 30, 1)]
        expected = blocks * one.block.sigma**2 / 2
        assert float(seen.var()) == pytest.approx(expected, rel=6 * math.sqrt(2 / 435))


def test_doors() -> None:
    with pytest.raises(PrivacyError, match="calibrated for 2 rounds"):
        running(2).release(torch.zeros(3, 2))
    with pytest.raises(PrivacyError, match="rounds"):
        running(0)
    block = AnalyzeGauss(sigma=1.0, radius=1.0, features=2, delta=1e-5, relation=Relation("speaker", "add_remove"))
    with pytest.raises(PrivacyError, match="not a speaker"):
        RunningMoments(rounds=2, block=block)
