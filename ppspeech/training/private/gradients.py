"""DP-SGD under a Lightning Trainer: one callback, attached from the config.

In every step each unit joins independently with probability q; the gradient of each unit's loss is clipped to norm C;
N(0, (z C)^2) is added to the sum, once, also where nobody joined; and the sum is divided by the expected number of
units. Opacus's optimizer does the clipping and the scaling. Per-sample gradients come from `torch.func`, as in Opacus
for layers it has no rule for, but straight from the losses: one forward pass instead of two, any number of inputs.
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol, cast, runtime_checkable

import pytorch_lightning as lightning
import torch
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.utils.data import DataLoader

from ppspeech.data import Batch, UtteranceDataset, collate
from ppspeech.errors import PrivacyError
from ppspeech.privacy import Guarantee, Relation, Unit, check_count, check_positive, check_probability
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.gradients import PoissonBatches, SampledGaussianEvent, noise_multiplier_for, unit_means
from ppspeech.privacy.samplers import standard_normal
from ppspeech.training.private.record import PrivacyRecord


@runtime_checkable
class HasLosses(Protocol):
    """A module that `GradientPrivacy` can train."""

    def losses(self, batch: Batch) -> Tensor:
        """The loss of every utterance `(batch,)`, each of its own utterance only; logs nothing, looks at no value."""
        ...


class _Losses(nn.Module):
    """A module whose forward pass is the losses of another, for `functional_call`."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, batch: Batch) -> Tensor:
        losses: Tensor = cast(HasLosses, self.module).losses(batch)
        return losses


def per_sample_gradients(
    module: nn.Module, batch: Batch, names: Sequence[str], chunk: int | None = None
) -> tuple[list[Tensor], Tensor]:
    """The gradient of every utterance's loss by the named parameters.

    Args:
        module: has `losses`.
        batch: tensors with one leading axis, which may be empty.
        names: of parameters.
        chunk: utterances at once; None for all.

    Returns:
        One tensor `(batch, *parameter)` a name, and the losses `(batch,)`.
    """
    parameters = dict(module.named_parameters())
    size = len(next(iter(batch.values())))
    if size == 0:
        first = parameters[names[0]]
        return [parameters[name].new_zeros((0, *parameters[name].shape)) for name in names], first.new_zeros(0)
    whole = _Losses(module)
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


class OsNoiseOptimizer(DPOptimizer):  # type: ignore[misc]
    """Opacus's optimizer with noise straight from the operating system: no generator that could be seeded or stored."""

    def add_noise(self) -> None:
        """Add N(0, (z C)^2) to the clipped sums, once a step."""
        for parameter in self.params:
            scale = self.noise_multiplier * self.max_grad_norm
            summed = cast(Tensor, parameter.summed_grad)
            noise = scale * standard_normal(summed.shape, like=summed) if scale > 0 else 0.0
            parameter.grad = (summed + noise).view_as(parameter)


