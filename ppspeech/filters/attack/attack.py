"""Attack a filter: train every attacker on filtered samples and see how often it names the person in new ones, from one
clip and from several of one person. The evidence a filter without noise stands on. It says what these attackers did,
never what a better one could do. Limit 4.6 in docs/theory/filters.md.
"""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ppspeech.audio import Frames, utterance_statistics
from ppspeech.cluster import HERE, Pool, in_order
from ppspeech.data import Samples
from ppspeech.errors import ModelError
from ppspeech.filters.attack.attackers import (
    CLIP_ATTACKERS,
    SET_ATTACKERS,
    SPEECH_ATTACKERS,
    VECTOR_ATTACKERS,
    VOICE_ATTACKERS,
    Clips,
)
from ppspeech.filters.attack.heard import Hearing
from ppspeech.filters.attack.known_filter import Inverse, KnownFilter, ranked, seen_as
from ppspeech.filters.attack.report import FEWEST_PEOPLE, UNKNOWN, AttackReport, FilterEvidence, Finding, finding

CLIPS = (1, 3, 10, 30)  # of one person, pooled
SETS_A_PERSON = 20  # of held-out clips, drawn anew for each number of clips
ORDER = (
    "plda", "lda", "voice_logistic", "logistic", "mean", "voice", "spread", "parzen", "codes", "lda_heard", "neighbors",
    "word_logistic", "forest", "word_svm", "voice_tuned", "networks", "deep_sets", "svm", "gmm_ubm", "embedding", "mlp",
    "trees",
)  # fmt: skip
"""All attackers, what names most in the least time first: the order in which a time budget is spent."""


def attack(
    train_features: Tensor | Frames,
    train_labels: Tensor,
    test_features: Tensor | Frames,
    test_labels: Tensor,
    attackers: Sequence[str] | None = None,
    *,
    words: tuple[Tensor, Tensor] | None = None,
    known: KnownFilter | None = None,
    sounds: tuple[Frames, Frames] | None = None,
    clips: Sequence[int] = CLIPS,
    minutes: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    workers: Pool = HERE,
) -> AttackReport:
    """Train attackers from scratch on filtered samples and score them on held-out ones, one by one and in sets.

    A set is so many held-out samples of one person, drawn without return; an attacker on single clips adds up its
    scores (log posteriors), and some look at whole sets. The worst case is taken over attackers on the test samples
    themselves, which errs on the side of caution. Raises ModelError for samples that are not finite or do not fit each
    other, labels out of range, fewer than two classes, or attackers that are unknown or cannot look at such samples.

    Args:
        train_features: filtered samples `(samples, features)`, or Frames of utterances. On frames the attackers on
            vectors see each utterance's mean, maximum, minimum and deviation over time, and those on speech all of it.
        train_labels: whose, `(samples,)`, 0 to classes - 1.
        test_features: of the same kind, from other recordings.
        test_labels: `(samples,)`; -1, -2, … for people the attackers never met.
        attackers: names from `attacker_names`, with `ranked.` in front for features replaced by their ranks, and
            `inverted.` or `reconstructed.` for what is made of a `known` filter; None for all that apply, on all that.
        words: what was said in the training and the test samples, `(samples,)` each, 0, 1, …: known to the attackers.
        known: the filter, if the attacker has it: then its layers are undone.
        sounds: where the samples are sound, what a public voice embedding hears in the training and the test samples
            (`heard_in_sound`): it attacks too. It also does where a view is cepstra of `known.mfcc`.
        clips: how many of one person are pooled; numbers that nobody has are left out, and the report says so.
        minutes: no attacker starts after so long; the report says which did not.
        workers: who trains and scores the attackers, each of which is an item.

    >>> x = torch.cat([torch.randn(40, 2) + 5, torch.randn(40, 2) - 5])
    >>> y = torch.arange(80) // 40
    >>> attack(x[::2], y[::2], x[1::2], y[1::2], ["neighbors"]).worst_at(10).accuracy
    1.0
    """
    if not 0 < confidence < 1:
        raise ModelError(f"confidence must lie between 0 and 1, got {confidence}")
    if not clips or min(clips) < 1:
        raise ModelError(f"numbers of clips must be >= 1, got {tuple(clips)}")
    speech = isinstance(train_features, Frames)
    classes = _check(train_features, train_labels, test_features, test_labels)
    said = _words(words, train_labels, test_labels)
    views: dict[str, Inverse] = known.views(train_features, seed) if known is not None else {}
    views = {"": lambda y: y, **views, "ranked": ranked(train_features)}
    mfcc = None if known is None else known.mfcc
    one = train_features.features[:1, :1] if isinstance(train_features, Frames) else train_features[:1]
    sizes = {name: int(view(one).shape[-1]) for name, view in views.items()}
    hearing = Hearing(train_features, test_features, mfcc, sounds, sizes)
    names = _names(attackers, views, speech, hearing)
    sets = {size: rows for size in sorted({*clips}) if len(rows := draw_sets(test_labels, size, seed))}
    left_out = [f"{size} clips: too few people have so many" for size in clips if size not in sets]
    left_out += [f"voice: {hearing.refusal}"] if attackers is None and speech and hearing.refusal else []
    needed = {view: views[view] for view in dict.fromkeys(name.rpartition(".")[0] for name in names)}
    shown = {name: (seen_as(view, train_features), seen_as(view, test_features)) for name, view in needed.items()}
    task = _Tried(shown, hearing, train_labels, test_labels, said, sets, classes, confidence, seed, _ends(minutes))
    found = in_order(workers, task, list(enumerate(names)), "Attacking")
    findings = [each for those in found for each in those or ()]
    left_out += [name for name, those in zip(names, found, strict=True) if those is None]
    report = AttackReport(tuple(findings), classes, *_chance(train_labels, test_labels, classes), confidence)
    report = replace(report, left_out=tuple(left_out))
    if attackers is not None or classes < 2 * FEWEST_PEOPLE or not bool((test_labels >= 0).all()):
        return report
    labeled = (train_features, train_labels), (test_features, test_labels)
    return replace(report, open_set=_open_set(report, labeled, words, known, sounds, seed))


