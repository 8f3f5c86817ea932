"""How a filter did on held-out samples: what a task classifier keeps of it, and what attackers find behind it."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from ppspeech.audio import Frames
from ppspeech.data import Samples
from ppspeech.filters.attack.attack import AttackReport, Finding, attack


@dataclass(frozen=True, eq=False)
class FilterEvidence:
    """What was found on held-out recordings: the label to keep by a logistic classifier, the one to hide by all."""

    task: Finding
    attacks: AttackReport


def judge(
    train: tuple[Tensor | Frames, Tensor, Tensor],
    test: tuple[Tensor | Frames, Tensor, Tensor],
    attackers: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> FilterEvidence:
    """Train a task classifier and attackers on filtered samples, and score them on held-out ones. Each part is filtered
    samples, their labels to keep and their labels to hide, as `attack` takes them; no recording is in both.
    """
    task = attack(train[0], train[1], test[0], test[1], ("logistic",)).worst
    return FilterEvidence(task, attack(train[0], train[2], test[0], test[2], attackers, seed=seed))


def judge_samples(
    samples: Samples,
    is_test: Tensor,
    attackers: Sequence[str] | None = None,
    *,
    module: nn.Module | None = None,
    seed: int = 0,
) -> FilterEvidence:
    """As `judge`, for samples of a corpus or table and a filter; without one, for the samples as they are."""
    kept, private = samples.kept_numbers, samples.private_numbers
    parts = [(samples.part(rows, module), kept[rows], private[rows]) for rows in (~is_test, is_test)]
    return judge(parts[0], parts[1], attackers, seed=seed)
