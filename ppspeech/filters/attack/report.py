"""What attackers achieved: a row an attacker and number of clips, and the worst of them at each number."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.filters.attack.linkability import Linkability, linkability
from ppspeech.intervals import clopper_pearson
from ppspeech.models import equal_error_rate, error_rates

UNKNOWN = -1  # the label of a test sample by someone the attacker has never met; other people may be -2, -3, …
FEWEST_PEOPLE = 6  # with fewer values of the private label it is hardly people, and there is nothing to draw from
RESAMPLES = 2_000


@dataclass(frozen=True)
class Finding:
    """What one attacker achieved on held-out clips, so many of one person at a time.

    `low` and `high` are the accuracy's interval: people are drawn again, with all their clips (bootstrap), because
    clips of one person are not independent. Where everyone is named equally often, or the private label has fewer
    than six values, it is the interval of Clopper and Pearson, over people or over samples.

    Verification takes each set of clips against each known person, with one score threshold for all; people the
    attacker never met are impostors (open-set verification).
    """

    attacker: str  # `inverted.`, `reconstructed.` or `ranked.` in front: what it looked at instead of filtered samples
    accuracy: float  # share of the sets of known people whose person it names (closed-set identification)
    low: float
    high: float
    eer: float  # equal error rate of verification; 0.5 is chance
    linkability: Linkability  # D_sys of the same scores
    clips: int = 1  # of one person, pooled
    at_percent: float = 0.0  # share of the true claims accepted where 1 % of the false ones are
    at_permille: float = 0.0  # where 0.1 % are


@dataclass(frozen=True)
class AttackReport:
    """What all attackers achieved. The headline is the worst at each number of clips (`headline`, `worst_at`)."""

    findings: tuple[Finding, ...]
    classes: int  # how many people, or values of the private label, the attackers knew
    samples: int  # held-out samples by known people
    chance: float  # the accuracy of always naming the most frequent person of the training part
    confidence: float
    left_out: tuple[str, ...] = ()  # attackers that the time did not suffice for, and numbers of clips nobody has
    open_set: tuple[Finding, ...] = ()  # the worst at each number of clips again, with half of the people strangers

    @property
    def worst(self) -> Finding:
        """The attacker that names most people from one clip, or from the fewest that were pooled."""
        return self.worst_at(self.clips[0])

    @property
    def clips(self) -> tuple[int, ...]:
        """The numbers of clips that were pooled."""
        return tuple(sorted({finding.clips for finding in self.findings}))

    @property
    def headline(self) -> Mapping[int, Finding]:
        """The worst attacker at each number of clips: what to judge a filter by."""
        return {clips: self.worst_at(clips) for clips in self.clips}

    def worst_at(self, clips: int) -> Finding:
        """The attacker that names most people from so many clips. Raises ModelError where nobody has so many."""
        return max(self.at(clips), key=lambda finding: finding.accuracy)

    def at(self, clips: int) -> tuple[Finding, ...]:
        """Every attacker's finding from so many clips. Raises ModelError where nobody has so many."""
        found = tuple(finding for finding in self.findings if finding.clips == clips)
        if not found:
            raise ModelError(f"nothing was pooled from {clips} clips: there is {', '.join(map(str, self.clips))}")
        return found

    def __getitem__(self, asked: str | tuple[str, int]) -> Finding:
        """What an attacker found from one clip, or from so many."""
        name, clips = asked if isinstance(asked, tuple) else (asked, 1)
        found = {finding.attacker: finding for finding in self.findings if finding.clips == clips}
        if name not in found:
            raise KeyError(f"{name!r} was not among the attackers: {', '.join(found)}")
        return found[name]

    def __str__(self) -> str:
        names = {finding.attacker for finding in self.findings}
        said = [_said(finding, self.confidence) for finding in self.headline.values()]
        return f"worst of {len(names)} attackers: {'; '.join(said)}; chance {self.chance:.3f} among {self.classes}"


@dataclass(frozen=True, eq=False)
class FilterEvidence:
    """What was found on held-out recordings: the label to keep by a logistic classifier, the one to hide by all."""

    task: Finding
    attacks: AttackReport


def finding(name: str, scores: Tensor, labels: Tensor, clips: int, confidence: float, seed: int) -> Finding:
    """From scores `(sets, classes)` and whose the sets are."""
    met = labels >= 0
    right = (scores[met].argmax(-1) == labels[met]).double()
    low, high = by_person(right, labels[met], confidence, seed)
    own = torch.arange(scores.shape[1], device=scores.device) == labels.unsqueeze(-1)
    return Finding(
        name,
        float(right.mean()),
        low,
        high,
        equal_error_rate(scores, own),
        linkability(scores[own], scores[~own]),
        clips,
        *(true_positives(scores, own, rate) for rate in (0.01, 0.001)),
    )


def true_positives(scores: Tensor, own: Tensor, rate: float) -> float:
    """The largest share of true claims that a threshold accepts while it accepts at most `rate` of the false ones.

    >>> true_positives(torch.tensor([3.0, 1.0, 2.0, 0.0]), torch.tensor([True, True, False, False]), 0.01)
    0.5
    """
    rates = error_rates(scores, own)
    return float(1 - rates.miss[rates.false_alarm <= rate].min())


def by_person(right: Tensor, people: Tensor, confidence: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """An interval of the share that is right, `(sets,)`, by drawing people again; see Finding."""
    whose, place = torch.unique(people, return_inverse=True)
    if len(whose) < FEWEST_PEOPLE:
        return clopper_pearson(float(right.sum()), len(right), confidence)
    counts = torch.bincount(place).double()
    hits = torch.zeros_like(counts).index_add_(0, place, right.double())
    shares = hits / counts
    if float(shares.max() - shares.min()) < 1e-9:
        return clopper_pearson(float(shares.sum()), len(shares), confidence)
    generator = np.random.default_rng(seed)
    drawn = torch.from_numpy(generator.integers(len(whose), size=(RESAMPLES, len(whose))))
    again = hits.cpu()[drawn].sum(1) / counts.cpu()[drawn].sum(1)
    half = (1 - confidence) / 2
    low, high = again.quantile(torch.tensor([half, 1 - half], dtype=torch.float64)).tolist()
    return low, high


def _said(found: Finding, confidence: float) -> str:
    clips = "1 clip" if found.clips == 1 else f"{found.clips} clips"
    return (
        f"from {clips} {found.attacker} names {found.accuracy:.3f} ({100 * confidence:g} % interval {found.low:.3f} to "
        f"{found.high:.3f}, EER {found.eer:.3f})"
    )