@dataclass(frozen=True)
class _Tried:
    """One attacker, trained and scored by whichever process: called with its place and name."""

    shown: dict[str, tuple[Tensor | Frames, Tensor | Frames]]  # by view
    hearing: Hearing
    train_labels: Tensor
    test_labels: Tensor
    words: tuple[Tensor, Tensor]
    sets: dict[int, Tensor]
    classes: int
    confidence: float
    seed: int
    ends: float  # of the clock on the wall, which workers have too

    def __call__(self, which: tuple[int, str]) -> list[Finding] | None:
        place, name = which
        if place and time.time() > self.ends:
            return None
        view, _, attacker = name.rpartition(".")
        parts = self.shown[view]
        if attacker in VOICE_ATTACKERS:
            parts = self.hearing.heard(view, parts)
        scored = _scores(attacker, parts, self.train_labels, self.words, self.sets, self.classes, self.seed)
        return [
            finding(name, scores, self.test_labels[self.sets[size][:, 0]], size, self.confidence, self.seed)
            for size, scores in scored
        ]


def _ends(minutes: float | None) -> float:
    return math.inf if minutes is None else time.time() + 60 * minutes


def attacker_names(*, speech: bool, hears: bool = False) -> tuple[str, ...]:
    """The attackers there are, on vectors, on speech, and on what a voice embedding hears, what names most in the least
    time first.
    """
    known = [*VECTOR_ATTACKERS, *CLIP_ATTACKERS, *SET_ATTACKERS]
    known += [*SPEECH_ATTACKERS] if speech else []
    known += [*VOICE_ATTACKERS] if hears else []
    return tuple(name for name in ORDER if name in known)


