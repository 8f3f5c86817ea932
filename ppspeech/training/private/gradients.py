"""Training by private gradients (DP-SGD) under a Lightning Trainer: Poisson batches in, a noisy sum a step out.

The plan (who joins, clipping, noise, event) is `ppspeech.privacy.gradients.GradientPlan`, per-sample gradients are
`ppspeech.training.private.per_sample`'s.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pytorch_lightning as lightning
import torch
from pytorch_lightning.utilities import rank_zero_warn
from pytorch_lightning.utilities.model_helpers import is_overridden
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from ppspeech.bundle import DataTouch
from ppspeech.errors import PrivacyError
from ppspeech.privacy import Guarantee, check_positive, check_single_rows
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.gradients import GradientPlan, unit_means
from ppspeech.ranks import ONE_RANK, Ranks
from ppspeech.training.module import no_loss
from ppspeech.training.private.per_sample import gradients_one_by_one, mapped, per_sample_gradients
from ppspeech.training.private.record import counts_touch

MIXES = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
"""Layers that let the examples of a batch see each other."""


class CollateWithEmpty:
    """A collate function that also makes a batch of nobody, with the tensors and the widths of any other."""

    def __init__(self, dataset: Dataset[Any], collate: Callable[[Any], Any]) -> None:
        self.collate = collate
        self.empty = mapped(lambda tensor: tensor[:0], collate([dataset[0]]))

    def __call__(self, items: Sequence[Any]) -> Any:
        """A batch of these items."""
        return self.collate(items) if items else mapped(torch.clone, self.empty)


class GradientPrivacy:
    """DP-SGD for any LightningModule under automatic optimization with one optimizer: its `training_step` is enough.

    During the fit it stands in for the module's `training_step`, and draws Poisson batches from the data set behind the
    train loader, wherever that was given. An example's loss is `losses(batch)` of it alone, or else what
    `training_step` returns for it alone; nothing is logged. An item is a record. Where the unit is a speaker or an
    utterance, the data set says whose its items are (`dataset.speakers` or `dataset.utterances`, a tensor), an
    utterance's being one; for speakers so does a batch (`batch["speaker"]`).

    Formal guarantee: the parameters after the steps taken are (epsilon, delta)-DP under the plan's relation, by the
    privacy loss distribution of the Poisson-sampled discrete Gaussian mechanism, if the module's start, the settings
    and the number of steps do not depend on private data. Sums are divided by `expected_units`, a constant that is
    given: their number in the data would tell whether one more is there. Metrics of private validation data are not
    covered. What else a module keeps (buffers, parameters without an optimizer) must stay as it was: no event covers
    it, and a change is refused.
    """

    def __init__(
        self, plan: GradientPlan, expected_units: float, public_start: str, chunk: int | None = None, epochs: int = 1
    ) -> None:
        self.plan, self.chunk, self.spent = plan, chunk, 0
        self.planned = epochs * plan.steps_per_epoch
        self.expected_units, self.public_start = check_positive("expected_units", expected_units), public_start
        self.touches: tuple[DataTouch, ...] = (counts_touch(plan.relation),)
        self._place = ONE_RANK
        self._names: list[str] = []
        self._parameters: list[nn.Parameter] = []
        self._rest: dict[str, tuple[Tensor, Tensor]] = {}
        self._noisy: list[Tensor] | None = None
        self._batch: tuple[int, int] | None = None
        self._undo: list[Callable[[], None]] = []
        self._loader: DataLoader[Any] | None = None
        self.watch: Callable[[lightning.LightningModule, Tensor], None] | None = None
        self._step: Callable[..., Any] | None = None
        self._one_by_one = False

    @property
    def terms(self) -> dict[str, Any]:
        """What a resumed run must agree on."""
        names = ("noise_multiplier", "sampling", "clip", "delta", "most", "automatic")
        relation = {"unit": self.plan.relation.unit, "adjacency": self.plan.relation.adjacency}
        told = {"expected_units": self.expected_units, "public_start": self.public_start}
        return relation | {name: getattr(self.plan, name) for name in names} | told

    def attach(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Stand in for the module's training step, and give the trainer Poisson batches."""
        source: Any = trainer.fit_loop._data_source
        given: Any = source.instance
        has_hook = isinstance(given, lightning.LightningModule | lightning.LightningDataModule)
        mixing = [name for name, layer in module.named_modules() if isinstance(layer, MIXES)]
        left = [name for name, parameter in module.named_parameters() if parameter.grad is not None]
        reasons = {
            "gradients accumulated over batches": trainer.accumulate_grad_batches == 1,
            "a limit on training batches": trainer.limit_train_batches == 1.0,
            f"{', '.join(mixing)} mixes the examples of a batch: use nn.GroupNorm in its place": not mixing,
            "no data set to draw from: give a DataLoader to `fit`, or a data module": not has_hook
            or is_overridden("train_dataloader", given),
            f"{', '.join(left)} has a gradient left of an earlier training, which no account knows. If that was on "
            "public data, say so in public_start, and clear it with `module.zero_grad()`": not left,
        }
        for reason, holds in reasons.items():
            if not holds:
                raise PrivacyError(f"cannot train privately: {reason}")
        self._place = Ranks.of(trainer)
        if has_hook:
            loader = given.train_dataloader
            self._replace(given, "train_dataloader", lambda: self._poisson(loader()))
        else:
            self._replace(source, "instance", self._poisson(given))
        self._step = module.training_step
        self._replace(module, "training_step", lambda batch, batch_idx: self.step(module, batch, batch_idx))

    def _replace(self, owner: Any, name: str, other: Any) -> None:
        had = vars(owner).get(name)
        self._undo.append((lambda: delattr(owner, name)) if had is None else (lambda: setattr(owner, name, had)))
        setattr(owner, name, other)

    def _poisson(self, loader: Any) -> DataLoader[Any]:
        """The plan's batches of the data set behind a loader, put together as the loader does."""
        dataset: Any = getattr(loader, "dataset", None)
        if not isinstance(loader, DataLoader) or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise PrivacyError(
                "cannot train privately: batches are drawn from a DataLoader of a data set with a length and items by "
                f"number, got a {type(loader).__name__} of {type(dataset).__name__}"
            )
        unit, units = self.plan.relation.unit, torch.arange(len(dataset))
        if unit != "record":
            if not hasattr(dataset, f"{unit}s"):
                raise PrivacyError(
                    f"cannot protect a {unit}: {type(dataset).__name__} has no `{unit}s`, one number an item, that "
                    "says whose each is; give it, or protect one record"
                )
            units = torch.as_tensor(getattr(dataset, f"{unit}s"))
            check_single_rows(unit, len(dataset), units)
        if len(set(self._place.gathered([hashlib.sha256(units.cpu().numpy().tobytes()).digest()]))) > 1:
            raise PrivacyError(
                f"cannot train privately: the processes do not have the same {unit}s in the same order, so that one "
                "may join a step on several of them: give all of them one data set"
            )
        samples = self.plan.batches(units, self._place)
        assert loader.collate_fn is not None
        collate = CollateWithEmpty(dataset, loader.collate_fn)
        self._loader = DataLoader(dataset, batch_sampler=samples, collate_fn=collate, num_workers=loader.num_workers)
        return self._loader

    def step(self, module: lightning.LightningModule, batch: Any, batch_idx: int) -> Tensor:
        """Bound, add up and blur the gradients of a batch, log nothing; returns a loss that moves no parameter."""
        if not self._parameters:
            if module.trainer.train_dataloader is not self._loader:
                raise PrivacyError(
                    "cannot train privately: the trainer takes its batches elsewhere. Set use_distributed_sampler to "
                    "False"
                )
            self._find_parameters(module)
        here = (module.trainer.current_epoch, batch_idx)
        if here == self._batch:
            raise PrivacyError(
                f"the gradients of batch {batch_idx} were released already, and an event stands for one fresh sample: "
                "take an optimizer that asks for them once a step (not LBFGS)"
            )
        self._batch = here
        gradients = self._gradients(module, batch)
        if self.plan.relation.unit == "speaker" and len(gradients[0]):
            gradients = [unit_means(gradient, batch["speaker"]) for gradient in gradients]
        self._noisy = self.plan.release(gradients, self._place).value
        if self.watch is not None:
            self.watch(module, torch.cat([noisy.flatten() for noisy in self._noisy]))
        if self._place.ranks == 1:
            return torch.zeros((), device=module.device, requires_grad=True)
        return no_loss(module)

    def said(self, module: lightning.LightningModule, batch: Any, units: Tensor) -> Tensor:
        """What each of the `units` 0, 1, ..., one an example, adds to a step it joins, `(units, numbers)`: for audits.

        Each gradient is as long as the clip: what matters to an attacker is its direction.
        """
        gradients = self._gradients(module, batch)
        each = torch.cat([unit_means(gradient, units).flatten(1) for gradient in gradients], dim=1)
        return self.plan.clip * nn.functional.normalize(each, dim=1)

    def _gradients(self, module: lightning.LightningModule, batch: Any) -> list[Tensor]:
        """All at once, or one after another where a layer can only be differentiated so, which is told once."""
        if not self._one_by_one:
            try:
                return per_sample_gradients(module, batch, self._names, self.chunk, self._step)[0]
            except RuntimeError as error:
                reason = str(error).strip().split("\n")[0]
        found = gradients_one_by_one(module, batch, self._names, self._step)[0]
        if not self._one_by_one:
            self._one_by_one = True
            rank_zero_warn(f"gradients are computed one example after another, which is slow: {reason:.200}")
        return found

    def after_backward(self) -> None:
        """Put the noisy sum, over the expected number of units, in the place of the gradients."""
        if self._noisy is None:
            raise PrivacyError("a backward pass without a release: each noisy sum is used once")
        for parameter, noisy in zip(self._parameters, self._noisy, strict=True):
            parameter.grad = noisy / self.expected_units
        self._noisy = None
        self.spent += 1

    def finish(self, module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Leave nothing behind, and refuse what changed beside the parameters."""
        for undo in reversed(self._undo):
            undo()
        for parameter in self._parameters:
            parameter.grad = None
        self._undo, self._parameters, self._batch = [], [], None
        self._check_rest()
        self._rest = {}

    def account(self) -> Accountant:
        """The steps taken so far, as events. Raises PrivacyError if more than the parameters changed."""
        self._check_rest()
        account = Accountant(self.plan.relation)
        if self.spent:
            account.compose(self.plan.after(self.spent))
        return account

    def guarantee(self) -> Guarantee:
        """What the steps taken so far promise."""
        unit = self.plan.relation.unit
        assumptions = (
            f"the starting point is public: {self.public_start}",
            f"that {self.expected_units:.6g} {unit}s join a step was expected without counting them",
        )
        return self.account().guarantee(self.plan.delta, assumptions=(*self.plan.assumptions, *assumptions))

    def _find_parameters(self, module: lightning.LightningModule) -> None:
        optimizers = module.trainer.optimizers
        if len(optimizers) != 1:
            raise PrivacyError(f"private training needs one optimizer, got {len(optimizers)}")
        trained = {id(p) for group in optimizers[0].param_groups for p in group["params"]}
        pairs = [(name, p) for name, p in module.named_parameters() if id(p) in trained and p.requires_grad]
        self._names, self._parameters = [name for name, _ in pairs], [p for _, p in pairs]
        self._rest = {
            name: (value, value.detach().clone())
            for name, value in module.state_dict(keep_vars=True).items()
            if isinstance(value, Tensor) and id(value) not in trained
        }

    def _check_rest(self) -> None:
        changed = [name for name, (now, before) in self._rest.items() if not torch.equal(now.to(before), before)]
        if changed:
            raise PrivacyError(
                f"{', '.join(changed)} changed in private training, though no optimizer has it: what it says about the "
                "data is not covered. Leave it as it is, or keep it out of the module's state (persistent=False)"
            )
