"""DP-SGD under the Trainer: gradients against a loop and Opacus, a step against a slow one, a right account."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch
from opacus.grad_sample import GradSampleModule
from scipy.stats import kstest, norm
from torch import Tensor, nn

from ppspeech.data.batches import Batch, collate
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import PrivacyError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.topology import left_right
from ppspeech.models.margin.hmm import LargeMarginHmm
from ppspeech.privacy import Relation
from ppspeech.privacy.gradients import SampledDiscreteGaussianEvent
from ppspeech.training.private import PrivacyHook
from ppspeech.training.private.per_sample import gradients_one_by_one, per_sample_gradients
from ppspeech.training.private.recurrent import unrolled

MODELS, STATES, FEATURES = 4, 3, 5
TOLD: Any = {"expected_units": 1.0, "public_start": "zeros"}


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


class Plain(lightning.LightningModule):
    """A plain training step on sequences `(batch, steps, 4)`, around any network from 4 numbers to 6."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.network, self.head = network, nn.Linear(6, 3)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        found = self.network(x)
        found = found[0] if isinstance(found, tuple) else found
        loss = nn.functional.cross_entropy(self.head(found.mean(1)), y)
        self.log("train_loss", loss)
        return {"loss": loss} if batch_idx == 0 else loss


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Linear(4, 6), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))


class Branching(nn.Module):
    """Looks at the numbers to decide what to do with them, which `torch.func` cannot follow."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) if float(x.sum()) > 0 else self.linear(-x)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "gru": lambda: nn.GRU(4, 6, batch_first=True),
    "two layers, two directions": lambda: nn.GRU(4, 3, 2, batch_first=True, bidirectional=True),
    "lstm": lambda: nn.LSTM(4, 6, 2, batch_first=True),
    "rnn": lambda: nn.RNN(4, 6, batch_first=True, nonlinearity="relu", bias=False),
    "transformer": transformer,
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, -1)), nn.Conv2d(1, 1, 3, padding=1), nn.Flatten(1, 2), nn.Linear(4, 6)
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_plain_training_step_has_gradients_of_each_example(name: str) -> None:
    """All at once equals one after another, which is autograd's own; nothing is logged, nothing left behind."""
    module = Plain(NETWORKS[name]())
    generator = torch.Generator().manual_seed(1)
    batch = [torch.randn(5, 7, 4, generator=generator), torch.randint(0, 3, (5,), generator=generator)]
    names = [name for name, _ in module.named_parameters()]
    found, losses = per_sample_gradients(module, batch, names, step=module.training_step)
    module.log = lambda *_: None  # type: ignore[assignment,method-assign]
    for i in range(5):
        module.zero_grad()
        loss = module.training_step([part[i : i + 1] for part in batch], 1)
        loss.backward()
        torch.testing.assert_close(losses[i], loss.detach())
        for gradient, parameter in zip(found, module.parameters(), strict=True):
            torch.testing.assert_close(gradient[i], parameter.grad, rtol=1e-4, atol=1e-6)


def test_what_cannot_be_batched_is_done_one_after_another() -> None:
    module = Plain(Branching())
    batch = [torch.randn(5, 7, 4, generator=torch.Generator().manual_seed(1)), torch.arange(5) % 3]
    names = [name for name, _ in module.named_parameters()]
    with pytest.raises(RuntimeError, match="vmap"):
        per_sample_gradients(module, batch, names, step=module.training_step)
    found, losses = gradients_one_by_one(module, batch, names, module.training_step)
    assert [g.shape for g in found] == [(5, *p.shape) for p in module.parameters()]
    assert losses.shape == (5,)
    assert not module.network.training or "forward" not in vars(module.network)


def test_dropout_draws_for_each_example() -> None:
    """Equal examples have different gradients: one mask for all would let them see each other's."""
    module = Plain(nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5)))
    batch = [torch.ones(6, 3, 4), torch.zeros(6, dtype=torch.long)]
    found, _ = per_sample_gradients(module, batch, ["head.weight"], step=module.training_step)
    assert len(found[0].unique(dim=0)) > 1


