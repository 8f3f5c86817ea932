"""Models that write down sentences: hidden Markov models of words, or of their parts, or a network that scores states,
and a graph of what may be said.

What may be said is any words in any order, a grammar, or the sentences of a language model. Which n-grams a language
model lists, and what words are made of, is public, as the graph is to every client of a server; what n-grams weigh is
in the tensors, and stays with the server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ppspeech.bundle.kinds.networks import check_layers
from ppspeech.bundle.kinds.words import check_states
from ppspeech.bundle.model_types import model_type
from ppspeech.bundle.strict_json import LONGEST_WORD, check_text
from ppspeech.errors import BundleError, ModelError
from ppspeech.models import RAREST, FrameLayer, StateNetwork, span_of
from ppspeech.models.decoding import (
    END,
    START,
    DecodingGraph,
    NgramModel,
    Unit,
    even_units,
    grammar_graph,
    joined_units,
    lexicon_graph,
    loop_graph,
    ngram_graph,
    parse_grammar,
    units_of_bank,
    words_of,
)
from ppspeech.models.gaussian import Covariance
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, left_right

MOST_PENALTY = 1_000.0
MOST_SCALE = 100.0
MOST_NGRAMS, HIGHEST_ORDER = 1 << 16, 4
MOST_PARTS = 64  # of one word
MOST_UNITS = 1_000
SILENCE = ""  # the unit of pauses, the last model of a bank; no word is called so


class SentenceBank(HiddenMarkovModel):
    """A bank with what n-grams of a language model weigh: ln of probabilities and of back-offs, `(2, ngrams)`."""

    def __init__(self, bank: HiddenMarkovModel, ngrams: int) -> None:
        super().__init__(bank.topology, bank.emission)
        self.language = nn.Parameter(torch.zeros(2, ngrams), requires_grad=False)


@model_type("sentence_hmm", "transcribe")
@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceHmmSettings:
    """One left-right hidden Markov model a word, or a part of words, and one of silence; the graph of what may be said.

    Attributes:
        grammar: what may be said, such as `(one | two)+ [zero]`; None for any words in any order, or a language model.
        word_penalty: nats that every word costs.
        leave: the probability of leaving a model after a frame in its last state.
        units: names of the parts that words are made of, such as phones; empty where every word has a model of its own.
        lexicon: of every word, in the order of the labels, its parts as places among the units; empty without units.
        ngrams: what a language model lists, as places among the labels; one more is the start of a sentence, two more
            its end. Empty for none.
        language_scale: what the language model weighs against the sounds.
    """

    states: int
    covariance: Covariance
    floor: float
    grammar: str | None
    word_penalty: float
    leave: float
    units: tuple[str, ...] = ()
    lexicon: tuple[tuple[int, ...], ...] = ()
    ngrams: tuple[tuple[int, ...], ...] = ()
    language_scale: float = 1.0

    def __post_init__(self) -> None:
        check_states(self.states)
        _check_graph(self.grammar, self.leave, self.word_penalty)
        for unit in self.units:
            check_text("a unit", unit, longest=LONGEST_WORD)
        if len(self.units) > MOST_UNITS or len(set(self.units)) < len(self.units) or (self.lexicon and not self.units):
            raise BundleError(f"units are different, at most {MOST_UNITS}, and there are some where words have parts")
        for parts in self.lexicon:
            if not 1 <= len(parts) <= MOST_PARTS or not all(0 <= part < len(self.units) for part in parts):
                raise BundleError(f"a word has 1 to {MOST_PARTS} of {len(self.units)} units, got {parts!r:.80}")
        if self.ngrams and self.grammar is not None:
            raise BundleError("what may be said is a grammar or a language model: leave one of them out")
        orders = {len(ngram) for ngram in self.ngrams}
        if len(self.ngrams) > MOST_NGRAMS or not orders <= set(range(1, HIGHEST_ORDER + 1)):
            raise BundleError(f"a language model has up to {MOST_NGRAMS:,} n-grams of 1 to {HIGHEST_ORDER} words")
        if len(set(self.ngrams)) < len(self.ngrams) or not 0 < self.language_scale <= MOST_SCALE:
            raise BundleError(f"n-grams are different, and 0 < language_scale <= {MOST_SCALE:g}")

    @staticmethod
    def upgraded(plain: Any) -> Any:
        """Settings of the first bundles, of whole words and without language models."""
        added = {"units": [], "lexicon": [], "ngrams": [], "language_scale": 1.0}
        return added | dict(plain) if isinstance(plain, Mapping) and not set(added) & set(plain) else plain

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        said = "any of them in any order" if self.grammar is None else f"`{self.grammar}`"
        if self.ngrams:
            said = f"as a language model of {len(self.ngrams):,} n-grams finds probable"
        made = f" made of {len(self.units)} units" if self.units else ""
        return f"Writes down sentences of {len(labels)} words{made}, with their times: {said}."

    def build(self, labels: tuple[str, ...], features: int) -> HiddenMarkovModel:
        """The bank, of words or units in their order and silence; refused are a word without a model or parts, and
        n-grams of others.
        """
        _check_known(self.grammar, labels)
        if self.units and len(self.lexicon) != len(labels):
            raise BundleError(f"{len(labels)} words need as many rows of the lexicon, got {len(self.lexicon)}")
        if not all(0 <= word < len(labels) + 2 for ngram in self.ngrams for word in ngram):
            raise BundleError(f"n-grams are of {len(labels)} words, the start and the end")
        models = len(self.units or labels) + 1
        emission = GaussianEmission(models, self.states, features, 1, self.covariance, self.floor)
        bank = HiddenMarkovModel(left_right(self.states), emission)
        return SentenceBank(bank, len(self.ngrams)) if self.ngrams else bank

    def models(self, bank: HiddenMarkovModel, labels: tuple[str, ...]) -> dict[str, Unit]:
        """Every model of the bank as a part of a graph, `SILENCE` last; a move that may be made counts as no rarer than
        e^RAREST.
        """
        if self.units:
            return units_of_bank(bank, dict.fromkeys((*self.units, SILENCE)), self.leave, RAREST)
        meanings: dict[str, str | None] = {label: label for label in labels}
        return units_of_bank(bank, meanings | {SILENCE: None}, self.leave, RAREST)

    def spelled(self, labels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """The names of every word's parts."""
        return {
            label: tuple(self.units[part] for part in parts) for label, parts in zip(labels, self.lexicon, strict=True)
        }

    def graph(self, bank: HiddenMarkovModel, labels: tuple[str, ...]) -> DecodingGraph:
        """What may be said, in the clear; encrypted, its `drawn` form."""
        models = self.models(bank, labels)
        if self.grammar is None and not self.ngrams:
            if self.units:
                return lexicon_graph(self.spelled(labels), models, SILENCE, self.word_penalty)
            return loop_graph(labels, models, SILENCE, self.word_penalty)
        words = dict(models)
        if self.units:
            spelled = self.spelled(labels)
            words = {label: joined_units(label, [models[part] for part in spelled[label]]) for label in labels}
            words[SILENCE] = models[SILENCE]
        if self.ngrams:
            language = self.language(bank, labels)
            return ngram_graph(language, words, SILENCE, self.language_scale, -self.word_penalty)
        assert self.grammar is not None
        return _by_grammar(self.grammar, labels, words, self.word_penalty)

    def language(self, bank: HiddenMarkovModel, labels: tuple[str, ...]) -> NgramModel:
        """The language model of a bank. Every n-gram below the highest order is a history, unless a sentence ends."""
        assert isinstance(bank, SentenceBank)
        names = (*labels, START, END)
        listed = [tuple(names[word] for word in ngram) for ngram in self.ngrams]
        order = max(map(len, listed))
        probabilities, back_offs = bank.language.double().tolist()
        return NgramModel(
            order,
            dict(zip(listed, probabilities, strict=True)),
            {
                ngram: back_off
                for ngram, back_off in zip(listed, back_offs, strict=True)
                if len(ngram) < order and ngram[-1] != END
            },
        )


