"""DP-SGD: gradients against a loop and Opacus, Poisson batches, noise once a step, an account that is right."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch
from opacus.grad_sample import GradSampleModule
from scipy import stats
from torch import Tensor, nn

from ppspeech.data.batches import Batch
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import PrivacyError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.topology import left_right
from ppspeech.models.margin.hmm import LargeMarginHmm
from ppspeech.privacy import Relation
from ppspeech.privacy.gradients.plan import PoissonBatches, SampledGaussianEvent
from ppspeech.training.private.gradients import (
    CollateWithEmpty,
    GradientPrivacy,
    OsNoiseOptimizer,
    per_sample_gradients,
)

MODELS, STATES, FEATURES = 4, 3, 5


class OfHmm(nn.Module):
    """Losses of one of the house's HMMs."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        topology = left_right(STATES)
        self.bank: Any
        if kind.startswith("large_margin"):
            self.bank = LargeMarginHmm(topology, MODELS, FEATURES)
        else:
            covariance: Any = "full" if kind == "full" else "diagonal"
            self.bank = HiddenMarkovModel(topology, GaussianEmission(MODELS, STATES, FEATURES, covariance=covariance))
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)

    def losses(self, batch: Batch) -> Tensor:
        x, lengths, word = batch["features"], batch["lengths"], batch["word"]
        if self.kind.startswith("large_margin"):
            level: Any = self.kind.rsplit("_", 1)[1]
            return self.bank.loss(x, lengths, word, level)
        return nn.functional.cross_entropy(self.bank(x, lengths), word, reduction="none")


def speech(count: int = 6) -> Batch:
    generator = torch.Generator().manual_seed(0)
    return {
        "features": torch.randn(count, 12, FEATURES, generator=generator),
        "lengths": torch.randint(4, 13, (count,), generator=generator),
        "word": torch.randint(0, MODELS, (count,), generator=generator),
    }


@pytest.mark.parametrize("kind", ["diagonal", "full", "large_margin_word", "large_margin_state"])
@pytest.mark.parametrize("chunk", [None, 4])
def test_gradients_equal_a_loop(kind: str, chunk: int | None) -> None:
    module, batch = OfHmm(kind), speech()
    names = [name for name, _ in module.named_parameters()]
    found, losses = per_sample_gradients(module, batch, names, chunk)
    for i in range(len(batch["word"])):
        module.zero_grad()
        loss = module.losses({name: value[i : i + 1] for name, value in batch.items()}).sum()
        loss.backward()
        torch.testing.assert_close(losses[i], loss.detach())
        for gradient, parameter in zip(found, module.parameters(), strict=True):
            slow = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(gradient[i], slow, rtol=1e-4, atol=1e-6)
    assert sum(float(g.abs().sum()) for g in found) > 1


class Packed(nn.Module):
    """How Opacus by hand trains an HMM: it passes one input, and hooks only modules that own their parameters."""

    def __init__(self, module: OfHmm) -> None:
        super().__init__()
        self.hidden = [module]
        for name, parameter in module.named_parameters():
            self.register_parameter(name.replace(".", "_"), parameter)

    def forward(self, packed: Tensor) -> Tensor:
        module = self.hidden[0]
        batch = {
            "features": packed[:, 2:].view(len(packed), -1, FEATURES),
            "lengths": packed[:, 0].long(),
            "word": packed[:, 1].long(),
        }
        own = {f"it.{n}": getattr(self, n.replace(".", "_")) for n, _ in module.named_parameters()}
        return torch.func.functional_call(_Call(module), own, (batch,))


class _Call(nn.Module):
    def __init__(self, it: OfHmm) -> None:
        super().__init__()
        self.it = it

    def forward(self, batch: Batch) -> Tensor:
        return self.it.losses(batch)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_gradients_equal_opacus() -> None:
    module, batch = OfHmm("diagonal"), speech()
    names = [name for name, _ in module.named_parameters()]
    ours, _ = per_sample_gradients(module, batch, names)
    packed = torch.cat([batch["lengths"][:, None], batch["word"][:, None], batch["features"].flatten(1)], dim=1)
    peer = GradSampleModule(Packed(module), loss_reduction="sum")
    peer(packed).sum().backward()
    for name, gradient in zip(names, ours, strict=True):
        theirs = dict(peer.named_parameters())["_module." + name.replace(".", "_")].grad_sample
        torch.testing.assert_close(gradient, theirs, rtol=1e-4, atol=1e-6)