def test_recurrent_layers_refuse_what_they_cannot_do() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.zeros(3, 4)])
    with pytest.raises(PrivacyError, match="padded tensors, got PackedSequence"):
        unrolled(nn.GRU(4, 6), packed)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="proj_size"):
        unrolled(nn.LSTM(4, 6, proj_size=2), torch.zeros(3, 1, 4))
    layer, x = nn.LSTM(4, 6), torch.randn(3, 4)
    state = (torch.randn(1, 6), torch.randn(1, 6))
    for ours, theirs in zip(unrolled(layer, x, state), layer(x, state), strict=True):
        torch.testing.assert_close(ours, theirs)


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
    module, hook = Tiny(), PrivacyHook(epsilon=2.0, sampling=0.02, **TOLD)
    trainer(max_epochs=1, callbacks=[hook]).fit(module, datamodule=voices)
    assert hook.spent == 50 == len(module.sizes)
    assert 0 in module.sizes
    guarantee = hook.guarantee()
    assert guarantee.unit == "utterance"
    assert 1.98 < guarantee.epsilon <= 2.0
    ((event, _),) = hook.account().events
    assert isinstance(event, SampledDiscreteGaussianEvent)
    assert guarantee.float_safe
    assert {"the starting point is public: zeros"} < set(guarantee.assumptions)
    assert (event.sampling, event.steps, event.relation) == (0.02, 50, Relation("utterance", "add_remove"))
    assert guarantee.epsilon == pytest.approx(event.epsilon(1e-5))
    assert not any(p.grad is not None for p in module.parameters())


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_a_step_is_the_slow_step(voices: SpeechDataModule, trainer: Make, unit: Any, monkeypatch: Any) -> None:
    """Everybody joins, the noise is silenced: one step equals clipped gradients added in a loop."""
    monkeypatch.setattr("ppspeech.privacy.mechanisms.unit_sum.whole_noise", lambda _, like: torch.zeros_like(like))
    told = {"expected_units": 10.0, "public_start": "zeros"}
    module, hook = Tiny(), PrivacyHook(noise_multiplier=1.0, sampling=1.0, clip=0.2, unit=unit, **told)
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
    torch.testing.assert_close(moved, -0.5 * total / 10, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("compiled", [torch.compile, lambda module, **how: module.compile(**how) or module])
def test_compiled_modules_are_refused(voices: SpeechDataModule, trainer: Make, compiled: Any) -> None:
    """Nothing is compiled: it is refused before."""
    hook = PrivacyHook(noise_multiplier=1.0, expected_units=10.0, public_start="zeros")
    with pytest.raises(PrivacyError, match=r"leave out torch\.compile"):
        trainer(max_epochs=1, callbacks=[hook]).fit(compiled(Tiny(), backend="eager"), datamodule=voices)
    assert hook.spent == 0


class Spy(torch.optim.SGD):
    """Keeps the gradients that it is given."""

    def step(self, closure: Any = None) -> Any:
        found = super().step(closure)
        self.seen = torch.cat([p.grad.flatten() for group in self.param_groups for p in group["params"]])
        return found


class Watched(Tiny):
    """Whose gradients are looked at."""

    def losses(self, batch: Batch) -> Tensor:
        return 0.0 * super().losses(batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        self.spy = Spy(self.parameters(), 1.0)
        return self.spy


def test_the_scale_of_the_noise_does_not_tell_how_many_there_are(trainer: Make) -> None:
    """Everybody's gradients are zero: with 12 and with 16 speakers, noise of the same deviation; false alarm 1e-6."""
    for speakers in (12, 16):
        options = {"words": ["zero", "one", "two"], "speakers": speakers, "takes": 1}
        data = SpeechDataModule("synthetic", options, test=0.25, batch_size=16)
        hook = PrivacyHook(noise_multiplier=2.0, sampling=1.0, unit="speaker", expected_units=5.0, public_start="zeros")
        module = Watched()
        trainer(max_epochs=1, callbacks=[hook]).fit(module, datamodule=data)
        assert kstest(module.spy.seen.numpy(), norm(scale=2.0 / 5.0).cdf).pvalue > 1e-6


class Lbfgs(Tiny):
    """Whose optimizer asks for the gradients of a batch again and again."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.LBFGS(self.parameters())


def test_a_batch_is_released_once(voices: SpeechDataModule, trainer: Make) -> None:
    hook = PrivacyHook(noise_multiplier=1.0, sampling=0.5, **TOLD)
    with pytest.raises(PrivacyError, match=r"released already.*not LBFGS"):
        trainer(max_epochs=1, callbacks=[hook]).fit(Lbfgs(), datamodule=voices)
    with pytest.raises(PrivacyError, match="used once"):
        hook.on_after_backward(None, None)  # type: ignore[arg-type]


class Poisoned(Tiny):
    """One of whose losses is not a number."""

    def losses(self, batch: Batch) -> Tensor:
        losses = super().losses(batch)
        return torch.where(batch["index"] == 0, losses * math.nan, losses)


def test_a_loss_that_is_no_number_does_not_mark_who_was_there(voices: SpeechDataModule, trainer: Make) -> None:
    hook, module = PrivacyHook(noise_multiplier=1.0, sampling=1.0, **TOLD), Poisoned()
    trainer(max_epochs=1, callbacks=[hook]).fit(module, datamodule=voices)
    assert all(bool(p.isfinite().all()) for p in module.parameters())


def test_a_model_that_was_trained_before_is_refused(voices: SpeechDataModule, trainer: Make, tmp_path: Path) -> None:
    """By a checkpoint of plain steps, by the gradients that plain training left, by another hook's account."""

    def private() -> PrivacyHook:
        return PrivacyHook(noise_multiplier=1.0, sampling=0.5, **TOLD)

    module, plain = Tiny(), trainer(max_epochs=1)
    plain.fit(module, datamodule=voices)
    plain.save_checkpoint(tmp_path / "plain.ckpt")
    assert plain.global_step > 0
    with pytest.raises(PrivacyError, match=f"{plain.global_step} steps were made before, of which the account has 0"):
        trainer(max_epochs=9, callbacks=[private()]).fit(
            Tiny(), datamodule=voices, ckpt_path=tmp_path / "plain.ckpt", weights_only=False
        )
    with pytest.raises(PrivacyError, match="left of an earlier training"):
        trainer(max_epochs=1, callbacks=[private()]).fit(module, datamodule=voices)
    module, first = Tiny(), private()
    trainer(max_epochs=1, callbacks=[first]).fit(module, datamodule=voices)
    with pytest.raises(PrivacyError, match="before, with another hook"):
        trainer(max_epochs=1, callbacks=[private()]).fit(module, datamodule=voices)
    trainer(max_epochs=1, callbacks=[first]).fit(module, datamodule=voices)
    assert first.spent == 4
