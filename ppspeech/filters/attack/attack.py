"""Attack a filter: train every attacker on filtered samples and see how often it names the person in new ones. The
evidence a filter without noise stands on. It says what these attackers did, never what a better one could do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from scipy.stats import beta
from torch import Tensor, nn

from ppspeech.audio import Frames, utterance_statistics
from ppspeech.data import Samples
from ppspeech.errors import ModelError
from ppspeech.filters.attack.attackers import SPEECH_ATTACKERS, VECTOR_ATTACKERS
from ppspeech.filters.attack.linkability import Linkability, linkability
from ppspeech.models import equal_error_rate
from ppspeech.progress import track

UNKNOWN = -1  # the label of a test sample by someone the attacker has never met: an impostor in verification


@dataclass(frozen=True)
class Finding:
    """What one attacker achieved on held-out samples.

    `low` and `high` are the accuracy's Clopper-Pearson interval; it takes samples as independent, and is truly wider
    where several were taken from one recording. `eer` is the equal error rate of verification, each sample against each
    known person, with one score threshold for all; samples by unknown people are impostors (open-set verification). 0.5
    is chance.
    """

    attacker: str
    accuracy: float  # share of the samples of known people whose person it names (closed-set identification)
    low: float
    high: float
    eer: float
    linkability: Linkability  # D_sys of the same scores


@dataclass(frozen=True)
class AttackReport:
    """What all attackers achieved."""

    findings: tuple[Finding, ...]
    classes: int  # how many people, or values of the private label, the attackers knew
    samples: int  # held-out samples by known people
    chance: float  # the accuracy of always naming the most frequent person of the training part
    confidence: float

    @property
    def worst(self) -> Finding:
        """The attacker with the greatest accuracy: the one to judge the filter by."""
        return max(self.findings, key=lambda finding: finding.accuracy)

    def __getitem__(self, attacker: str) -> Finding:
        found = {finding.attacker: finding for finding in self.findings}
        if attacker not in found:
            raise KeyError(f"{attacker!r} was not among the attackers: {', '.join(found)}")
        return found[attacker]

    def __str__(self) -> str:
        worst = self.worst
        return (
            f"worst of {len(self.findings)} attackers: {worst.attacker}, {worst.accuracy:.3f} of {self.samples} named "
            f"({100 * self.confidence:g} % interval {worst.low:.3f} to {worst.high:.3f}; chance {self.chance:.3f} "
            f"among {self.classes}), verification EER {worst.eer:.3f}, linkability {worst.linkability.value:.3f}"
        )


def attack(
    train_features: Tensor | Frames,
    train_labels: Tensor,
    test_features: Tensor | Frames,
    test_labels: Tensor,
    attackers: Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> AttackReport:
    """Train attackers from scratch on filtered samples and score them on held-out ones.

    The worst case is taken over attackers on the test samples themselves, which errs on the side of caution. Raises
    ModelError for samples that are not finite or do not fit each other, labels out of range, fewer than two classes, or
    attackers that are unknown or cannot look at such samples.

    Args:
        train_features: filtered samples `(samples, features)`, or Frames of utterances. On frames the attackers on
            vectors see each utterance's mean, maximum, minimum and deviation over time, and those on speech all of it.
        train_labels: whose, `(samples,)`, 0 to classes - 1.
        test_features: of the same kind, from other recordings.
        test_labels: `(samples,)`; -1 for people the attackers never met.
        attackers: names from `attacker_names`; None for all that apply.

    >>> x = torch.cat([torch.randn(40, 2) + 5, torch.randn(40, 2) - 5])
    >>> y = torch.arange(80) // 40
    >>> attack(x[::2], y[::2], x[1::2], y[1::2], ["neighbors"]).worst.accuracy
    1.0
    """
    if not 0 < confidence < 1:
        raise ModelError(f"confidence must lie between 0 and 1, got {confidence}")
    speech = isinstance(train_features, Frames)
    names = attacker_names(speech=speech) if attackers is None else tuple(attackers)
    wrong = [name for name in names if name not in attacker_names(speech=speech)]
    if wrong or not names:
        kind = "frames" if speech else "vectors"
        raise ModelError(
            f"no attacker on {kind} is called {wrong}: known are {', '.join(attacker_names(speech=speech))}"
        )
    classes = _check(train_features, train_labels, test_features, test_labels)
    findings = []
    for name in track(names, "Attacking"):
        scores = _scores(name, train_features, train_labels, test_features, classes, seed)
        findings.append(_finding(name, scores, test_labels, confidence))
    known = int((test_labels != UNKNOWN).sum())
    most = int(torch.bincount(train_labels, minlength=classes).argmax())
    chance = float((test_labels[test_labels != UNKNOWN] == most).double().mean())
    return AttackReport(tuple(findings), classes, known, chance, confidence)


def attacker_names(*, speech: bool) -> tuple[str, ...]:
    """The attackers there are, on vectors or on speech."""
    return (*VECTOR_ATTACKERS, *(SPEECH_ATTACKERS if speech else ()))


def clopper_pearson(right: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion: it covers the truth at least as often as stated.

    >>> low, high = clopper_pearson(0, 10)
    >>> low, round(high, 3)
    (0.0, 0.308)
    """
    half = (1 - confidence) / 2
    low = float(beta.ppf(half, right, trials - right + 1)) if right else 0.0
    high = float(beta.ppf(1 - half, right + 1, trials - right)) if right < trials else 1.0
    return low, high