def judge(
    train: tuple[Tensor | Frames, Tensor, Tensor],
    test: tuple[Tensor | Frames, Tensor, Tensor],
    attackers: Sequence[str] | None = None,
    *,
    known: KnownFilter | None = None,
    sounds: tuple[Frames, Frames] | None = None,
    clips: Sequence[int] = CLIPS,
    minutes: float | None = None,
    seed: int = 0,
    workers: Pool = HERE,
) -> FilterEvidence:
    """Train a task classifier and attackers on filtered samples, and score them on held-out ones. Each part is filtered
    samples, their labels to keep and their labels to hide, as `attack` takes them; no recording is in both. Attackers
    know the label that was kept.
    """
    task = attack(train[0], train[1], test[0], test[1], ("logistic",), clips=(1,)).worst
    found = attack(
        train[0], train[2], test[0], test[2], attackers, words=(train[1], test[1]), known=known, sounds=sounds,
        clips=clips, minutes=minutes, seed=seed, workers=workers,
    )  # fmt: skip
    return FilterEvidence(task, found)


def judge_samples(
    samples: Samples,
    is_test: Tensor,
    attackers: Sequence[str] | None = None,
    *,
    module: nn.Module | None = None,
    known: KnownFilter | None = None,
    clips: Sequence[int] = CLIPS,
    minutes: float | None = None,
    seed: int = 0,
    workers: Pool = HERE,
) -> FilterEvidence:
    """As `judge`, for samples of a corpus or table and a filter, which the attackers know; without one, for the samples
    as they are, which a `known` filter may have made.
    """
    kept, private = samples.kept_numbers, samples.private_numbers
    parts = [(samples.part(rows, module), kept[rows], private[rows]) for rows in (~is_test, is_test)]
    if known is None and module is not None:
        known = KnownFilter(module, mfcc=samples.mfcc)
    sounds = None if module is not None or not samples.sounds else (samples.heard(~is_test), samples.heard(is_test))
    return judge(
        parts[0], parts[1], attackers, known=known, sounds=sounds, clips=clips, minutes=minutes, seed=seed,
        workers=workers,
    )  # fmt: skip


def draw_sets(labels: Tensor, size: int, seed: int) -> Tensor:
    """Sets of so many samples of one person, `(sets, size)`: everyone's samples are shuffled and dealt out until there
    are twenty sets a person; single ones are all there are, once. None where less than half of the known people have
    so many.
    """
    if size == 1:
        return torch.arange(len(labels), device=labels.device).unsqueeze(-1)
    generator = torch.Generator().manual_seed(seed)
    people, counts = torch.unique(labels, return_counts=True)
    if 2 * int((counts[people >= 0] >= size).sum()) < int((people >= 0).sum()):
        return labels.new_zeros(0, size)
    sets = []
    for person in people[counts >= size].tolist():
        own = (labels == person).nonzero().flatten()
        hands = len(own) // size
        for _ in range(math.ceil(SETS_A_PERSON / hands)):
            order = torch.randperm(len(own), generator=generator)[: hands * size].to(own.device)
            sets.append(own[order].view(hands, size))
    return torch.cat(sets)


def _open_set(
    report: AttackReport,
    parts: tuple[tuple[Tensor | Frames, Tensor], tuple[Tensor | Frames, Tensor]],
    words: tuple[Tensor, Tensor] | None,
    known: KnownFilter | None,
    sounds: tuple[Frames, Frames] | None,
    seed: int,
) -> tuple[Finding, ...]:
    """The worst attacker at each number of clips again: half of the people, drawn at random, are strangers to it."""
    (train, labels), (test, test_labels) = parts
    order = torch.randperm(report.classes, generator=torch.Generator().manual_seed(seed)).to(labels.device)
    number = torch.empty_like(order)
    number[order] = torch.arange(report.classes, device=order.device)
    met = report.classes // 2
    place = number[labels]
    renamed = torch.where(number < met, number, met + UNKNOWN - number)[test_labels]
    rows = place < met
    some = Frames(train.features[rows], train.lengths[rows]) if isinstance(train, Frames) else train[rows]
    said = None if words is None else (words[0][rows], words[1])
    heard = None if sounds is None else (Frames(sounds[0].features[rows], sounds[0].lengths[rows]), sounds[1])
    found = []
    for size, worst in report.headline.items():
        again = attack(
            some, place[rows], test, renamed, (worst.attacker,), words=said, known=known, sounds=heard, clips=(size,),
            confidence=report.confidence, seed=seed,
        )  # fmt: skip
        found.append(again.worst)
    return tuple(found)


