"""Models that say which word was spoken: hidden Markov models, by likelihood or for a margin."""

from dataclasses import dataclass

from ppspeech.bundle.model_types import model_type
from ppspeech.errors import BundleError
from ppspeech.models.gaussian import Covariance
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, left_right
from ppspeech.models.margin import LargeMarginHmm

MOST_STATES = 1_000


@model_type("keyword_hmm", "recognize", "transcribe")
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
        check_states(self.states)

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Says which of {len(labels)} words was spoken, by one hidden Markov model a word."

    def build(self, labels: tuple[str, ...], features: int) -> HiddenMarkovModel:
        """The bank: features and lengths to scores, `(batch, words)`."""
        emission = GaussianEmission(len(labels), self.states, features, self.components, self.covariance, self.floor)
        return HiddenMarkovModel(left_right(self.states, self.skips, self.must_finish), emission)


@model_type("large_margin_keyword", "recognize")
@dataclass(frozen=True, slots=True, kw_only=True)
class LargeMarginKeywordSettings:
    """One left-right model a word whose states are matrices Phi, trained for a margin."""

    states: int
    margin: float
    width: float

    def __post_init__(self) -> None:
        check_states(self.states)

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Says which of {len(labels)} words was spoken, by word models trained for a margin."

    def build(self, labels: tuple[str, ...], features: int) -> LargeMarginHmm:
        """The bank: features and lengths to scores, `(batch, words)`."""
        return LargeMarginHmm(left_right(self.states), len(labels), features, self.margin, self.width)


def check_states(states: int) -> None:
    """Refuse, with a BundleError, a number of states that no model has."""
    if not 1 <= states <= MOST_STATES:
        raise BundleError(f"states must lie in 1..{MOST_STATES}, got {states}")
