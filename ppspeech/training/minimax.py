"""Minimax filters for large networks and corpora: alternating gradient steps, or gradient reversal, by Lightning.

`ppspeech.filters.learn_filter` solves the inner problems exactly and holds all data at once. Here the opponents are
networks that follow with steps of their own, on batches. The game is the same (Hamm 2015 eq. 9): the filter descends
- loss_private + rho loss_task while each opponent descends its own loss, private ones too. A filter recipe plays it
with `solver: adversarial` (`configs/filter_network.yaml`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

import pytorch_lightning as lightning
import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from ppspeech.data import LengthBuckets
from ppspeech.errors import ModelError
from ppspeech.filters import ClassTask, FilterCertificate, FlatFilter, MinimaxProblem, Mlp, Result
from ppspeech.ranks import Ranks
from ppspeech.training.module import quiet_lightning

Mode = Literal["steps", "reversal"]


class MinimaxFilter(lightning.LightningModule):
    """A filter and its opponents.

    Batches are mappings with `features` `(batch, D)` or `(batch, frames, D)`, integer labels `(batch,)` under the
    names of the tasks, and, for frames of differing numbers, `lengths` `(batch,)`. Every frame is one observation.

    An adversary's loss counts for the filter only up to that of guessing, ln(classes): a best response never does
    worse, so a larger loss only shows an opponent that lags behind, and chasing it makes such games diverge.

    With several ranks all play one game: losses are means over the observations of all, and gradients are added up, so
    that a step is that of one process. The Trainer's strategy is `ddp` or `ddp_spawn`, its sampler not distributed
    (`use_distributed_sampler=False`), and a data module gives every rank its part of each batch.

    Args:
        module: the filter: maps features to features, with `.features`; it wants standardized inputs.
        private: how many classes each label to hide has, by name.
        task: how many classes each label to keep has, by name.
        rho: what the task weighs against the secret, > 0.
        mode: `steps` lets the opponents take `opponent_steps` steps on a batch before the filter takes one;
            `reversal` moves all at once, with the gradient that reaches the filter from adversaries reversed.
        opponent_steps: k >= 1; only for `steps`.
        hidden: units of one hidden layer of the opponents; 0 makes them linear, as in the paper.
        learning_rate: of the filter's Adam.
        opponent_rate: of the opponents' Adam.
    """

    def __init__(
        self,
        module: nn.Module,
        private: Mapping[str, int],
        task: Mapping[str, int],
        rho: float = 10.0,
        mode: Mode = "steps",
        opponent_steps: int = 5,
        hidden: int = 0,
        learning_rate: float = 1e-3,
        opponent_rate: float = 1e-2,
    ) -> None:
        super().__init__()
        if mode not in get_args(Mode):
            raise ModelError(f"mode must be one of {', '.join(get_args(Mode))}, got {mode!r}")
        if not private or not task or min(*private.values(), *task.values()) < 2:
            raise ModelError(f"need private and task labels of at least two classes, got {private} and {task}")
        if set(private) & set(task):
            raise ModelError(f"a label cannot be hidden and kept at once: {sorted(set(private) & set(task))}")
        if not rho > 0 or opponent_steps < 1 or hidden < 0:
            raise ModelError(f"need rho > 0, opponent_steps >= 1, hidden >= 0, got {rho}, {opponent_steps}, {hidden}")
        self.automatic_optimization = False
        self.filter = module
        self.classes = {**private, **task}
        self.hide, self.keep = tuple(private), tuple(task)
        self.rho, self.mode, self.opponent_steps = rho, mode, opponent_steps
        self.learning_rate, self.opponent_rate = learning_rate, opponent_rate
        layers = [hidden] if hidden else []
        size = cast(int, module.features)
        self.opponents = nn.ModuleDict({name: Mlp(size, layers, classes) for name, classes in self.classes.items()})

    @property
    def ranks(self) -> Ranks:
        """Which of the Trainer's processes this is."""
        return Ranks.of(self._trainer)

    def forward(self, features: Tensor) -> Tensor:
        """Filter a batch."""
        return cast(Tensor, self.filter(features))

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """One Adam for the filter, one for all opponents."""
        return [
            torch.optim.Adam(self.filter.parameters(), self.learning_rate),
            torch.optim.Adam(self.opponents.parameters(), self.opponent_rate),
        ]

    def training_step(self, batch: Mapping[str, Tensor]) -> None:
        """One step of the filter, and those of its opponents."""
        of_filter, of_opponents = cast(list[LightningOptimizer], self.optimizers())
        if self.mode == "steps":
            still = self(batch["features"]).detach()
            for _ in range(self.opponent_steps):
                of_opponents.zero_grad()
                self._descend(torch.stack(list(self.losses(batch, still, still).values())).sum(), of_opponents)
            filtered = self(batch["features"])
            losses = self.losses(batch, filtered, filtered)
            counted = [losses[name] * self._is_ahead(name, losses[name]) for name in self.hide]
            of_filter.zero_grad()
            kept = self.rho * torch.stack([losses[name] for name in self.keep]).sum()
            self._descend(kept - torch.stack(counted).sum(), of_filter)
        else:
            filtered = self(batch["features"])
            losses = self.losses(batch, reversed_gradient(filtered), filtered)
            for optimizer in (of_filter, of_opponents):
                optimizer.zero_grad()
            kept = self.rho * torch.stack([losses[name] for name in self.keep]).sum()
            self._descend(kept + torch.stack([losses[name] for name in self.hide]).sum(), of_filter, of_opponents)
        self.log_dict({f"train_loss/{name}": self._of_all(loss) for name, loss in losses.items()})

    def _of_all(self, loss: Tensor) -> Tensor:
        """The mean over all ranks' observations, of which `loss` is this rank's part."""
        return self.ranks.added(loss.detach()) / self.ranks.ranks

    def _is_ahead(self, name: str, loss: Tensor) -> Tensor:
        """Whether an adversary does better than guessing: only then the filter runs from it."""
        return self._of_all(loss) <= math.log(self.classes[name])

    def _descend(self, loss: Tensor, *optimizers: LightningOptimizer) -> None:
        """A step along the gradient of all ranks' losses."""
        if self.ranks.ranks == 1:
            self.manual_backward(loss)
        else:  # not by way of the Trainer, who would wait for a gradient of every parameter
            loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad = self.ranks.added(parameter.grad) / self.ranks.ranks
            optimizer.step()

    def validation_step(self, batch: Mapping[str, Tensor]) -> None:
        """The accuracy of every opponent as it is: retrain attackers before believing it."""
        filtered = self(batch["features"])
        keep = _observations(batch, filtered)
        for name in self.classes:
            right = self.opponents[name](filtered)[keep].argmax(-1) == _labels(batch, name, filtered)[keep]
            self.log(f"accuracy/{name}", right.to(filtered.dtype).mean(), prog_bar=True, batch_size=int(right.numel()))

    def test_step(self, batch: Mapping[str, Tensor]) -> None:
        """As in validation."""
        self.validation_step(batch)

    def losses(self, batch: Mapping[str, Tensor], to_hide: Tensor, to_keep: Tensor) -> dict[str, Tensor]:
        """Each opponent's mean cross-entropy: private ones are given `to_hide`, the others `to_keep`. The average over
        all ranks of what they get is the mean over all observations.
        """
        keep = _observations(batch, to_keep)
        share = self.ranks.ranks / int(self.ranks.added(keep.sum()))
        found = {}
        for name in self.classes:
            filtered = to_hide if name in self.hide else to_keep
            scores = self.opponents[name](filtered)
            labels = _labels(batch, name, filtered)[keep]
            found[name] = functional.cross_entropy(scores[keep], labels, reduction="sum") * share
        return found


