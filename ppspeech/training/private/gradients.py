"""Training by private gradients (DP-SGD) under a Lightning Trainer: Poisson batches in, a noisy sum a step out.

The plan (who joins, clipping, noise, event) is `ppspeech.privacy.gradients.GradientPlan`. Per-sample gradients come
from `torch.func`, straight from the losses: one forward pass, any number of inputs.
"""

from collections.abc import Sequence
from typing import Any, Protocol, cast

import pytorch_lightning as lightning
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.utils.data import DataLoader

from ppspeech.bundle import DataTouch
from ppspeech.data import Batch, SpeechDataModule, UtteranceDataset, collate
from ppspeech.errors import PrivacyError
from ppspeech.privacy import Guarantee
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.gradients import GradientPlan, Ranks, unit_means


class HasLosses(Protocol):
    """A module that can be trained by private gradients."""

    gradient_hook: Any
    """Asked first in `training_step`, if one is set: `return self.gradient_hook.step(self, batch)`."""

    def losses(self, batch: Batch) -> Tensor:
        """The loss of every utterance `(batch,)`, each of its own utterance only; logs nothing, looks at no value."""


class Losses(nn.Module):
    """A module whose forward pass is the losses of another, for `functional_call`."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, batch: Batch) -> Tensor:
        """The losses of a batch, `(batch,)`."""
        return cast(HasLosses, self.module).losses(batch)


def per_sample_gradients(
    module: nn.Module, batch: Batch, names: Sequence[str], chunk: int | None = None
) -> tuple[list[Tensor], Tensor]:
    """The gradient of every utterance's loss, `(batch, *parameter)` a name, and the losses `(batch,)`."""
    parameters = dict(module.named_parameters())
    size = len(next(iter(batch.values())))
    if size == 0:
        first = parameters[names[0]]
        return [parameters[name].new_zeros((0, *parameters[name].shape)) for name in names], first.new_zeros(0)
    whole = Losses(module)
    fixed = {f"module.{name}": value.detach() for name, value in parameters.items() if name not in set(names)}
    wanted = {f"module.{name}": parameters[name].detach() for name in names}

    def loss(chosen: dict[str, Tensor], one: Batch) -> Tensor:
        alone = {name: value.unsqueeze(0) for name, value in one.items()}
        found: Tensor = functional_call(whole, {**fixed, **chosen}, (alone,))
        return found.squeeze(0)

    gradients, losses = vmap(grad_and_value(loss), in_dims=(None, 0), chunk_size=chunk)(wanted, batch)
    return [gradients[f"module.{name}"] for name in names], losses


class CollateWithEmpty:
    """`collate` that also makes a batch of nobody, with the tensors and the widths of any other."""

    def __init__(self, dataset: UtteranceDataset) -> None:
        self.empty = {name: value[:0] for name, value in collate([dataset[0]]).items()}

    def __call__(self, items: Sequence[Batch]) -> Batch:
        """A batch of these items."""
        return collate(items) if items else dict(self.empty)


class PoissonData(SpeechDataModule):
    """A data module that is another, set up, in everything but its training batches: a plan's Poisson samples."""

    def __init__(self, data: SpeechDataModule, plan: GradientPlan, place: Ranks) -> None:
        super().__init__()
        vars(self).update(vars(data))
        dataset = data.parts["train"]
        units = dataset.speakers if plan.relation.unit == "speaker" else torch.arange(len(dataset))
        self.samples = plan.batches(units, place)
        self._poisson: DataLoader[Batch] = DataLoader(
            dataset, batch_sampler=self.samples, collate_fn=CollateWithEmpty(dataset)
        )

    def train_dataloader(self) -> DataLoader[Batch]:
        """The plan's batches; some are empty."""
        return self._poisson


