"""Models that say which word was spoken, or which words: hidden Markov models, by likelihood or for a margin."""

from dataclasses import dataclass, replace

from ppspeech.bundle.model_type import model_type
from ppspeech.bundle.strict_json import check_text
from ppspeech.errors import BundleError
from ppspeech.models import RAREST
from ppspeech.models.decoding import (
    DecodingGraph,
    Unit,
    grammar_graph,
    loop_graph,
    parse_grammar,
    units_of_bank,
    words_of,
)
from ppspeech.models.gaussian import Covariance
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, left_right
from ppspeech.models.margin import LargeMarginHmm

MOST_STATES = 1_000
MOST_PENALTY = 1_000.0
SILENCE = ""  # the unit of pauses, the last model of a bank; no word is called so


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
        _check_states(self.states)

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
        _check_states(self.states)

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Says which of {len(labels)} words was spoken, by word models trained for a margin."

    def build(self, labels: tuple[str, ...], features: int) -> LargeMarginHmm:
        """The bank: features and lengths to scores, `(batch, words)`."""
        return LargeMarginHmm(left_right(self.states), len(labels), features, self.margin, self.width)


@model_type("sentence_hmm", "transcribe")
@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceHmmSettings:
    """One left-right hidden Markov model a word and one of silence, and the graph of what may be said with them.

    Attributes:
        grammar: what may be said, such as `(one | two)+ [zero]`; None for any words in any order (`loop_graph`).
        word_penalty: nats that every word costs.
        leave: the probability of leaving a model after a frame in its last state.
    """

    states: int
    covariance: Covariance
    floor: float
    grammar: str | None
    word_penalty: float
    leave: float

    def __post_init__(self) -> None:
        _check_states(self.states)
        if self.grammar is not None:
            check_text("the grammar", self.grammar)
        if not 0 < self.leave < 1 or not abs(self.word_penalty) <= MOST_PENALTY:
            raise BundleError(
                f"a graph needs 0 < leave < 1 and a word_penalty within {MOST_PENALTY:g} nats, got {self.leave} and "
                f"{self.word_penalty}"
            )

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        said = "any of them in any order" if self.grammar is None else f"`{self.grammar}`"
        return f"Writes down sentences of {len(labels)} words, with their times: {said}."

    def build(self, labels: tuple[str, ...], features: int) -> HiddenMarkovModel:
        """The bank, of words in their order and silence; it is refused if the grammar has a word without a model."""
        unknown = sorted(words_of(parse_grammar(self.grammar)) - set(labels)) if self.grammar is not None else []
        if unknown or not labels:
            raise BundleError(f"the grammar needs models of {', '.join(unknown) or 'words'}, got {len(labels)} others")
        emission = GaussianEmission(len(labels) + 1, self.states, features, 1, self.covariance, self.floor)
        return HiddenMarkovModel(left_right(self.states), emission)

    def units(self, bank: HiddenMarkovModel, labels: tuple[str, ...]) -> dict[str, Unit]:
        """Words and `SILENCE` as parts of a graph; a move that may be made counts as no rarer than e^RAREST."""
        meanings: dict[str, str | None] = {label: label for label in labels}
        return units_of_bank(bank, meanings | {SILENCE: None}, self.leave, RAREST)

    def graph(self, bank: HiddenMarkovModel, labels: tuple[str, ...]) -> DecodingGraph:
        """What may be said, in the clear; encrypted, its `drawn` form."""
        units = self.units(bank, labels)
        if self.grammar is None:
            return loop_graph(labels, units, SILENCE, self.word_penalty)
        for label in labels:
            dearer = tuple(enter - self.word_penalty for enter in units[label].log_initial)
            units[label] = replace(units[label], log_initial=dearer)
        return grammar_graph(parse_grammar(self.grammar), units, SILENCE)


def _check_states(states: int) -> None:
    if not 1 <= states <= MOST_STATES:
        raise BundleError(f"states must lie in 1..{MOST_STATES}, got {states}")
