"""Recipes in two real processes, one after another, and what each process was left with."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytorch_lightning as lightning
import torch
from torch import distributed, multiprocessing

from ppspeech.errors import ModelError
from ppspeech.privacy.gradients import PoissonBatches
from ppspeech.training.private import PrivacyHook
from ppspeech.training.recipe import run_recipe
from tests.ports import free_port

TWO = ["--trainer.devices", "2", "--trainer.strategy", "ddp"]
QUIET = ["--trainer.enable_progress_bar", "false", "--trainer.accelerator", "cpu", "--trainer.logger", "false"]
FOLDER = "FOLDER"  # in the words of a recipe: where the results are


class SecondFails(lightning.Callback):
    """Something goes wrong in the second process, and nowhere else."""

    def on_train_batch_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """In the middle of training."""
        if trainer.global_rank == 1:
            raise ModelError("the second disk is full")


def trained(words: list[str], folder: Path, name: str) -> dict[str, Any]:
    """Run a recipe, and say what it was left with: parameters, metrics, what a private run drew and spent.

    Its noise is left away, so that runs can be compared; that there is one, other tests see.
    """
    torch.manual_seed(0)
    drawn: list[list[int]] = []
    plain = PoissonBatches.__iter__

    def recorded(batches: PoissonBatches) -> Iterator[list[int]]:
        for batch in plain(batches):
            drawn.append(batch)
            yield batch

    sums, objective = "ppspeech.privacy.mechanisms.unit_sum", "ppspeech.privacy.convex.objective"
    with (
        patch.object(PoissonBatches, "__iter__", recorded),
        patch(f"{sums}.whole_noise", lambda _, like: torch.zeros_like(like)),
        patch(f"{objective}.isotropic_normal", lambda shape, **_: torch.zeros(shape, dtype=torch.float64)),
    ):
        cli = run_recipe([*words, *QUIET, "--trainer.default_root_dir", str(folder / name)])
    hooks = [hook for hook in cli.trainer.callbacks if isinstance(hook, PrivacyHook)]  # type: ignore[attr-defined]
    return {
        "state": {part: comparable(part, value) for part, value in cli.model.state_dict().items()},
        "metrics": {metric: float(value) for metric, value in cli.trainer.callback_metrics.items()},
        "events": [hook.account().to_json() for hook in hooks],
        "drawn": drawn,
    }


def comparable(name: str, value: torch.Tensor) -> torch.Tensor:
    """A factor of a covariance has signs that mean nothing: its square has none."""
    is_factor = name.endswith("spread") and value.ndim > 1 and value.shape[-1] == value.shape[-2]
    return (value @ value.mT).clone() if is_factor else value.clone()


def in_two_processes(recipes: Mapping[str, list[str]], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What both processes were left with, by recipe."""
    multiprocessing.spawn(_process, args=(dict(recipes), str(folder), free_port()), nprocs=2)  # type: ignore[no-untyped-call]
    return {name: [torch.load(folder / f"{name}-{rank}.pt") for rank in (0, 1)] for name in recipes}


def _process(rank: int, recipes: dict[str, list[str]], folder: str, port: int) -> None:
    """One of two processes that the recipes find there already, as they do on a cluster."""
    os.environ |= {"LOCAL_RANK": str(rank), "NODE_RANK": "0", "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    for name, words in recipes.items():
        here = [word.replace(FOLDER, folder) for word in words]
        torch.save(trained([*here, *TWO], Path(folder), name), Path(folder) / f"{name}-{rank}.pt")
    distributed.destroy_process_group()
