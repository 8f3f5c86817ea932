"""DP-SGD's plan: Poisson batches, clipping, noise once a step, on one rank or several."""

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from opacus.optimizers import DPOptimizer
from scipy import stats
from torch import distributed, multiprocessing, nn

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Relation
from ppspeech.privacy.audit import run_audits
from ppspeech.privacy.gradients import STEPS, GradientPlan, PoissonBatches
from ppspeech.ranks import Ranks

ONE = Relation("record", "add_remove")


def test_poisson_batches() -> None:
    """Sizes are binomial and members independent; each test has a false-alarm rate of 1e-6."""
    batches = list(PoissonBatches(torch.arange(10), 0.2, 3000))
    sizes = torch.tensor([len(b) for b in batches])
    expected = stats.binom.pmf(range(11), 10, 0.2) * 3000
    counts = torch.bincount(sizes, minlength=11).numpy()
    merged = [*counts[:6], counts[6:].sum()], [*expected[:6], expected[6:].sum()]
    assert stats.chisquare(*merged).pvalue > 1e-6
    assert (sizes == 0).any()
    together = sum(0 in b and 1 in b for b in batches)
    assert stats.binomtest(together, 3000, 0.04).pvalue > 1e-6


def test_speakers_join_as_a_whole() -> None:
    speakers = torch.tensor([5, 5, 9, 5, 9, 2])
    for batch in PoissonBatches(speakers, 0.5, 50):
        for who in speakers[batch].unique():
            assert set((speakers == who).nonzero().squeeze(-1).tolist()) <= set(batch)
    for batch in PoissonBatches(speakers, 1.0, 20, most=1):
        assert sorted(speakers[batch].tolist()) == [2, 5, 9]
    with pytest.raises(PrivacyError, match="no item"):
        PoissonBatches(torch.arange(0), 0.5, 1)


def test_noise_is_added_once_also_for_nobody() -> None:
    plan = GradientPlan(relation=ONE, noise_multiplier=3.0, sampling=0.1, clip=0.5)
    (noisy,) = plan.release([torch.zeros(0, 4000)]).value
    assert stats.kstest(noisy.numpy(), stats.norm(scale=3 * 0.5).cdf).pvalue > 1e-6


def test_sums_are_clipped_as_opacus_clips_them() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = [nn.Parameter(torch.zeros(3, 2)), nn.Parameter(torch.zeros(5))]
    gradients = [3 * torch.randn(7, *w.shape, generator=generator) for w in weights]
    peer = DPOptimizer(torch.optim.SGD(weights, 1.0), noise_multiplier=0.0, max_grad_norm=0.8, expected_batch_size=1)
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad_sample = gradient  # type: ignore[attr-defined]
    peer.clip_and_accumulate()
    plan = GradientPlan(relation=ONE, noise_multiplier=1.0, sampling=0.1, clip=0.8)
    for ours, weight in zip(plan.clipped_sums(gradients), weights, strict=True):
        torch.testing.assert_close(ours.float(), weight.summed_grad)  # type: ignore[attr-defined]
    assert [t.shape for t in plan.clipped_sums([g[:0] for g in gradients])] == [(3, 2), (5,)]


@pytest.mark.parametrize("automatic", [False, True])
@pytest.mark.parametrize("length", [1e-30, 1e-3, 0.8, 1.0, 1e3, 1e30, 1e38])
def test_no_unit_adds_more_than_its_bound_in_whole_numbers(length: float, automatic: bool) -> None:
    """Norms in Python's integers: nothing is rounded while they are compared."""
    generator = torch.Generator().manual_seed(0)
    plan = GradientPlan(relation=ONE, noise_multiplier=1.0, sampling=0.1, clip=0.8, automatic=automatic)
    for dtype in (torch.float32, torch.float64):
        for _ in range(20):
            gradient = torch.randn(1, 50, generator=generator, dtype=dtype)
            gradient *= length / gradient.norm()
            (steps,) = plan.clipped_steps([gradient])
            square = sum(k * k for k in steps.tolist())
            assert square <= STEPS**2
            if length >= 0.8 * (1 + 1e-6):
                assert square > (STEPS * (1 - 1e-6 - automatic * 0.02)) ** 2


