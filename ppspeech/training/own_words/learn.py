"""A head for words of one's own, from a few clips of each and a background of other speech."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from ppspeech.arrays import Reals, Whole
from ppspeech.audio import Sound, samples_at
from ppspeech.audio.embeddings import EmbeddingConfig, Pooling
from ppspeech.bundle import Bundle, BundleConfig, DataTouch, EmbeddedRecognizer, EmbeddingHeadSettings
from ppspeech.errors import ModelError, PrivacyError
from ppspeech.models import EmbeddingHead
from ppspeech.privacy import Adjacency, Relation, Unit
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.convex import ObjectivePerturbation
from ppspeech.training.embedded import QUADRATIC, RADIUS, WIDTH, HeadName, fit_head, public_vectors
from ppspeech.training.module import Trained
from ppspeech.training.own_words.background import RATE, Background, digest_of
from ppspeech.training.own_words.calibration import Calibration
from ppspeech.training.own_words.examples import word_examples
from ppspeech.training.own_words.thresholds import calibrate_, even_, margins_of
from ppspeech.training.private.objective import ConvexHook, PrivateFit
from ppspeech.training.private.observed import TUNING
from ppspeech.training.private.record import PrivacyRecord, counts_touch
from ppspeech.training.release import release

Over = Literal["utterance", "window"]
PARTS = 4
CHOSEN = ("faster", "slower")
ROWS = 1_000  # of the background, that train
HARDEST, ROUNDS = 300, 2  # of what trains of the background, those that look most like words, are added, so often
SHARE = 0.2
"""The background's weight, of that of all clips. All of these were chosen on six of FSDD's digits, five clips of each
by three people, tried on the other three, and on commands by the built-in voices, likewise."""


@dataclass(frozen=True)
class WordPrivacy:
    """What is promised to whoever speaks in the clips: (epsilon, delta)-DP for one clip, or one speaker with all clips.

    Raises PrivacyError for another unit; what else is wrong, the mechanism refuses.
    """

    epsilon: float
    delta: float = 1e-5
    unit: Unit = "utterance"
    adjacency: Adjacency = "add_remove"

    def __post_init__(self) -> None:
        if self.unit not in ("utterance", "speaker"):
            raise PrivacyError(f"learning words protects one utterance or one speaker, got unit {self.unit!r:.40}")
        self.hook(1.0)  # refuses bad numbers before anything is heard

    def hook(self, quadratic: float) -> ObjectivePerturbation:
        """The budget for one head."""
        relation = Relation(self.unit, self.adjacency)
        return ObjectivePerturbation(
            epsilon=self.epsilon, delta=self.delta, relation=relation, regularization=quadratic
        )


@dataclass(frozen=True, eq=False)
class LearnedWords:
    """A head and all that a bundle says about it. `calibration` is None where there is no background."""

    head: EmbeddingHead
    embedding: EmbeddingConfig
    labels: tuple[str, ...]
    config: BundleConfig
    calibration: Calibration | None
    touches: tuple[DataTouch, ...]
    record: PrivacyRecord | None

    def recognizer(self) -> EmbeddedRecognizer:
        """The head with its front end, in the clear: `decide(vectors)`, `scores(vectors)`, `recognize_all(sounds)`."""
        return EmbeddedRecognizer(self.labels, self.embedding, self.head, self.calibration is not None)

    def release(self, folder: str | Path) -> Bundle:
        """Write the bundle, with its statement: of the guarantee, or that there is none."""
        trained = Trained(self.head, self.config, self.touches, self.record)
        return release(trained, folder, not_private=self.record is None, name="the head")


def learn_words(
    words: Mapping[str, Sequence[Sound] | Reals],
    background: Background | None,
    *,
    head: HeadName = "logistic",
    over: Over = "utterance",
    embedding: EmbeddingConfig | None = None,
    rate: int | None = None,
    changes: Sequence[str] | None = None,
    alarms_an_hour: float = 1.0,
    privacy: WordPrivacy | None = None,
    speakers: Mapping[str, Sequence[str]] | None = None,
    quadratic: float | None = None,
) -> LearnedWords:
    """Learn words from clips of each.

    A logistic head that listens on (`over` window) has a threshold for every word, by `even_`, which says how that was
    chosen.

    Formal guarantee: with `privacy` the head is (epsilon, delta)-DP for one clip, or one speaker, of `words`, by
    objective perturbation; scale and thresholds come from the background, which is public, and from the head.

    Args:
        words: clips of each word, by its label: sounds, or what `word_examples` made of them, `(clips, variants,
            features)` or `(clips, features)`, so that nothing is embedded twice.
        background: speech that is none of them; None for at least two words that are told apart and nothing else.
        over: `utterance`, for what is cut out already, or `window`, for listening on.
        embedding: the front end in place of that of `over`.
        rate: of waveforms, in Hz.
        changes: what else to learn from, of `CHANGES`; None takes what was found to help, where nothing is promised.
        alarms_an_hour: how often other speech may be taken for a word.
        speakers: who speaks in each clip, for the unit `speaker`.
        quadratic: Lambda of the sum form, in place of the head's own.

    Raises ModelError for too few words or clips, or a clip that is in the background too; AudioError for sounds that
    cannot be used; PrivacyError where nobody knows whose clips they are.
    """
    if head not in QUADRATIC:
        raise ModelError(f"heads are {', '.join(QUADRATIC)}, got {head!r:.40}")
    front_end = embedding or EmbeddingConfig("speech", pooling=Pooling(over, PARTS))
    labels = tuple(sorted(words))
    if len(labels) < (1 if background is not None else 2):
        raise ModelError(
            f"{len(labels)} words and no background: one word is told from other speech, two from each other"
            if background is None
            else "no words: give at least one, with clips of it"
        )
    chosen = (CHOSEN if privacy is None else ()) if changes is None else tuple(changes)
    ready = {label: _ready(label, words[label], front_end, rate, chosen, background) for label in labels}
    first = 0 if background is None else 1
    model = EmbeddingHead(len(labels) + first, front_end.features, head, RADIUS, WIDTH)
    public = public_vectors(front_end) if background is None else background.trained_on(front_end.pooling, ROWS)
    model.scale_(torch.from_numpy(public).float())
    strength = QUADRATIC[head] if quadratic is None else quadratic
    examples = _rows(ready, labels, first, privacy, speakers)
    record: PrivacyRecord | None = None
    if privacy is not None:
        record = _fit_privately(model, examples, public if first else None, privacy, strength)
    elif background is None:
        examples.fit(model, strength)
    else:
        _fit(model, examples, background, front_end.pooling, public, strength)
    model.eval()
    if background is not None and front_end.pooling.over == "window" and head == "logistic":
        even_(model, front_end.pooling, background, alarms_an_hour)
    found = None if background is None else calibrate_(model, front_end.pooling, background, alarms_an_hour)
    settings = EmbeddingHeadSettings(
        label="word",
        head=head,
        radius=RADIUS,
        width=WIDTH,
        background=background is not None,
        alarms_an_hour=0.0 if found is None else alarms_an_hour,
    )
    config = BundleConfig(settings, labels, None, embedding=front_end)
    return LearnedWords(model, front_end, labels, config, found, _touches(background, found), record)


def _ready(
    label: str,
    clips: Sequence[Sound] | Reals,
    embedding: EmbeddingConfig,
    rate: int | None,
    changes: Sequence[str],
    background: Background | None,
) -> Reals:
    """Vectors of one word, `(clips, variants, features)`."""
    if not len(clips):
        raise ModelError(f"there is no clip of {label!r}: give at least one")
    if isinstance(clips, np.ndarray) and clips.ndim in (2, 3):
        made = clips[:, None] if clips.ndim == 2 else clips
        if made.shape[-1] != embedding.features or not np.isfinite(made).all():
            raise ModelError(f"vectors of {label!r} have {embedding.features} finite numbers, got {clips.shape}")
        return made
    if background is not None:
        known = background.digests
        for clip in clips:
            if digest_of(samples_at(clip, rate, RATE)) in known:
                name = f"{clip}" if isinstance(clip, str | Path) else f"a clip of {label!r}"
                raise ModelError(
                    f"{name} is in the background too, which is public and none of the words: leave it out there"
                )
    return word_examples(list(clips), embedding, rate, changes)


@dataclass(frozen=True, eq=False)
class _Examples:
    """Vectors `(n, features)`, their classes, their weights and whose they are, `(n,)` each."""

    vectors: Reals
    classes: Whole
    weights: Reals
    units: Whole

    def with_background(self, vectors: Reals) -> "_Examples":
        """With vectors of class 0, which are public: each is a unit of its own."""
        count = len(vectors)
        return _Examples(
            np.concatenate([vectors, self.vectors]),
            np.concatenate([np.zeros(count, np.int64), self.classes]),
            np.concatenate([np.full(count, SHARE * self.weights.sum() / count), self.weights]),
            np.concatenate([-1 - np.arange(count), self.units]),
        )

    def fit(self, model: EmbeddingHead, quadratic: float, privacy: ConvexHook | None = None) -> PrivateFit | None:
        """Train a head on them; with privacy each unit counts once, whatever its weight."""
        x, y = torch.from_numpy(self.vectors).float(), torch.from_numpy(self.classes)
        weights, units = (torch.from_numpy(self.weights), None) if privacy is None else (None, self.units)
        whose = None if units is None else torch.from_numpy(units)
        return fit_head(model, x, y, quadratic=quadratic, weights=weights, privacy=privacy, units=whose)


def _fit(
    model: EmbeddingHead,
    examples: _Examples,
    background: Background,
    pooling: Pooling,
    public: Reals,
    quadratic: float,
) -> None:
    """Train, then again with what of the background was most like a word, where nothing is promised to anybody."""
    all_of_it = np.concatenate([stream.vectors(pooling) for stream in background.training])
    examples.with_background(public).fit(model, quadratic)
    for _ in range(ROUNDS):
        hardest = np.argsort(-margins_of(model, all_of_it))[:HARDEST]
        public = np.concatenate([public, all_of_it[hardest]])
        examples.with_background(public).fit(model, quadratic)


def _fit_privately(
    model: EmbeddingHead, examples: _Examples, public: Reals | None, privacy: WordPrivacy, quadratic: float
) -> PrivacyRecord:
    """Train once, to the guarantee."""
    hook = privacy.hook(quadratic)
    done = (examples if public is None else examples.with_background(public)).fit(model, quadratic, hook)
    assert done is not None
    account = Accountant(hook.relation)
    account.compose(done.event)
    return PrivacyRecord.of(account, done.guarantee, _told(hook.relation))


def _rows(
    ready: Mapping[str, Reals],
    labels: Sequence[str],
    first: int,
    privacy: WordPrivacy | None,
    speakers: Mapping[str, Sequence[str]] | None,
) -> _Examples:
    """A clip's weights sum to 1; an utterance that is to be protected is learned from as it is, once."""
    one = privacy is not None and privacy.unit == "utterance"
    people = _people(ready, labels, speakers) if privacy is not None and privacy.unit == "speaker" else None
    rows, classes, weights, units = [], [], [], []
    count = 0
    for place, label in enumerate(labels):
        made = ready[label][:, :1] if one else ready[label]
        clips, variants = made.shape[:2]
        rows.append(made.reshape(clips * variants, -1))
        classes.append(np.full(clips * variants, place + first, np.int64))
        weights.append(np.full(clips * variants, 1 / variants))
        own = np.arange(count, count + clips) if people is None else people[label]
        units.append(np.repeat(own, variants))
        count += clips
    return _Examples(np.concatenate(rows), np.concatenate(classes), np.concatenate(weights), np.concatenate(units))


