"""Training by private gradients (DP-SGD) under a Lightning Trainer: Poisson batches in, a noisy sum a step out.

The plan (who joins, clipping, noise, event) is `ppspeech.privacy.gradients.GradientPlan`. Per-sample gradients come
from `torch.func`, straight from the losses: one forward pass, any number of inputs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytorch_lightning as lightning
import torch
from pytorch_lightning.utilities.model_helpers import is_overridden
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.utils.data import DataLoader, Dataset

from ppspeech.bundle import DataTouch
from ppspeech.errors import PrivacyError
from ppspeech.privacy import Guarantee, check_single_rows
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.gradients import GradientPlan, Ranks, unit_means

MIXES = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
"""Layers that let the examples of a batch see each other."""


class Losses(nn.Module):
    """A module whose forward pass is the losses of another, for `functional_call`."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, batch: Any) -> Tensor:
        """The losses of a batch, `(batch,)`."""
        losses: Tensor = self.module.losses(batch)  # type: ignore[operator]
        return losses


def mapped(change: Callable[[Tensor], Tensor], batch: Any) -> Any:
    """A batch of the same form (tensors in dicts, lists and tuples) with every tensor changed."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return {name: mapped(change, value) for name, value in batch.items()}
    if isinstance(batch, tuple | list):
        return [mapped(change, value) for value in batch]
    raise PrivacyError(
        f"a batch for private gradients holds tensors, in dicts, lists or tuples, got {type(batch).__name__}"
    )


def size_of(batch: Any) -> int:
    """Examples in a batch."""
    while not isinstance(batch, Tensor):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch))
    return len(batch)


def per_sample_gradients(
    module: nn.Module, batch: Any, names: Sequence[str], chunk: int | None = None
) -> tuple[list[Tensor], Tensor]:
    """The gradient of every example's loss, `(batch, *parameter)` a name, and the losses `(batch,)`."""
    parameters = dict(module.named_parameters())
    if size_of(batch) == 0:
        first = parameters[names[0]]
        return [parameters[name].new_zeros((0, *parameters[name].shape)) for name in names], first.new_zeros(0)
    whole = Losses(module)
    fixed = {f"module.{name}": value.detach() for name, value in parameters.items() if name not in set(names)}
    wanted = {f"module.{name}": parameters[name].detach() for name in names}

    def loss(chosen: dict[str, Tensor], one: Any) -> Tensor:
        alone = mapped(lambda tensor: tensor.unsqueeze(0), one)
        found: Tensor = functional_call(whole, {**fixed, **chosen}, (alone,))
        return found.squeeze(0)

    each = vmap(grad_and_value(loss), in_dims=(None, 0), chunk_size=chunk, randomness="different")
    gradients, losses = each(wanted, batch)
    return [gradients[f"module.{name}"] for name in names], losses


class CollateWithEmpty:
    """A collate function that also makes a batch of nobody, with the tensors and the widths of any other."""

    def __init__(self, dataset: Dataset[Any], collate: Callable[[Any], Any]) -> None:
        self.collate = collate
        self.empty = mapped(lambda tensor: tensor[:0], collate([dataset[0]]))

    def __call__(self, items: Sequence[Any]) -> Any:
        """A batch of these items."""
        return self.collate(items) if items else mapped(torch.clone, self.empty)


