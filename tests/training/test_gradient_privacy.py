"""DP-SGD under the Trainer: gradients against a loop and Opacus, a step against a slow one, a right account."""

from collections.abc import Callable
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch
from opacus.grad_sample import GradSampleModule
from torch import Tensor, nn

from ppspeech.data.batches import Batch, collate
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.topology import left_right
from ppspeech.models.margin.hmm import LargeMarginHmm
from ppspeech.privacy import Relation
from ppspeech.privacy.gradients.plan import SampledGaussianEvent
from ppspeech.training.private import PrivacyHook
from ppspeech.training.private.gradients import per_sample_gradients

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
    module, hook = Tiny(), PrivacyHook(epsilon=2.0, sampling=0.02)
    trainer(max_epochs=1, callbacks=[hook]).fit(module, datamodule=voices)
    assert hook.spent == 50 == len(module.sizes)
    assert 0 in module.sizes
    guarantee = hook.guarantee()
    assert guarantee.unit == "utterance"
    assert 1.98 < guarantee.epsilon <= 2.0
    ((event, _),) = hook.account().events
    assert isinstance(event, SampledGaussianEvent)
    assert (event.sampling, event.steps, event.relation) == (0.02, 50, Relation("utterance", "add_remove"))
    assert guarantee.epsilon == pytest.approx(event.epsilon(1e-5))
    assert not any(p.grad is not None for p in module.parameters())


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_a_step_is_the_slow_step(voices: SpeechDataModule, trainer: Make, unit: Any, monkeypatch: Any) -> None:
    """Everybody joins, the noise is silenced: one step equals clipped gradients added in a loop."""
    zero = torch.zeros
    monkeypatch.setattr(
        "ppspeech.privacy.gradients.plan.standard_normal", lambda shape, like: zero(tuple(shape)).to(like)
    )
    module, hook = Tiny(), PrivacyHook(noise_multiplier=1.0, sampling=1.0, clip=0.2, unit=unit)
    trainer(max_epochs=1, callbacks=[hook]).fit(module, datamodule=voices)
    slow, items = Tiny(), voices.parts["train"]
    whole = collate([items[i] for i in range(len(items))])
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