def _scores(
    name: str, train: Tensor | Frames, labels: Tensor, test: Tensor | Frames, classes: int, seed: int
) -> Tensor:
    """Train one attacker and score the held-out samples, `(samples, classes)`."""
    if name in SPEECH_ATTACKERS:
        assert isinstance(train, Frames)
        assert isinstance(test, Frames)
        return SPEECH_ATTACKERS[name](train, labels, classes, seed)(test)
    return VECTOR_ATTACKERS[name](_vectors(train), labels, classes, seed)(_vectors(test))


def _vectors(features: Tensor | Frames) -> Tensor:
    return utterance_statistics(features) if isinstance(features, Frames) else features


def _finding(name: str, scores: Tensor, labels: Tensor, confidence: float) -> Finding:
    met = labels != UNKNOWN
    right = int((scores[met].argmax(-1) == labels[met]).sum())
    own = torch.arange(scores.shape[1], device=scores.device) == labels.unsqueeze(-1)
    link = linkability(scores[own], scores[~own])
    low, high = clopper_pearson(right, int(met.sum()), confidence)
    return Finding(name, right / int(met.sum()), low, high, equal_error_rate(scores, own), link)


def _check(train: Tensor | Frames, labels: Tensor, test: Tensor | Frames, test_labels: Tensor) -> int:
    """The number of classes, if the parts fit each other."""
    if isinstance(train, Frames) != isinstance(test, Frames):
        raise ModelError("training and test samples must both be vectors or both be Frames")
    wanted = 3 if isinstance(train, Frames) else 2
    parts = {"training": (train, labels), "test": (test, test_labels)}
    values = {name: part.features if isinstance(part, Frames) else part for name, (part, _) in parts.items()}
    for name, (_, own) in parts.items():
        x = values[name]
        if x.ndim != wanted or own.shape != x.shape[:1] or not len(own):
            raise ModelError(
                f"{name} samples must have {wanted} axes and one label each, got {tuple(x.shape)} and "
                f"{tuple(own.shape)}"
            )
        if not bool(x.isfinite().all()):
            raise ModelError(f"{int((~x.isfinite()).sum())} of {x.numel()} values of the {name} samples are not finite")
    if values["training"].shape[-1] != values["test"].shape[-1]:
        raise ModelError(
            f"training samples have {values['training'].shape[-1]} features, test samples {values['test'].shape[-1]}"
        )
    classes = int(labels.max()) + 1
    if int(labels.min()) < 0 or len(torch.unique(labels)) < 2:
        raise ModelError(
            f"training labels must be 0 to classes - 1 with at least two of them, got {torch.unique(labels).tolist()}"
        )
    if int(test_labels.min()) < UNKNOWN or int(test_labels.max()) >= classes or bool((test_labels == UNKNOWN).all()):
        raise ModelError(f"test labels must be 0 to {classes - 1}, or -1 for the unknown, and not all of them unknown")
    return classes


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