@model_type("sentence_network", "transcribe")
@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceNetworkSettings:
    """The graph of what may be said, of left-right units of words and of silence, whose states a network scores
    (`ppspeech.models.StateNetwork`).

    Attributes:
        states: of a word, and of silence.
        grammar: what may be said, such as `(one | two)+ [zero]`; None for any words in any order.
        word_penalty: nats that every word costs.
        leave: the probability of leaving a state after a frame.
        scale: what a frame's scores weigh against moves and words.
        radius: what frames are shortened to.
        layers: all but the last, which is linear; none strides or pools.
    """

    states: int
    grammar: str | None
    word_penalty: float
    leave: float
    scale: float
    radius: float
    layers: tuple[FrameLayer, ...]

    def __post_init__(self) -> None:
        check_states(self.states)
        _check_graph(self.grammar, self.leave, self.word_penalty)
        check_layers(self.layers)
        if span_of(self.layers)[1] != 1 or not 0 < self.scale <= MOST_SCALE:
            raise BundleError(f"states have a score every frame, without strides or pools, and 0 < scale, got {self}")

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        said = "any of them in any order" if self.grammar is None else f"`{self.grammar}`"
        return (
            f"Writes down sentences of {len(labels)} words, with their times: {said}, by a network of "
            f"{len(self.layers) + 1} layers on frames."
        )

    def build(self, labels: tuple[str, ...], features: int) -> StateNetwork:
        """The network: features and lengths to scores of all states; refused is a grammar of other words."""
        _check_known(self.grammar, labels)
        return StateNetwork((len(labels) + 1) * self.states, features, self.radius, self.layers, self.scale)

    def graph(self, model: nn.Module, labels: tuple[str, ...]) -> DecodingGraph:  # noqa: ARG002 (as of a bank)
        """What may be said, in the clear; encrypted, its `drawn` form."""
        meanings: dict[str, str | None] = {label: label for label in labels}
        units = even_units(meanings | {SILENCE: None}, self.states, self.leave)
        if self.grammar is None:
            return loop_graph(labels, units, SILENCE, self.word_penalty)
        return _by_grammar(self.grammar, labels, units, self.word_penalty)