def _chance(train: Tensor, test: Tensor, classes: int) -> tuple[int, float]:
    """How many held-out samples known people have, and how often the most frequent person of the training is theirs."""
    known = test[test >= 0]
    most = int(torch.bincount(train, minlength=classes).argmax())
    return len(known), float((known == most).double().mean())


def _scores(
    name: str,
    parts: tuple[Tensor | Frames, Tensor | Frames],
    labels: Tensor,
    words: tuple[Tensor, Tensor],
    sets: dict[int, Tensor],
    classes: int,
    seed: int,
) -> Iterator[tuple[int, Tensor]]:
    """Train one attacker and score the sets of each size, `(sets, classes)`; one on clips is trained once for all."""
    train, test = parts
    if name in SPEECH_ATTACKERS or name in VOICE_ATTACKERS:
        assert isinstance(train, Frames)
        assert isinstance(test, Frames)
        on_frames = (SPEECH_ATTACKERS if name in SPEECH_ATTACKERS else VOICE_ATTACKERS)[name]
        scores = on_frames(train, labels, classes, seed)(test)
    elif name in VECTOR_ATTACKERS:
        scores = VECTOR_ATTACKERS[name](_vectors(train), labels, classes, seed)(_vectors(test))
    else:
        seen, asked = Clips(_vectors(train), words[0]), Clips(_vectors(test), words[1])
        if name in SET_ATTACKERS:
            for size, rows in sets.items():
                if size > 1:
                    scorer = SET_ATTACKERS[name](seen, labels, classes, seed, size)
                    yield size, scorer(Clips(asked.features[rows], asked.words[rows]))
            return
        scores = CLIP_ATTACKERS[name](seen, labels, classes, seed)(asked)
    for size, rows in sets.items():
        yield size, scores[rows].mean(1)


def _vectors(features: Tensor | Frames) -> Tensor:
    return utterance_statistics(features) if isinstance(features, Frames) else features


def _names(attackers: Sequence[str] | None, views: Iterable[str], speech: bool, hearing: Hearing) -> tuple[str, ...]:
    """Attackers on views, in the order to try them: each on everything before the next."""
    every = [
        f"{view}.{name}" if view else name
        for name in attacker_names(speech=speech, hears=True)
        for view in (hearing.views if name in VOICE_ATTACKERS else views)
    ]
    if attackers is None:
        return tuple(every)
    wrong = [name for name in attackers if name not in every]
    if any(name.rpartition(".")[2] in VOICE_ATTACKERS for name in wrong):
        raise ModelError(hearing.refusal or f"a voice embedding hears {', '.join(hearing.views) or 'the sound'} alone")
    if wrong or not attackers:
        kind = "frames" if speech else "vectors"
        raise ModelError(f"no attacker on {kind} is called {wrong}: known are {', '.join(every)}")
    return tuple(attackers)


def _words(words: tuple[Tensor, Tensor] | None, train: Tensor, test: Tensor) -> tuple[Tensor, Tensor]:
    """What was said, checked; all the same where nothing is known."""
    if words is None:
        return torch.zeros_like(train), torch.zeros_like(test)
    for given, labels in zip(words, (train, test), strict=True):
        if given.shape != labels.shape or given.is_floating_point() or int(given.min()) < 0:
            raise ModelError(
                f"words must be numbers 0, 1, … of {tuple(labels.shape)}, got {given.dtype} of {tuple(given.shape)}"
            )
    return words


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
    if int(test_labels.max()) >= classes or not bool((test_labels > UNKNOWN).any()):
        raise ModelError(
            f"test labels must be 0 to {classes - 1}, or below 0 for the unknown, and not all of them unknown"
        )
    return classes
