"""How good a model is: error rates of detectors, EER, detection cost, DET curve; word errors of transcripts.

A trial is accepted when its score is at or above the threshold. Rates are exact on the list of scores: no
binning, ties kept together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from operator import add
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ppspeech.errors import ModelError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


@dataclass(frozen=True)
class ErrorRates:
    """Error rates at every threshold that makes a difference, from accepting all to rejecting all.

    Attributes:
        threshold: increasing, `(points,)`; the distinct scores, then infinity.
        miss: share of targets rejected there, rising from 0 to 1, float64.
        false_alarm: share of impostors accepted there, falling from 1 to 0, float64.
    """

    threshold: Tensor
    miss: Tensor
    false_alarm: Tensor
    targets: int
    impostors: int


def error_rates(scores: Tensor, labels: Tensor) -> ErrorRates:
    """Miss and false-alarm rates at every threshold; a greater score means more like the target, and may be infinite.

    Raises ModelError for NaN scores, differing shapes, or trials of one class only.

    >>> rates = error_rates(torch.tensor([0.1, 0.4, 0.4, 0.9]), torch.tensor([0, 0, 1, 1]))
    >>> rates.miss.tolist(), rates.false_alarm.tolist()
    ([0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.0, 0.0])
    """
    if scores.shape != labels.shape:
        raise ModelError(f"scores {tuple(scores.shape)} and labels {tuple(labels.shape)} differ in shape")
    if bool(scores.isnan().any()):
        raise ModelError(f"{int(scores.isnan().sum())} of {scores.numel()} scores are NaN")
    target = labels.reshape(-1).bool()
    targets, impostors = int(target.sum()), int((~target).sum())
    if not targets or not impostors:
        raise ModelError(
            f"error rates need target and impostor trials, got {targets} targets and {impostors} impostors"
        )
    threshold, place = torch.unique(scores.reshape(-1), sorted=True, return_inverse=True)
    count = torch.zeros(2, len(threshold), dtype=torch.float64, device=scores.device)
    count[0].index_add_(0, place, target.double())
    count[1].index_add_(0, place, (~target).double())
    rejected = torch.cat([count.new_zeros(2, 1), count.cumsum(-1)], dim=-1)
    end = threshold.new_full((1,), torch.inf)
    return ErrorRates(
        torch.cat([threshold, end]), rejected[0] / targets, 1 - rejected[1] / impostors, targets, impostors
    )


def equal_error_rate(scores: Tensor, labels: Tensor) -> float:
    """The rate at which misses and false alarms are equal.

    Interpolated linearly between the two neighboring operating points where the curves cross (a verifier that
    draws between two thresholds attains it). It is never below the EER of the convex hull.

    >>> equal_error_rate(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
    0.5
    """
    rates = error_rates(scores, labels)
    gap = rates.miss - rates.false_alarm  # rises from -1 to 1
    after = int((gap >= 0).nonzero()[0])
    low, high = float(gap[after - 1]), float(gap[after])
    share = -low / (high - low)
    return float(rates.miss[after - 1] * (1 - share) + rates.miss[after] * share)


def equal_error_threshold(scores: Tensor, labels: Tensor) -> float:
    """The threshold whose error rates are closest to equal; the lowest of several."""
    rates = error_rates(scores, labels)
    return float(rates.threshold[:-1][(rates.miss - rates.false_alarm)[:-1].abs().argmin()])


def minimum_dcf(
    scores: Tensor, labels: Tensor, *, p_target: float = 0.01, c_miss: float = 1.0, c_fa: float = 1.0
) -> float:
    """The smallest detection cost over all thresholds, relative to the better of accepting or rejecting all.

    min_t [c_miss p P_miss(t) + c_fa (1 - p) P_fa(t)] / min(c_miss p, c_fa (1 - p)), as NIST reports it; between 0 and
    1. Raises ModelError if p_target is not in (0, 1) or a cost is not positive.
    """
    if not 0 < p_target < 1 or not c_miss > 0 or not c_fa > 0:
        raise ModelError(
            f"detection costs need 0 < p_target < 1 and positive costs, got {p_target}, {c_miss} and {c_fa}"
        )
    rates = error_rates(scores, labels)
    cost = c_miss * p_target * rates.miss + c_fa * (1 - p_target) * rates.false_alarm
    return float(cost.min()) / min(c_miss * p_target, c_fa * (1 - p_target))


def det_curve(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The DET curve (Martin et al. 1997): false alarms and misses on probit axes, `(points,)` each.

    Rates of 0 and 1 have no place on a probit axis, so those points are left out; perfect scores leave none.
    """
    rates = error_rates(scores, labels)
    inside = (rates.miss > 0) & (rates.miss < 1) & (rates.false_alarm > 0) & (rates.false_alarm < 1)
    return torch.special.ndtri(rates.false_alarm[inside]), torch.special.ndtri(rates.miss[inside])


def plot_det(axes: "Axes", scores: Tensor, labels: Tensor, label: str | None = None) -> "Line2D":
    """Draw a DET curve, with percentages along probit axes and the line of equal errors; curves may share axes."""
    false_alarm, miss = det_curve(scores, labels)
    (line,) = axes.plot(false_alarm.tolist(), miss.tolist(), drawstyle="steps-post", label=label)
    percent = [0.1, 0.5, 1, 2, 5, 10, 20, 40, 60, 80]
    places = torch.special.ndtri(torch.tensor(percent, dtype=torch.float64) / 100).tolist()
    names = [f"{value:g}" for value in percent]
    axes.set_xticks(places, names)
    axes.set_yticks(places, names)
    axes.set_xlim(places[0], places[-1])
    axes.set_ylim(places[0], places[-1])
    axes.axline((0.0, 0.0), slope=1.0, color="0.8", linewidth=0.8, zorder=0)
    axes.set_xlabel("false alarms (%)")
    axes.set_ylabel("misses (%)")
    return line


@dataclass(frozen=True, slots=True)
class WordErrors:
    """The fewest edits that turn references into hypotheses, counted by kind."""

    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    words: int = 0

    def __add__(self, other: "WordErrors") -> "WordErrors":
        return WordErrors(*map(add, astuple(self), astuple(other)))

    @property
    def errors(self) -> int:
        """All edits."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """Edits by reference words; may exceed 1. Raises ModelError if there are no reference words to divide by."""
        if not self.words:
            raise ModelError("the word error rate of references without words is not defined")
        return self.errors / self.words


def word_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> WordErrors:
    """Levenshtein alignment of two word sequences. Of equal alignments, the one with most substitutions.

    >>> word_errors("the cat sat".split(), "the bat sat down".split())
    WordErrors(substitutions=1, deletions=0, insertions=1, words=3)
    """
    for words in (reference, hypothesis):
        if isinstance(words, str):
            raise ModelError(f"word_errors takes sequences of words, got the string {words!r}: split it first")
    # (edits, -substitutions, deletions, insertions) for the prefixes seen so far, one row a reference word.
    row = [(j, 0, 0, j) for j in range(len(hypothesis) + 1)]
    for i, said in enumerate(reference, start=1):
        above, row = row, [(i, 0, i, 0)]
        for j, heard in enumerate(hypothesis, start=1):
            edits, subs, dels, ins = above[j - 1]
            differs = int(said != heard)
            diagonal = (edits + differs, subs - differs, dels, ins)
            edits, subs, dels, ins = above[j]
            down = (edits + 1, subs, dels + 1, ins)
            edits, subs, dels, ins = row[j - 1]
            right = (edits + 1, subs, dels, ins + 1)
            row.append(min(diagonal, down, right))
    _, subs, dels, ins = row[-1]
    return WordErrors(-subs, dels, ins, len(reference))


def total_word_errors(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> WordErrors:
    """Errors over many (reference, hypothesis) pairs, pooled."""
    return sum((word_errors(reference, hypothesis) for reference, hypothesis in pairs), WordErrors())