class GradientPrivacy(lightning.Callback):
    """DP-SGD for any module with `losses`, automatic optimization and one optimizer, on one device.

    Formal guarantee: the parameters after the steps taken are (epsilon, delta)-DP for one `unit` under add_remove, by
    the privacy loss distribution of the Poisson-sampled Gaussian mechanism, if the module's start, the settings and
    the number of steps do not depend on private speech. The number of units scales the steps and counts as public.
    Metrics of private validation data are not covered.

    Args:
        epsilon: spend this over the whole run: the noise follows from it. Give this or `noise_multiplier`.
        noise_multiplier: z; what it costs is told by `guarantee`.
        delta: where the guarantee is stated.
        sampling: q, the probability with which a unit joins a step.
        clip: C, the largest norm of a unit's gradient.
        unit: `utterance`, or `speaker`: the average of a speaker's gradients is clipped.
        most: utterances of a speaker in one step; None for all.
        chunk: utterances whose gradients are computed at once; None for all.

    Raises:
        PrivacyError: for settings that make no sense.
    """

    def __init__(
        self,
        epsilon: float | None = None,
        noise_multiplier: float | None = None,
        delta: float = 1e-5,
        sampling: float = 0.1,
        clip: float = 1.0,
        unit: Unit = "utterance",
        most: int | None = None,
        chunk: int | None = None,
    ) -> None:
        if (epsilon is None) == (noise_multiplier is None):
            raise PrivacyError("give epsilon, from which the noise follows, or noise_multiplier: one of the two")
        if epsilon is not None:
            check_positive("epsilon", epsilon)
        if noise_multiplier is not None:
            check_positive("noise_multiplier", noise_multiplier)
        check_probability("delta", delta)
        check_probability("sampling", sampling, one=True)
        check_positive("clip", clip)
        self.relation = Relation(unit, "add_remove")
        if unit not in ("utterance", "speaker"):
            raise PrivacyError(f"gradients are clipped by utterance or by speaker, got unit {unit!r}")
        if most is not None:
            check_count("most", most)
        self.epsilon, self.noise_multiplier, self.delta = epsilon, noise_multiplier, delta
        self.sampling, self.clip, self.unit, self.most, self.chunk = sampling, clip, unit, most, chunk
        self.steps = 0
        self._gradients: list[Tensor] = []
        self._parameters: list[nn.Parameter] = []
        self._names: list[str] = []
        self._expected = 0.0

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which a unit is expected to join once."""
        return math.ceil(1 / self.sampling)

    def setup(self, trainer: lightning.Trainer, module: lightning.LightningModule, stage: str) -> None:
        """Put Poisson batches in the place of the data module's, and private gradients in the place of its own."""
        if stage != "fit":
            return
        self._check(trainer, module)
        data = trainer.datamodule  # type: ignore[attr-defined]
        dataset: UtteranceDataset = data.parts["train"]
        units = dataset.speakers if self.unit == "speaker" else torch.arange(len(dataset))
        batches = PoissonBatches(units, self.sampling, self.steps_per_epoch, self.most)
        self._expected = self.sampling * batches.units
        if self.noise_multiplier is None:
            assert self.epsilon is not None
            assert trainer.max_epochs is not None
            total = trainer.max_epochs * self.steps_per_epoch
            self.noise_multiplier = noise_multiplier_for(
                self.epsilon,
                self.delta,
                sampling=self.sampling,
                steps=total,
                relation=self.relation,
            )
        loader = DataLoader(dataset, batch_sampler=batches, collate_fn=CollateWithEmpty(dataset))
        data.train_dataloader = lambda: loader
        module.training_step = self._training_step(module)  # type: ignore[method-assign]

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Wrap the optimizer."""
        if len(trainer.optimizers) != 1:
            raise PrivacyError(f"private training needs one optimizer, got {len(trainer.optimizers)}")
        assert self.noise_multiplier is not None
        optimizer = trainer.optimizers[0]
        trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
        pairs = [(name, p) for name, p in module.named_parameters() if id(p) in trained and p.requires_grad]
        self._names, self._parameters = [name for name, _ in pairs], [p for _, p in pairs]
        trainer.strategy.optimizers = [
            OsNoiseOptimizer(
                optimizer,
                noise_multiplier=self.noise_multiplier,
                max_grad_norm=self.clip,
                expected_batch_size=self._expected,
            )
        ]

    def _training_step(self, module: lightning.LightningModule) -> Any:
        def step(batch: Batch, *_: Any) -> Tensor:
            batch = dict(batch)
            gradients, _losses = per_sample_gradients(module, batch, self._names, self.chunk)
            if self.unit == "speaker" and len(batch["speaker"]):
                gradients = [unit_means(gradient, batch["speaker"]) for gradient in gradients]
            self._gradients = gradients
            # Lightning wants a loss to go backwards from; this one is no function of any parameter.
            return torch.zeros((), device=module.device, requires_grad=True)

        return step

    def on_after_backward(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Hand the per-unit gradients to the optimizer; Lightning has cleared the last step's."""
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad_sample = gradient  # type: ignore[attr-defined]
        self._gradients = []
        self.steps += 1

    def on_train_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Leave no per-unit gradient behind."""
        for parameter in self._parameters:
            parameter.grad_sample = parameter.summed_grad = None  # type: ignore[attr-defined]
            parameter.grad = None

    def account(self) -> Accountant:
        """The steps taken so far, as events."""
        account = Accountant(self.relation)
        if self.steps:
            assert self.noise_multiplier is not None
            account.compose(SampledGaussianEvent(self.noise_multiplier, self.sampling, self.steps, self.relation))
        return account

    def guarantee(self) -> Guarantee:
        """What the steps taken so far promise."""
        return self.account().guarantee(
            self.delta,
            assumptions=(
                f"gradients of one {self.unit} are clipped to {self.clip:.6g}",
                f"every {self.unit} joins a step independently with probability {self.sampling:.6g}",
                f"the number of {self.unit}s and the starting point are public",
            ),
        )

    def on_save_checkpoint(
        self,
        trainer: lightning.Trainer,  # noqa: ARG002
        pl_module: lightning.LightningModule,  # noqa: ARG002
        checkpoint: dict[str, Any],
    ) -> None:
        """Put the record of what was spent beside the parameters; plain values only."""
        PrivacyRecord.of(self.account(), self.guarantee()).write_(checkpoint)

    def state_dict(self) -> dict[str, Any]:
        """The account, for a checkpoint: no noise, no generator."""
        return {"steps": self.steps, "noise_multiplier": self.noise_multiplier, "sampling": self.sampling}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with an account.

        Raises:
            PrivacyError: if the settings differ from those of the steps already taken.
        """
        mine = (self.noise_multiplier, self.sampling)
        if mine != (state["noise_multiplier"], state["sampling"]):
            raise PrivacyError(
                f"the checkpoint was trained with noise multiplier {state['noise_multiplier']} and sampling "
                f"{state['sampling']}, this run has {mine[0]} and {mine[1]}: resume with the same settings"
            )
        self.steps = state["steps"]

    def _check(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        reasons = {
            f"{type(module).__name__} has no `losses(batch)`": isinstance(module, HasLosses),
            "the module optimizes by hand": module.automatic_optimization,
            "training on several devices": trainer.world_size == 1,
            "gradients accumulated over batches": trainer.accumulate_grad_batches == 1,
            "no end: set trainer.max_epochs": trainer.max_epochs is not None and trainer.max_epochs > 0,
            "a limit on training batches": trainer.limit_train_batches == 1.0,
            "no data module with parts": bool(getattr(getattr(trainer, "datamodule", None), "parts", None)),
        }
        for reason, holds in reasons.items():
            if not holds:
                raise PrivacyError(f"cannot train privately: {reason}")