def test_an_empty_batch_has_gradients_of_nobody() -> None:
    module = OfHmm("diagonal")
    names = [name for name, _ in module.named_parameters()]
    found, losses = per_sample_gradients(module, {n: v[:0] for n, v in speech().items()}, names)
    assert [g.shape for g in found] == [(0, *p.shape) for p in module.parameters()]
    assert losses.shape == (0,)


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
    weight = nn.Parameter(torch.zeros(4000))
    optimizer = OsNoiseOptimizer(
        torch.optim.SGD([weight], 1.0), noise_multiplier=3.0, max_grad_norm=0.5, expected_batch_size=2.0
    )
    weight.grad_sample = torch.zeros(0, 4000)  # type: ignore[attr-defined]
    optimizer.step()
    assert stats.kstest(weight.detach().numpy(), stats.norm(scale=3 * 0.5 / 2).cdf).pvalue > 1e-6


class Tiny(lightning.LightningModule):
    """Softmax on average features."""

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__()
        self.linear = nn.Linear(39, 3)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.rate = rate
        self.sizes: list[int] = []

    def losses(self, batch: Batch) -> Tensor:
        third = batch["features"][:, :20].mean(1)
        return nn.functional.cross_entropy(self.linear(third), batch["word"], reduction="none")

    def training_step(self, batch: Batch) -> Tensor:
        return self.losses(batch).mean()

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        self.sizes.append(len(batch["word"]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), self.rate)


Make = Callable[..., lightning.Trainer]


def test_target_epsilon_is_kept_with_empty_batches(voices: SpeechDataModule, trainer: Make) -> None:
    module, hook = Tiny(), GradientPrivacy(epsilon=2.0, sampling=0.02)
    trainer(max_epochs=1, callbacks=[hook]).fit(module, datamodule=voices)
    assert hook.steps == 50 == len(module.sizes)
    assert 0 in module.sizes
    guarantee = hook.guarantee()
    assert guarantee.unit == "utterance"
    assert 1.98 < guarantee.epsilon <= 2.0
    assert hook.noise_multiplier is not None
    event = SampledGaussianEvent(hook.noise_multiplier, 0.02, 50, Relation("utterance", "add_remove"))
    assert guarantee.epsilon == pytest.approx(event.epsilon(1e-5))
    assert not any(getattr(p, "grad_sample", None) is not None for p in module.parameters())


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_a_step_is_the_slow_step(voices: SpeechDataModule, trainer: Make, unit: Any, monkeypatch: Any) -> None:
    """Everybody joins, the noise is silenced: one step equals clipped gradients added in a loop."""
    zero = torch.zeros
    monkeypatch.setattr(
        "ppspeech.training.private.gradients.standard_normal", lambda shape, like: zero(tuple(shape)).to(like)
    )
    module, hook = Tiny(), GradientPrivacy(noise_multiplier=1.0, sampling=1.0, clip=0.2, unit=unit)
    trainer(max_epochs=1, callbacks=[hook]).fit(module, datamodule=voices)
    slow, items = Tiny(), voices.parts["train"]
    whole = CollateWithEmpty(items)([items[i] for i in range(len(items))])
    groups = [[i] for i in range(len(items))]
    if unit == "speaker":
        groups = [(whole["speaker"] == who).nonzero().squeeze(-1).tolist() for who in whole["speaker"].unique()]
    total = torch.zeros(39 * 3 + 3)
    for group in groups:
        slow.zero_grad()
        slow.losses({name: value[group] for name, value in whole.items()}).mean().backward()
        gradient = torch.cat([p.grad.flatten() for p in slow.parameters() if p.grad is not None])
        total += gradient * min(1.0, 0.2 / float(gradient.norm()))
    moved = torch.cat([p.detach().flatten() for p in module.parameters()])
    torch.testing.assert_close(moved, -0.5 * total / len(groups), rtol=1e-3, atol=1e-5)


def wrong_settings() -> Iterator[Any]:
    yield {}, "one of the two"
    yield {"epsilon": 1.0, "noise_multiplier": 1.0}, "one of the two"
    yield {"epsilon": -1.0}, "epsilon"
    yield {"epsilon": 1.0, "sampling": 0.0}, "sampling"
    yield {"epsilon": 1.0, "unit": "frame"}, "frame"
    yield {"epsilon": 1.0, "clip": 0.0}, "clip"


@pytest.mark.parametrize(("settings", "message"), list(wrong_settings()))
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        GradientPrivacy(**settings)


def test_what_would_break_the_guarantee_is_refused(voices: SpeechDataModule, trainer: Make) -> None:
    hook = GradientPrivacy(noise_multiplier=1.0)
    with pytest.raises(PrivacyError, match="accumulated"):
        trainer(max_epochs=1, callbacks=[hook], accumulate_grad_batches=2).fit(Tiny(), datamodule=voices)
    hook.load_state_dict({"steps": 7, "noise_multiplier": 1.0, "sampling": 0.1})
    assert hook.account().events[0][0] == SampledGaussianEvent(1.0, 0.1, 7, Relation("utterance", "add_remove"))
    with pytest.raises(PrivacyError, match="same settings"):
        hook.load_state_dict({"steps": 7, "noise_multiplier": 2.0, "sampling": 0.1})
