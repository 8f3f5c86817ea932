"""Confusion matrices: what was said against what was heard, counted, logged and drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.intervals import Mean
from ppspeech.pictures import blank, save, shortened
from ppspeech.ranks import Ranks

MOST_NAMED = 40  # words in a picture that have their name and counts; it does not grow beyond


class Confusion:
    """Counts of (said, heard).

    >>> confusion = Confusion(["no", "yes"])
    >>> confusion.add(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]))
    >>> confusion.counts.tolist(), round(float(confusion.accuracy()), 3)
    ([[1, 0], [1, 1]], 0.667)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._flat: Tensor | None = None

    @property
    def counts(self) -> Tensor:
        """`(said, heard)`."""
        if self._flat is None:
            raise ModelError("nothing was recognized yet: there is no confusion matrix")
        return self._flat.view(len(self.names), len(self.names))

    def add(self, said: Tensor, heard: Tensor) -> None:
        """Count a batch of labels, each `(batch,)`, on their own device."""
        flat = torch.bincount(said * len(self.names) + heard, minlength=len(self.names) ** 2)
        self._flat = flat if self._flat is None else self._flat + flat

    def over(self, place: Ranks, device: torch.device) -> "Confusion":
        """What all ranks counted together."""
        if place.ranks == 1:
            return self
        both, none = Confusion(self.names), torch.zeros(len(self.names) ** 2, dtype=torch.int64, device=device)
        both._flat = place.added(none if self._flat is None else self._flat)
        return both

    def accuracy(self) -> Tensor:
        """The share that was heard right."""
        return self.counts.diagonal().sum() / self.counts.sum()

    def plot(self, path: str | Path, title: str = "") -> None:
        """Draw it, saved as .png, .pdf or .svg: with a count in every cell, or as shades alone where words are many."""
        counts = self.counts.cpu().numpy()
        apart = -(-len(self.names) // MOST_NAMED)  # every so many-th word is named
        size = 2.5 + 0.45 * min(len(self.names), MOST_NAMED)
        figure = blank(size, size)
        axes = figure.subplots()
        axes.imshow(counts / counts.sum(1, keepdims=True).clip(1), cmap="Blues", vmin=0, vmax=1)
        for row, column in zip(*counts.nonzero(), strict=True) if apart == 1 else ():
            shade = "white" if counts[row, column] > counts[row].sum() / 2 else "black"
            axes.text(column, row, counts[row, column], ha="center", va="center", color=shade, fontsize=8)
        places = range(0, len(self.names), apart)
        named = [shortened(self.names[place]) for place in places]
        axes.set_xticks(places, named, rotation=90)
        axes.set_yticks(places, named)
        some = f" (one of {apart} words is named)" if apart > 1 else ""
        axes.set(xlabel=f"heard{some}", ylabel=f"said{some}")
        axes.set_title(title or f"{float(self.accuracy()):.2%} of {counts.sum():,} right")
        save(figure, path, dpi=120)


class ConfusionCallback(lightning.Callback):
    """Counts what a module recognizes in validation and testing.

    The module's `validation_step` and `test_step` return `{"said": (batch,), "heard": (batch,)}` and its `labels` say
    what the integers mean. Logs `val_accuracy` and `test_accuracy`, with half the width of its 95 % interval over the
    speakers where there are two or more; `confusion.png` goes beside the test's logs.
    """

    def __init__(self) -> None:
        self._confusion = Confusion(())
        self._right: dict[int, list[bool]] = {}

    def on_validation_epoch_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Forget the counts of the last pass."""
        self._confusion = Confusion(module.labels)  # type: ignore[arg-type]

    def on_test_epoch_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Forget the counts of the last pass."""
        self.on_validation_epoch_start(trainer, module)
        self._right = {}

    def on_validation_batch_end(self, trainer: Any, module: Any, outputs: Any, *_: Any) -> None:  # noqa: ARG002
        """Count a batch."""
        self._confusion.add(outputs["said"], outputs["heard"])

    def on_test_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, *_: Any) -> None:  # noqa: ARG002
        """Count a batch, in all and by speaker."""
        self._confusion.add(outputs["said"], outputs["heard"])
        right = outputs["said"] == outputs["heard"]
        for speaker, well in zip(batch["speaker"].tolist(), right.tolist(), strict=True):
            self._right.setdefault(speaker, []).append(well)

    def on_validation_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Log the accuracy."""
        all_of_them = self._confusion.over(Ranks.of(trainer), module.device)
        module.log("val_accuracy", all_of_them.accuracy(), prog_bar=True)

    def on_test_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Log the accuracy and draw the matrix."""
        place = Ranks.of(trainer)
        confusion, right = self._confusion.over(place, module.device), dict[int, list[bool]]()
        for speaker, own in place.gathered(list(self._right.items())):
            right[speaker] = right.get(speaker, []) + own
        module.log("test_accuracy", confusion.accuracy())
        if len(right) > 1:
            by_speaker = Mean.of([sum(each) / len(each) for each in right.values()])
            module.log("test_accuracy_half_width", by_speaker.half_width)
        folder = trainer.log_dir
        if folder is not None and place.first:
            confusion.plot(Path(folder) / "confusion.png")