class GradientPrivacy:
    """DP-SGD for any module with `losses` that asks its `gradient_hook`, with automatic optimization and one optimizer.

    Formal guarantee: the parameters after the steps taken are (epsilon, delta)-DP under the plan's relation, by the
    privacy loss distribution of the Poisson-sampled Gaussian mechanism, if the module's start, the settings and the
    number of steps do not depend on private speech. The number of units scales the steps and counts as public. Metrics
    of private validation data are not covered.
    """

    touches: tuple[DataTouch, ...] = ()

    def __init__(self, plan: GradientPlan, chunk: int | None = None) -> None:
        self.plan, self.chunk, self.spent = plan, chunk, 0
        self._place, self._expected = Ranks(), 1.0
        self._names: list[str] = []
        self._parameters: list[nn.Parameter] = []
        self._noisy: list[Tensor] = []

    @property
    def terms(self) -> dict[str, Any]:
        """What a resumed run must agree on."""
        names = ("noise_multiplier", "sampling", "clip", "delta", "most")
        relation = {"unit": self.plan.relation.unit, "adjacency": self.plan.relation.adjacency}
        return relation | {name: getattr(self.plan, name) for name in names}

    def attach(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Give the trainer Poisson batches, and the module private gradients."""
        data = getattr(trainer, "datamodule", None)
        asks = hasattr(module, "gradient_hook")
        reasons = {
            f"{type(module).__name__} does not ask its `gradient_hook` in training_step": asks,
            "gradients accumulated over batches": trainer.accumulate_grad_batches == 1,
            "a limit on training batches": trainer.limit_train_batches == 1.0,
            "no SpeechDataModule": isinstance(data, SpeechDataModule) and bool(data.parts),
            "a sampler that deals batches out to ranks: set trainer.use_distributed_sampler to false": (
                trainer.world_size == 1 or not trainer._accelerator_connector.use_distributed_sampler
            ),
        }
        for reason, holds in reasons.items():
            if not holds:
                raise PrivacyError(f"cannot train privately: {reason}")
        self._place = Ranks(trainer.global_rank, trainer.world_size)
        private = PoissonData(cast(SpeechDataModule, data), self.plan, self._place)
        self._expected = self.plan.sampling * private.samples.units
        trainer._data_connector.attach_datamodule(module, datamodule=private)
        cast(HasLosses, module).gradient_hook = self

    def step(self, module: lightning.LightningModule, batch: Batch) -> Tensor:
        """Bound, add up and blur the gradients of a batch, log nothing; returns a loss that moves no parameter."""
        if not self._parameters:
            self._find_parameters(module)
        batch = dict(batch)
        gradients, _ = per_sample_gradients(module, batch, self._names, self.chunk)
        if self.plan.relation.unit == "speaker" and len(batch["speaker"]):
            gradients = [unit_means(gradient, batch["speaker"]) for gradient in gradients]
        self._noisy = self.plan.release(gradients, self._place).value
        if self._place.ranks == 1:
            return torch.zeros((), device=module.device, requires_grad=True)
        # Several ranks wait for every parameter's gradient: here is one, of zeros.
        return 0.0 * torch.stack([p.sum() for p in module.parameters() if p.requires_grad]).sum()

    def after_backward(self) -> None:
        """Put the noisy sum, over the expected number of units, in the place of the gradients."""
        for parameter, noisy in zip(self._parameters, self._noisy, strict=True):
            parameter.grad = noisy / self._expected
        self._noisy = []
        self.spent += 1

    def finish(self, module: lightning.LightningModule) -> None:
        """Leave nothing behind."""
        cast(HasLosses, module).gradient_hook = None
        for parameter in self._parameters:
            parameter.grad = None

    def account(self) -> Accountant:
        """The steps taken so far, as events."""
        account = Accountant(self.plan.relation)
        if self.spent:
            account.compose(self.plan.after(self.spent))
        return account

    def guarantee(self) -> Guarantee:
        """What the steps taken so far promise."""
        return self.account().guarantee(self.plan.delta, assumptions=self.plan.assumptions)

    def _find_parameters(self, module: lightning.LightningModule) -> None:
        optimizers = module.trainer.optimizers
        if len(optimizers) != 1:
            raise PrivacyError(f"private training needs one optimizer, got {len(optimizers)}")
        trained = {id(p) for group in optimizers[0].param_groups for p in group["params"]}
        pairs = [(name, p) for name, p in module.named_parameters() if id(p) in trained and p.requires_grad]
        self._names, self._parameters = [name for name, _ in pairs], [p for _, p in pairs]
