"""What is released has the noise that is booked: its size, and fresh for every release, step, parameter and coin.

Each bound below is passed by chance with probability 1e-6 or less.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch
from scipy.stats import chi2
from torch import Tensor, nn

from ppspeech.data.batches import Batch
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.privacy import Relation
from ppspeech.privacy.gradients import GradientPlan
from ppspeech.privacy.mechanisms import Moments, StatisticsRelease, UnitSums
from ppspeech.training import WordModels, public_bank
from ppspeech.training.module import SpeechModule
from ppspeech.training.private import PrivacyHook

NUMBERS = 2_000
Make = Callable[..., lightning.Trainer]


def has_deviation(noise: Tensor, sigma: float) -> bool:
    """Whether independent Gaussian numbers have this standard deviation, by the law of their squares."""
    square = float((noise.double() / sigma).square().sum())
    low, high = chi2.ppf([5e-7, 1 - 5e-7], noise.numel())
    return bool(low < square < high)


def independent(first: Tensor, second: Tensor) -> bool:
    """Whether two noises of equal size are uncorrelated."""
    pair = torch.stack([first.flatten(), second.flatten()]).double()
    return abs(float(torch.corrcoef(pair)[0, 1])) * math.sqrt(first.numel()) < 4.9


def silent(release: StatisticsRelease) -> UnitSums:
    """The sums of one utterance that says nothing: what is released is the noise."""
    sums = UnitSums(release, 1)
    first, none = torch.zeros(1, 1, 1, NUMBERS), torch.zeros(1, 1, 1)
    sums.add(Moments(none, first, first[0, 0], none[0], none), torch.ones(1), torch.zeros(1, dtype=torch.long))
    return sums


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
@pytest.mark.parametrize(("adjacency", "reach"), [("add_remove", 1.0), ("replace", 2.0)])
def test_statistics_have_the_noise_that_is_booked(unit: Any, adjacency: Any, reach: float) -> None:
    release = StatisticsRelease(1.0, iterations=3, relation=Relation(unit, adjacency))
    rho = release.event.zcdp()
    assert rho is not None
    for _ in range(2):
        noise = silent(release).released()
        assert has_deviation(noise.first * release.scales[1], reach / math.sqrt(2 * rho))
        assert has_deviation(noise.second * release.scales[2], reach / math.sqrt(2 * rho))


def test_statistics_have_fresh_noise_in_every_iteration() -> None:
    release = StatisticsRelease(1.0, iterations=3)
    sums = silent(release)
    found = [sums.released(), sums.released(), silent(release).released()]
    for i, one in enumerate(found):
        assert independent(one.first, one.second)
        assert all(independent(one.first, other.first) for other in found[:i])


class Flat(lightning.LightningModule):
    """Two parameters of equal shape that no example moves: what training releases is the noise."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = (nn.Parameter(torch.zeros(NUMBERS)) for _ in range(2))

    def losses(self, batch: Batch) -> Tensor:
        return 0.0 * batch["features"].sum((1, 2)) + 0.0 * (self.left.sum() + self.right.sum())

    def training_step(self, batch: Batch) -> Tensor:
        return self.losses(batch).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 1.0)


def test_gradients_have_the_noise_that_is_booked_fresh_in_every_step_and_parameter(
    voices: SpeechDataModule, trainer: Make
) -> None:
    block: dict[str, Any] = {"noise_multiplier": 1.5, "sampling": 0.5, "clip": 0.7, "expected_units": 1.0}
    hook, seen = PrivacyHook(public_start="zeros", **block), []

    class Watch(lightning.Callback):
        def on_fit_start(self, *_: Any) -> None:
            hook.way.watch = lambda _, released: seen.append(released.clone())  # type: ignore[union-attr]

    module = Flat()
    trainer(max_epochs=2, callbacks=[hook, Watch()]).fit(module, datamodule=voices)
    assert len(seen) == hook.spent == 4
    for i, step in enumerate(seen):
        assert has_deviation(step, 1.5 * 0.7)
        assert independent(step[:NUMBERS], step[NUMBERS:])
        assert all(independent(step, other) for other in seen[:i])
    moved = torch.cat([module.left.detach(), module.right.detach()])
    total = torch.stack(seen).sum(0)
    assert float(torch.corrcoef(torch.stack([moved, -total.float()]))[0, 1]) > 0.9999  # and it is what moved the model


@pytest.mark.parametrize("sampling", [0.1, 0.5])
def test_every_unit_tosses_a_coin_of_its_own_in_every_step(sampling: float) -> None:
    plan = GradientPlan(relation=Relation("utterance", "add_remove"), noise_multiplier=1.0, sampling=sampling, clip=1.0)
    units = torch.arange(NUMBERS)
    steps = [step for _ in range(2) for step in plan.batches(units)]
    joined = torch.zeros(len(steps), NUMBERS)
    for place, step in enumerate(steps):
        joined[place, step] = 1.0
    spread = math.sqrt(sampling * (1 - sampling) / joined.numel())
    assert abs(float(joined.mean()) - sampling) < 5 * spread
    for i, one in enumerate(joined):
        assert all(independent(one, other) for other in joined[:i])
    sizes = joined.sum(1)
    assert len(set(sizes.tolist())) > 1  # not batches of one size


def test_a_public_start_hears_nothing_private(voices: SpeechDataModule, trainer: Make, monkeypatch: Any) -> None:
    """Whatever is in the training part, private training begins from the same public model."""
    started: list[dict[str, Tensor]] = []

    class Look(lightning.Callback):
        def on_train_batch_start(self, _: Any, module: Any, *__: Any) -> None:
            started.append({name: value.clone() for name, value in module.model.state_dict().items()})

    def heard(_: SpeechModule) -> None:
        raise AssertionError("the start listens to the training part")

    monkeypatch.setattr(SpeechModule, "training_batches", heard)
    monkeypatch.setattr(SpeechModule, "training_part", heard)
    module = WordModels(states=3, covariance="diagonal", start="public")
    hook = PrivacyHook(epsilon=1.0)
    trainer(max_epochs=1, callbacks=[hook, Look()]).fit(module, datamodule=voices)
    public = public_bank(module.labels, module.mfcc, 3).state_dict()
    for name, value in public.items():
        torch.testing.assert_close(started[0][name], value)