def _people(
    ready: Mapping[str, Reals], labels: Sequence[str], speakers: Mapping[str, Sequence[str]] | None
) -> Mapping[str, Whole]:
    if speakers is None or any(len(speakers.get(label, ())) != len(ready[label]) for label in labels):
        raise PrivacyError("to protect a speaker, tell who speaks in each clip: one name a clip of every word")
    names = sorted({name for label in labels for name in speakers[label]})
    place = {name: number for number, name in enumerate(names)}
    return {label: np.array([place[name] for name in speakers[label]], np.int64) for label in labels}


def _told(relation: Relation) -> tuple[DataTouch, ...]:
    return (
        DataTouch("early_stopping", "untouched", "one release, fixed in advance"),
        TUNING,
        DataTouch("initialization", "untouched", "a certified minimum does not depend on where it is sought"),
        counts_touch(relation),
    )


def _touches(background: Background | None, found: Calibration | None) -> tuple[DataTouch, ...]:
    """Where the scale and the threshold come from."""
    if background is None or found is None:
        return (
            DataTouch("normalization", "untouched", "vectors are scaled by statistics of the built-in, public voices"),
            DataTouch("threshold", "untouched", "the model has none: the highest score wins"),
        )
    return (
        DataTouch("normalization", "untouched", f"vectors are scaled by a public background: {background.says}"),
        DataTouch("threshold", "untouched", f"set by the head and a public background, {background.says}: {found}"),
    )
