"""Which word is it? A model of words or classes, used in the clear."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import LIMIT, Mfcc, MfccConfig, Sound, features_of, usual_radius, usual_range
from ppspeech.bundle.config import BundleConfig
from ppspeech.errors import ModelError
from ppspeech.models import FrameNetwork, ScoreFloor, UtteranceClassifier, WordModel, floored_scores, score_floor
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel

INSIDE = 2.0  # standard deviations of every state that the limit leaves room for
DEEPEST = 1 << 16  # nats below the highest that frames within the radius may score, for all lengths to fit their shares


NO_GARBAGE = "models for a margin and classifiers are no densities: there is no garbage model to reject with"
GARBAGE = 0.0  # nats a frame that the garbage model gets on top: the larger, the more is rejected


@dataclass(frozen=True, slots=True)
class Recognized:
    """What was heard in one utterance.

    Attributes:
        value: the word or class; None where `reject` was asked for and a garbage model fits better than any word.
        margin: nats above the next, which of several words is closest; the longer the clip, the more.
        confidence: probability of the answer among the words and the garbage model, as if an utterance told as much as
            its average frame: neighboring frames tell the same thing, and their product would always be sure.
    """

    value: str | None
    margin: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Recognizer:
    """A model in the clear: features `(batch, frames, features)` and lengths to scores `(batch, words)`.

    Frames are brought within `radius` (`word_radius`) and clipped to `limit` spreads (`feature_limit`), so that a
    server that computes on shares, which have a range, gives the same answers. Where there is no radius, what a frame
    scores counts as `floor` if it is below (`score_floor`). None has a model that takes one vector an utterance, or a
    network, which clips its frames itself.
    """

    names: tuple[str, ...]
    mfcc: MfccConfig
    model: nn.Module
    limit: float | None
    radius: float | None
    floor: ScoreFloor | None

    @classmethod
    def of(cls, model: nn.Module, config: BundleConfig) -> "Recognizer":
        """A model with what its bundle, or checkpoint, says about it."""
        mfcc = config.front_end
        radius = word_radius(model, mfcc)
        floor = None if radius is not None else score_floor(model)
        return cls(config.labels, mfcc, model, feature_limit(model, mfcc), radius, floor)

    @property
    def front_end(self) -> MfccConfig:
        """What it listens through."""
        return self.mfcc

    @torch.no_grad()
    def recognize_all(
        self, sounds: Sequence[Sound], rate: int | None = None, *, reject: bool = False, garbage: float = GARBAGE
    ) -> list[Recognized]:
        """The words of many utterances: waveforms `(samples,)` with one rate in Hz, or sound files that can be used.

        With `reject` the garbage model competes, `garbage` nats a frame on top, as a server's does: "none of them" can
        be the answer. Raises ModelError where there is none.
        """
        return self.decide(features_of(sounds, Mfcc(self.mfcc), rate), reject=reject, garbage=garbage)

    def decide(self, features: Sequence[Tensor], *, reject: bool = False, garbage: float = GARBAGE) -> list[Recognized]:
        """As `recognize_all`, from features, each `(frames, features)`."""
        scores, names = self.score(features), self.names
        other = self.garbage_scores(features, garbage)
        if reject and other is None:
            raise ModelError(NO_GARBAGE)
        everything = scores if other is None else torch.cat([scores, other.to(scores).unsqueeze(-1)], dim=-1)
        frames = torch.tensor([1 if self.limit is None else len(each) for each in features], dtype=torch.float64)
        sure = (everything.double() / frames.unsqueeze(-1)).softmax(-1)
        candidates = everything if reject else scores
        best = candidates.topk(min(2, candidates.shape[-1]))
        places = best.indices[:, 0].tolist()
        margins = (best.values[:, 0] - best.values[:, -1]).tolist()
        return [
            Recognized(names[place] if place < len(names) else None, margin, float(row[place]))
            for place, margin, row in zip(places, margins, sure, strict=True)
        ]

    @torch.no_grad()
    def garbage_scores(self, features: Sequence[Tensor], garbage: float = GARBAGE) -> Tensor | None:
        """Scores of any speech, no word, for each utterance; None where the model is no density.

        The garbage model is one Gaussian with the mean and covariance of all states of all words together.
        """
        emission = getattr(self.model, "emission", None)
        if not isinstance(emission, GaussianEmission):
            return None
        pooled, least = emission.gaussians.pooled(), -torch.inf if self.floor is None else self.floor.level
        frames = [pooled.log_density(self.clipped(x).double()) + garbage for x in features]
        return torch.stack([each.clamp_min(least).sum() for each in frames])

    @torch.no_grad()
    def score(self, features: Sequence[Tensor]) -> Tensor:
        """Scores of utterances, each `(frames, features)`: `(utterances, words)`."""
        lengths = torch.tensor([len(frames) for frames in features])
        clipped = self.clipped(pad_sequence(list(features), batch_first=True))
        if isinstance(self.model, WordModel) and (self.floor is not None or self.radius is not None):
            return floored_scores(self.model, clipped, lengths, self.floor)
        scores: Tensor = self.model(clipped, lengths)
        return scores

    def clipped(self, features: Tensor) -> Tensor:
        """Frames `(…, features)` within radius and limit."""
        return features if self.limit is None else clipped_to(features, self.limit, self.mfcc, self.radius)


def clipped_to(features: Tensor, limit: float, mfcc: MfccConfig, radius: float | None = None) -> Tensor:
    """Frames `(…, features)` within so many spreads of their usual center, in all directions together within `radius`
    of them, if any: first that, as an encrypted client does.
    """
    center, spread = (torch.from_numpy(part).to(features) for part in usual_range(mfcc))
    if radius is not None:
        norms = ((features - center) / spread).norm(dim=-1, keepdim=True)
        features = center + (features - center) * (radius / norms.clamp_min(radius))
    return features.clamp(center - limit * spread, center + limit * spread)


@torch.no_grad()
def feature_limit(model: nn.Module, mfcc: MfccConfig) -> float | None:
    """How many spreads (`usual_range`) a feature may lie from its center: clipped there, in the clear and encrypted.

    `LIMIT`, doubled until every state's mean and two deviations lie within: a client that is told it learns about the
    model how often. None for a model of whole utterances, or a network, whose vectors have a public radius instead.
    """
    if isinstance(model, UtteranceClassifier | FrameNetwork):
        return None
    limit = LIMIT
    if isinstance(model, HiddenMarkovModel) and isinstance(model.emission, GaussianEmission):
        gaussians = model.emission.gaussians
        center, spread = map(torch.from_numpy, usual_range(mfcc))
        deviations = gaussians.covariances().diagonal(dim1=-2, dim2=-1).double().sqrt()
        reach = float((((gaussians.mean.double() - center).abs() + INSIDE * deviations) / spread).max())
        while limit < reach:
            limit *= 2
    return limit


@torch.no_grad()
def feature_radius(bank: HiddenMarkovModel, mfcc: MfccConfig) -> float:
    """How far a frame may lie from its center, all features together, in spreads: what is beyond is brought there.

    `usual_radius`, doubled until frames of every state usually lie within, |x|^2 by two deviations above
    what is expected of it,

        E|x|^2 = |m|^2 + tr S,      Var |x|^2 = 2 tr S^2 + 4 m' S m.

    A client that is told it learns about the model how often.
    """
    mean, covariances = _in_spreads(bank, mfcc)
    square = mean.square().sum(-1) + covariances.diagonal(dim1=-2, dim2=-1).sum(-1)
    around = (mean.unsqueeze(-2) @ covariances @ mean.unsqueeze(-1)).squeeze((-2, -1))
    deviation = (2 * covariances.square().sum((-2, -1)) + 4 * around).sqrt()
    reach, radius = float((square + INSIDE * deviation).max().sqrt()), usual_radius(mfcc.features)
    while radius < reach:
        radius *= 2
    return radius


@torch.no_grad()
def word_radius(model: nn.Module, mfcc: MfccConfig) -> float | None:
    """`feature_radius` of word models, from released weights alone; None where they have a `score_floor` instead.

    Models that are no Gaussians have none, nor have those so steep that a frame within it could score more than
    `DEEPEST` nats below the highest peak: by up to (radius + |m|)^2 / 2 λ below a Gaussian's own, λ the least
    eigenvalue of its covariance.
    """
    if not isinstance(model, HiddenMarkovModel) or not isinstance(model.emission, GaussianEmission):
        return None
    radius = feature_radius(model, mfcc)
    mean, covariances = _in_spreads(model, mfcc)
    spectrum, logits = torch.linalg.eigvalsh(covariances), model.emission.weight_logits
    peaks = -spectrum.log().sum(-1) / 2 + (0.0 if logits is None else logits.double().log_softmax(-1))
    lowest = peaks - (radius + mean.norm(dim=-1)).square() / (2 * spectrum[..., 0])
    return radius if float(peaks.max() - lowest.min()) <= DEEPEST else None


def _in_spreads(bank: HiddenMarkovModel, mfcc: MfccConfig) -> tuple[Tensor, Tensor]:
    """Means `(..., d)` and covariances `(..., d, d)` of features in their usual range."""
    assert isinstance(bank.emission, GaussianEmission)
    center, spread = map(torch.from_numpy, usual_range(mfcc))
    gaussians = bank.emission.gaussians
    mean = (gaussians.mean.double() - center) / spread
    return mean, gaussians.covariances().double() / (spread.unsqueeze(-1) * spread)