class GradientPrivacy:
    """DP-SGD for any LightningModule that has `losses(batch)`, one a loss an example, and one optimizer.

    During the fit it stands in for the module's `training_step`, and draws Poisson batches from the data set behind the
    `train_dataloader` of the data module. An item is a record. Where the unit is a speaker or an utterance, the data
    set says whose its items are (`dataset.speakers` or `dataset.utterances`, a tensor), an utterance's being one; for
    speakers so does a batch (`batch["speaker"]`).

    Formal guarantee: the parameters after the steps taken are (epsilon, delta)-DP under the plan's relation, by the
    privacy loss distribution of the Poisson-sampled Gaussian mechanism, if the module's start, the settings and the
    number of steps do not depend on private data, and each loss is of its own example alone. The number of units scales
    the steps and counts as public. Metrics of private validation data are not covered. What else a module keeps
    (buffers, parameters without an optimizer) must stay as it was: no event covers it, and a change is refused.
    """

    touches = (DataTouch("counts", "not_covered", "the number of units scales every step"),)

    def __init__(self, plan: GradientPlan, chunk: int | None = None, epochs: int = 1) -> None:
        self.plan, self.chunk, self.spent = plan, chunk, 0
        self.planned = epochs * plan.steps_per_epoch
        self._place, self._expected = Ranks(), 1.0
        self._names: list[str] = []
        self._parameters: list[nn.Parameter] = []
        self._rest: dict[str, tuple[Tensor, Tensor]] = {}
        self._noisy: list[Tensor] = []
        self._undo: list[Callable[[], None]] = []
        self._loader: DataLoader[Any] | None = None

    @property
    def terms(self) -> dict[str, Any]:
        """What a resumed run must agree on."""
        names = ("noise_multiplier", "sampling", "clip", "delta", "most")
        relation = {"unit": self.plan.relation.unit, "adjacency": self.plan.relation.adjacency}
        return relation | {name: getattr(self.plan, name) for name in names}

    def attach(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Stand in for the module's training step, and give the trainer Poisson batches."""
        data = getattr(trainer, "datamodule", None)
        source: Any = module if data is None and is_overridden("train_dataloader", module) else data
        mixing = [name for name, layer in module.named_modules() if isinstance(layer, MIXES)]
        reasons = {
            "gradients accumulated over batches": trainer.accumulate_grad_batches == 1,
            "a limit on training batches": trainer.limit_train_batches == 1.0,
            f"{', '.join(mixing)} mixes the examples of a batch: use nn.GroupNorm in its place": not mixing,
            "no data set to draw from: give it as a data module, such as "
            "`trainer.fit(module, datamodule=LightningDataModule.from_datasets(dataset))`": source is not None,
        }
        for reason, holds in reasons.items():
            if not holds:
                raise PrivacyError(f"cannot train privately: {reason}")
        self._place = Ranks(trainer.global_rank, trainer.world_size)
        given = source.train_dataloader
        self._replace(source, "train_dataloader", lambda: self._poisson(given()))
        self._replace(module, "training_step", lambda batch: self.step(module, batch))

    def _replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        had = vars(owner).get(name)
        self._undo.append((lambda: delattr(owner, name)) if had is None else (lambda: setattr(owner, name, had)))
        setattr(owner, name, function)

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
        samples = self.plan.batches(units, self._place)
        self._expected = self.plan.sampling * samples.units
        assert loader.collate_fn is not None
        collate = CollateWithEmpty(dataset, loader.collate_fn)
        self._loader = DataLoader(dataset, batch_sampler=samples, collate_fn=collate, num_workers=loader.num_workers)
        return self._loader

    def step(self, module: lightning.LightningModule, batch: Any) -> Tensor:
        """Bound, add up and blur the gradients of a batch, log nothing; returns a loss that moves no parameter."""
        if not self._parameters:
            if module.trainer.train_dataloader is not self._loader:
                raise PrivacyError(
                    "cannot train privately: the trainer takes its batches elsewhere. Give no loader to `fit`, and set "
                    "use_distributed_sampler to False"
                )
            self._find_parameters(module)
        gradients, _ = per_sample_gradients(module, batch, self._names, self.chunk)
        if self.plan.relation.unit == "speaker" and len(gradients[0]):
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

    def finish(self, module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Leave nothing behind, and refuse what changed beside the parameters."""
        for undo in reversed(self._undo):
            undo()
        for parameter in self._parameters:
            parameter.grad = None
        self._undo, self._parameters = [], []
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
        return self.account().guarantee(self.plan.delta, assumptions=self.plan.assumptions)

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
