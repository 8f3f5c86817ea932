"""The types of models that ppspeech releases."""

from dataclasses import dataclass
from typing import Literal

from torch import nn

from ppspeech.audio import MfccConfig
from ppspeech.bundle.registry import Shapes, register_model
from ppspeech.errors import BundleError
from ppspeech.models import UtteranceClassifier
from ppspeech.models.gaussian import Covariance, GaussianMixture
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, left_right
from ppspeech.models.margin import LargeMarginGaussians, LargeMarginHmm, MarginLoss

MOST_STATES = 1_000


@register_model("keyword_hmm")
@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordHmmSettings:
    """One left-right hidden Markov model a word, with Gaussians or mixtures in its states."""

    states: int
    components: int
    covariance: Covariance
    floor: float
    skips: int
    must_finish: bool

    def __post_init__(self) -> None:
        _check_states(self.states)

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Says which of {len(labels)} words was spoken, by one hidden Markov model a word."

    def tensors(self, labels: tuple[str, ...], mfcc: MfccConfig) -> Shapes:
        """Transitions and Gaussians; weights only where there is something to weigh."""
        words, d = len(labels), mfcc.features
        bank = (words, self.states) if self.components == 1 else (words, self.states, self.components)
        shapes = {
            "initial_logits": (words, self.states),
            "transition_logits": (words, self.states, self.states),
            "emission.gaussians.mean": (*bank, d),
            "emission.gaussians.spread": _spread(bank, d, self.covariance),
        }
        return shapes if self.components == 1 else {**shapes, "emission.weight_logits": bank}

    def build(self, labels: tuple[str, ...], mfcc: MfccConfig) -> HiddenMarkovModel:
        """The bank: features and lengths to scores, `(batch, words)`."""
        emission = GaussianEmission(
            len(labels), self.states, mfcc.features, self.components, self.covariance, self.floor
        )
        return HiddenMarkovModel(left_right(self.states, self.skips, self.must_finish), emission)


@register_model("large_margin_keyword")
@dataclass(frozen=True, slots=True, kw_only=True)
class LargeMarginKeywordSettings:
    """One left-right model a word whose states are matrices Phi, trained for a margin."""

    states: int
    margin: float
    width: float

    def __post_init__(self) -> None:
        _check_states(self.states)

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Says which of {len(labels)} words was spoken, by word models trained for a margin."

    def tensors(self, labels: tuple[str, ...], mfcc: MfccConfig) -> Shapes:
        """Transitions and every Phi as svec."""
        words, size = len(labels), mfcc.features + 1
        return {
            "vector": (words, self.states, size * (size + 1) // 2),
            "initial_logits": (words, self.states),
            "transition_logits": (words, self.states, self.states),
        }

    def build(self, labels: tuple[str, ...], mfcc: MfccConfig) -> LargeMarginHmm:
        """The bank: features and lengths to scores, `(batch, words)`."""
        return LargeMarginHmm(left_right(self.states), len(labels), mfcc.features, self.margin, self.width)


@register_model("speaker_ubm")
@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerUbmSettings:
    """A background model of many speakers, from which a device enrolls its own speaker.

    Attributes:
        threshold: accept at or above it; None where none was released (it would have touched private speech).
    """

    components: int
    covariance: Covariance
    floor: float
    relevance: float
    threshold: float | None

    def task(self, labels: tuple[str, ...]) -> str:  # noqa: ARG002
        """What it is for."""
        return "Verifies speakers: a background model from which speakers are enrolled on their own device."

    def tensors(self, labels: tuple[str, ...], mfcc: MfccConfig) -> Shapes:  # noqa: ARG002
        """Weights and Gaussians."""
        bank = (self.components,)
        return {
            "logits": bank,
            "gaussians.mean": (*bank, mfcc.features),
            "gaussians.spread": _spread(bank, mfcc.features, self.covariance),
        }

    def build(self, labels: tuple[str, ...], mfcc: MfccConfig) -> GaussianMixture:
        """The mixture; `SpeakerVerifier.enroll` takes it."""
        if labels:
            raise BundleError(f"a background model has no labels, got {len(labels)}")
        return GaussianMixture(self.components, mfcc.features, self.covariance, self.floor)


@register_model("large_margin_classifier")
@dataclass(frozen=True, slots=True, kw_only=True)
class LargeMarginClassifierSettings:
    """Large-margin Gaussians on utterance statistics."""

    label: Literal["emotion", "gender", "word", "speaker"]
    width: float
    radius: float

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Tells which {self.label} of {len(labels)} a whole utterance has, by large-margin Gaussians."

    def tensors(self, labels: tuple[str, ...], mfcc: MfccConfig) -> Shapes:
        """Every Phi as svec, and the public scale of the statistics."""
        values = 4 * mfcc.features
        return {
            "model.vector": (len(labels), 1, (values + 1) * (values + 2) // 2),
            "mean": (values,),
            "std": (values,),
        }

    def build(self, labels: tuple[str, ...], mfcc: MfccConfig) -> nn.Module:
        """The classifier: features and lengths to scores, `(batch, classes)`."""
        loss = MarginLoss(width=self.width)
        model = LargeMarginGaussians(len(labels), 4 * mfcc.features, loss=loss, psd="projection", radius=self.radius)
        return UtteranceClassifier(model)


def _check_states(states: int) -> None:
    if not 1 <= states <= MOST_STATES:
        raise BundleError(f"states must lie in 1..{MOST_STATES}, got {states}")


def _spread(bank: tuple[int, ...], features: int, covariance: Covariance) -> tuple[int, ...]:
    """The shape of the covariances' parameter, as in `Gaussians`."""
    return {
        "full": (*bank, features, features),
        "tied": (*bank[:-1], 1, features, features),
        "diagonal": (*bank, features),
        "spherical": (*bank, 1),
    }[covariance]