@dataclass(frozen=True, kw_only=True)
class AdversarialSolver:
    """Moves a filter by playing the game of `MinimaxFilter`; an iteration is an epoch. `mode`, `opponent_steps`,
    `hidden` and the rates are those of `MinimaxFilter`; `seed` is of the opponents' start and the order of batches.
    With several `devices` as many processes share every batch, and end where one would, to rounding.
    """

    mode: Mode = "steps"
    opponent_steps: int = 5
    hidden: int = 32
    learning_rate: float = 1e-3
    opponent_rate: float = 1e-2
    batch_size: int = 256
    seed: int = 0
    devices: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.devices <= self.batch_size:
            raise ModelError(f"devices must lie in 1..{self.batch_size}, the size of a batch, got {self.devices}")

    def __call__(self, problem: MinimaxProblem, module: nn.Module, iterations: int) -> Result:
        """Play from where the filter is; it is changed in place and returned.

        The history holds Phi by exact inner solves at the start and at the end; it may have gone up. Raises ModelError
        for tasks that are not classes, or filters of whole utterances.
        """
        tasks = {f"task{place}": task for place, task in enumerate((*problem.private, *problem.utility))}
        classes = {name: task.classes for name, task in tasks.items() if isinstance(task, ClassTask)}
        if len(classes) < len(tasks) or problem.inputs.ndim != 2:
            raise ModelError("the adversarial solver takes labels of classes and one observation a sample")
        hidden, kept = list(classes)[: len(problem.private)], list(classes)[len(problem.private) :]
        columns = [problem.inputs.float(), *(cast(ClassTask, task).labels for task in tasks.values())]
        before = _exactly(problem, module)

        quiet_lightning()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            data = Observations(dict(zip(("features", *tasks), columns, strict=True)), self.batch_size, self.seed)
            private, task = ({name: classes[name] for name in side} for side in (hidden, kept))
            opponents = self.mode, self.opponent_steps, self.hidden, self.learning_rate, self.opponent_rate
            game = MinimaxFilter(module.float(), private, task, problem.rho, *opponents)
            trainer = lightning.Trainer(
                max_epochs=iterations,
                limit_val_batches=0,
                accelerator="cpu",
                devices=self.devices,
                strategy="auto" if self.devices == 1 else "ddp_spawn",
                use_distributed_sampler=False,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
            )
            trainer.fit(game, datamodule=data)
        after = _exactly(problem, module)
        certificate = FilterCertificate(after[1], before[0] - after[0], after[2], iterations, converged=False)
        return Result(module, (before[0], after[0]), certificate, "adversarial")