def _by_grammar(grammar: str, labels: Sequence[str], words: Mapping[str, Unit], penalty: float) -> DecodingGraph:
    dear = dict(words)
    for label in labels:
        dearer = tuple(enter - penalty for enter in words[label].log_initial)
        dear[label] = replace(words[label], log_initial=dearer)
    return grammar_graph(parse_grammar(grammar), dear, SILENCE)


def _check_graph(grammar: str | None, leave: float, penalty: float) -> None:
    if grammar is not None:
        check_text("the grammar", grammar)
    if not 0 < leave < 1 or not abs(penalty) <= MOST_PENALTY:
        raise BundleError(
            f"a graph needs 0 < leave < 1 and a word_penalty within {MOST_PENALTY:g} nats, got {leave} and {penalty}"
        )


def _check_known(grammar: str | None, labels: tuple[str, ...]) -> None:
    unknown = sorted(words_of(parse_grammar(grammar)) - set(labels)) if grammar is not None else []
    if unknown or not labels:
        raise BundleError(f"the grammar needs models of {', '.join(unknown) or 'words'}, got {len(labels)} others")


def listed_ngrams(model: NgramModel, labels: Sequence[str]) -> tuple[tuple[tuple[int, ...], ...], Tensor]:
    """What settings and tensors hold of a language model: its n-grams as numbers, and `(2, ngrams)`. Raises ModelError
    for a word that is none of the labels.
    """
    names = {name: number for number, name in enumerate((*labels, START, END))}
    strange = sorted(set(model.vocabulary) - set(labels))
    if strange:
        raise ModelError(f"the language model has words without a model: {', '.join(strange)[:200]}")
    ngrams = sorted(model.log_probability, key=lambda ngram: (len(ngram), [names[word] for word in ngram]))
    values = [[model.log_probability[each] for each in ngrams], [model.log_backoff.get(each, 0.0) for each in ngrams]]
    return tuple(tuple(names[word] for word in ngram) for ngram in ngrams), torch.tensor(values)


def lexicon_of(spelled: Mapping[str, Sequence[str]], labels: Sequence[str]) -> dict[str, Any]:
    """`units` and `lexicon` of settings, for words in the order of the labels, from the names of their parts. Raises
    ModelError for a word without parts.
    """
    missing = [label for label in labels if not spelled.get(label)]
    if missing:
        raise ModelError(f"the lexicon does not say what these words are made of: {', '.join(missing)[:200]}")
    units = sorted({part for label in labels for part in spelled[label]})
    return {"units": tuple(units), "lexicon": tuple(tuple(map(units.index, spelled[label])) for label in labels)}