def test_sums_have_no_order_and_one_unit_more_adds_its_own_numbers_only() -> None:
    """Bit for bit: in float32 the sum of the same gradients in another order is another sum."""
    generator = torch.Generator().manual_seed(0)
    gradients = 10 ** (4 * torch.rand(300, 1, generator=generator)) * torch.randn(300, 40, generator=generator)
    other = gradients[torch.randperm(300, generator=generator)]
    assert not torch.equal(gradients.sum(0), other.sum(0))
    plan = GradientPlan(relation=ONE, noise_multiplier=1.0, sampling=0.1, clip=0.8)
    (total,), (shuffled,), (rest,) = (plan.clipped_steps([g]) for g in (gradients, other, gradients[1:]))
    assert torch.equal(total, shuffled)
    assert torch.equal(total - rest, plan.clipped_steps([gradients[:1]])[0])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_unit_that_is_not_finite_adds_nothing_and_does_not_show(bad: float) -> None:
    plan = GradientPlan(relation=ONE, noise_multiplier=1.0, sampling=0.1, clip=0.8)
    good = [torch.ones(2, 3), torch.ones(2, 2)]
    worse = [torch.cat([good[0], torch.full((1, 3), bad)]), torch.cat([good[1], torch.ones(1, 2)])]
    for with_it, without in zip(plan.clipped_steps(worse), plan.clipped_steps(good), strict=True):
        assert torch.equal(with_it, without)
    assert all(bool(part.isfinite().all()) for part in plan.release(worse).value)


def test_noise_is_drawn_anew_for_every_number_and_step() -> None:
    plan = GradientPlan(relation=ONE, noise_multiplier=1.0, sampling=0.1, clip=1.0)
    nobody = [torch.zeros(0, 50, dtype=torch.float64)] * 2
    drawn = torch.cat([part for _ in range(3) for part in plan.release(nobody).value])
    assert len(drawn.unique()) == 300


def test_automatic_clipping_brings_short_gradients_near_the_bound() -> None:
    plan = GradientPlan(relation=ONE, noise_multiplier=1.0, sampling=0.1, clip=2.0, automatic=True)
    gradient = torch.tensor([[0.3, 0.4]], dtype=torch.float64)
    torch.testing.assert_close(plan.clipped_sums([gradient])[0], 2 * gradient[0] / 0.51, rtol=1e-6, atol=0)


def test_more_numbers_than_rounding_allows_are_refused() -> None:
    plan = GradientPlan(relation=ONE, noise_multiplier=1.0, sampling=0.1, clip=1.0)
    with pytest.raises(PrivacyError, match="at most 268435456 numbers"):
        plan.clipped_steps([torch.zeros(1).expand(0, 2**28 + 1)])


def _rank(rank: int, folder: str) -> None:
    """One of two processes: it draws its part of the samples, and adds its clipped sums to the other's."""
    file = f"file://{folder}/meeting"
    distributed.init_process_group("gloo", init_method=file, rank=rank, world_size=2, timeout=timedelta(seconds=60))
    place, plan = Ranks(rank, 2), GradientPlan(relation=ONE, noise_multiplier=2.0, sampling=0.2, clip=1.0)
    units = torch.arange(10)
    drawn = [batch for _ in range(200) for batch in plan.batches(units, place)]
    gradients = torch.zeros(3, 5000)
    gradients[:, 0] = 10.0 * (rank + 1)  # each is clipped to 1
    (noisy,) = plan.release([gradients], place).value
    torch.save({"drawn": drawn, "noisy": noisy}, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_two_ranks_make_one_poisson_sample_and_one_noise(tmp_path: Path) -> None:
    """Disjoint parts whose union is binomial; equal sums with the noise of one; false-alarm rates of 1e-6."""
    multiprocessing.spawn(_rank, args=(str(tmp_path),), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    sizes = torch.zeros(11)
    for mine, theirs in zip(first["drawn"], second["drawn"], strict=True):
        assert all(unit % 2 == 0 for unit in mine)
        assert all(unit % 2 == 1 for unit in theirs)
        sizes[len(mine) + len(theirs)] += 1
    expected = stats.binom.pmf(range(11), 10, 0.2) * len(first["drawn"])
    merged = [*sizes[:6].tolist(), sizes[6:].sum().item()], [*expected[:6], expected[6:].sum()]
    assert stats.chisquare(*merged).pvalue > 1e-6
    assert torch.equal(first["noisy"], second["noisy"])
    noise = first["noisy"][1:]
    assert stats.kstest(noise.numpy(), stats.norm(scale=2.0).cdf).pvalue > 1e-6
    assert abs(float(first["noisy"][0]) - 6.0) < 2.0 * 6


def test_the_plan_is_audited_tightly_and_states_its_steps() -> None:
    plan = GradientPlan(relation=ONE, noise_multiplier=1.5, sampling=0.25, clip=1.0)
    assert plan.steps_per_epoch == 4
    assert plan.after(8).steps == 8
    assert plan.event == plan.after(1)
    (report,) = run_audits(["sampled_gaussian"])
    assert 0.99 < report.eps_lower / report.eps_stated <= 1 + 1e-6


@pytest.mark.parametrize(
    "change", [{"noise_multiplier": 0.0}, {"sampling": 1.5}, {"clip": -1.0}, {"delta": 0.0}, {"most": 0}]
)
def test_wrong_plans_are_refused(change: dict[str, Any]) -> None:
    given: dict[str, Any] = {"relation": ONE, "noise_multiplier": 1.0, "sampling": 0.5, "clip": 1.0}
    with pytest.raises(PrivacyError, match=next(iter(change))):
        GradientPlan(**(given | change))