class Observations(lightning.LightningDataModule):
    """Columns `(n, ...)` by name, in shuffled batches of which every rank has its part."""

    def __init__(self, columns: Mapping[str, Tensor], batch_size: int, seed: int) -> None:
        super().__init__()
        self.columns, self.batch_size, self.seed = dict(columns), batch_size, seed

    def train_dataloader(self) -> DataLoader[dict[str, Tensor]]:
        """Of an epoch."""
        sizes = [1] * len(self.columns["features"])
        batches = LengthBuckets(sizes, self.batch_size, seed=self.seed, place=Ranks.of(self.trainer))
        return DataLoader(_Rows(self.columns), sampler=batches, batch_size=None)


class _Rows(Dataset[dict[str, Tensor]]):
    """An item is a batch: the rows at these places."""

    def __init__(self, columns: dict[str, Tensor]) -> None:
        self.columns = columns

    def __getitem__(self, places: list[int]) -> dict[str, Tensor]:
        return {name: column[places] for name, column in self.columns.items()}


def _exactly(problem: MinimaxProblem, module: nn.Module) -> tuple[float, float, float]:
    """Phi where the filter is, the norm of its gradient, and what the inner solves were left with."""
    flat = FlatFilter(module.double())
    here = problem.evaluate(flat, flat.vector())
    return float(here.value), float(problem.gradient(here).norm()), here.residual


def reversed_gradient(features: Tensor) -> Tensor:
    """The features as they are, with minus one times the gradient."""
    return 2 * features.detach() - features


def _observations(batch: Mapping[str, Tensor], filtered: Tensor) -> Tensor:
    """Which observations count, bool `(batch,)` or `(batch, frames)`: frames past an utterance's end do not."""
    if filtered.ndim == 2 or "lengths" not in batch:
        return torch.ones(filtered.shape[:-1], dtype=torch.bool, device=filtered.device)
    frames = torch.arange(filtered.shape[1], device=filtered.device)
    return frames < batch["lengths"].unsqueeze(-1)


def _labels(batch: Mapping[str, Tensor], name: str, filtered: Tensor) -> Tensor:
    """A label for every observation."""
    if name not in batch:
        raise ModelError(f"batches have no label {name!r}; they have {', '.join(sorted(batch))}")
    labels = batch[name]
    return labels if filtered.ndim == 2 else labels.unsqueeze(-1).expand(filtered.shape[:-1])
