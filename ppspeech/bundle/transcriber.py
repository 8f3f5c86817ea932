"""Which words, and when? A model used in the clear on recordings of several words.

A bank of words alone hears them among everything else (`Transcriber`); one that was trained on sentences has a model of
silence and a graph of its own, and is used as an encrypted service uses it (`SentenceTranscriber`), and so is a network
that scores the states of a graph; another says itself where words begin (`CtcTranscriber`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ppspeech.audio import Mfcc, MfccConfig, Sound, features_of
from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.kinds import CtcNetworkSettings, SentenceHmmSettings, SentenceNetworkSettings
from ppspeech.bundle.recognizer import GARBAGE, clipped_to, feature_limit, feature_radius
from ppspeech.bundle.spoken import Spoken
from ppspeech.errors import ModelError
from ppspeech.models import SequenceNetwork, StateNetwork, greedy_labels
from ppspeech.models.decoding import (
    DecodingGraph,
    Unit,
    Word,
    decode,
    grammar_graph,
    parse_grammar,
    spotting_graph,
    units_of_bank,
)
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel

WORD_PENALTY = 50.0  # nats that every word costs, against words that were not said
FILLER = ""  # the unit of everything that is no word: silence, and speech that the model does not know
LEAVE_FILLER = 0.2


@dataclass(frozen=True, slots=True)
class Transcriber:
    """A model in the clear, from a bundle or a checkpoint."""

    names: tuple[str, ...]
    mfcc: MfccConfig
    bank: HiddenMarkovModel

    @torch.no_grad()
    def transcribe_all(
        self,
        sounds: Sequence[Sound],
        rate: int | None = None,
        *,
        grammar: str = "",
        word_penalty: float | None = None,
        garbage: float | None = None,
        beam: float | None = None,
    ) -> list[list[Spoken]]:
        """The words of each recording (waveforms of one rate in Hz, or sound files), in order.

        `grammar` is what may be said, such as `(one | two)+ [zero]`; any words by default, or none. Before, between and
        after words a filler takes what is no word: sounds of all words in any order, and any other, all equally
        probable, `garbage` nats a frame on top (0 by default); the larger, the more it takes. A word is heard where its
        own sounds follow one another, and costs `word_penalty` nats (50 by default). Paths more than `beam` nats below
        the best are forgotten. Raises AudioError for sound that cannot be used; ModelError for a word without a model.
        """
        word_penalty = WORD_PENALTY if word_penalty is None else word_penalty
        garbage = GARBAGE if garbage is None else garbage
        emission = self.bank.emission
        assert isinstance(emission, GaussianEmission)
        units = {
            name: replace(unit, log_initial=tuple(entry - word_penalty for entry in unit.log_initial))
            for name, unit in units_of_bank(self.bank, self.names).items()
        }
        stay, leave = math.log1p(-LEAVE_FILLER), math.log(LEAVE_FILLER)
        units[FILLER] = Unit(None, (self.bank.models * self.bank.states,), (0.0,), ((stay,),), (leave,))
        if grammar:
            graph = grammar_graph(parse_grammar(grammar), units, FILLER)
        else:
            graph = spotting_graph([[name] for name in self.names], [FILLER], units)
        pooled = emission.gaussians.pooled()
        found = []
        for features in features_of(sounds, Mfcc(self.mfcc), rate):
            words = emission.log_likelihood(features.unsqueeze(0)).flatten(2).squeeze(0)
            every = torch.cat([words, pooled.log_density(features.double()).to(words)], dim=-1)
            filler = every.logsumexp(-1, keepdim=True) - math.log(every.shape[-1])
            scores = torch.cat([words, filler + garbage], dim=-1)
            heard, hop = decode(graph, scores, beam), self.mfcc.hop_s
            found.append([Spoken(word.word, word.start * hop, word.end * hop) for word in heard.words])
        return found


@dataclass(frozen=True, slots=True)
class SentenceTranscriber:
    """A model of words and silence with its graph, as a bundle says it.

    Frames are brought within `radius` and `limit` of where speech usually lies, as clients of an encrypted service do,
    whose shares have a range: it then hears the same words at the same times. A network brings them within its own
    radius itself.
    """

    settings: SentenceHmmSettings | SentenceNetworkSettings
    names: tuple[str, ...]
    mfcc: MfccConfig
    bank: HiddenMarkovModel | StateNetwork
    graph: DecodingGraph
    limit: float
    radius: float

    @classmethod
    def of(cls, bank: nn.Module, config: BundleConfig) -> "SentenceTranscriber":
        """A bank, or a network, with what its bundle, or checkpoint, says about it."""
        settings, names, mfcc = config.settings, config.labels, config.front_end
        if isinstance(settings, SentenceNetworkSettings):
            assert isinstance(bank, StateNetwork)
            graph = settings.graph(bank, names)
            return cls(settings, names, mfcc, bank.eval(), graph, settings.radius, settings.radius)
        assert isinstance(settings, SentenceHmmSettings)
        assert isinstance(bank, HiddenMarkovModel)
        limit = feature_limit(bank, mfcc)
        assert limit is not None
        return cls(settings, names, mfcc, bank, settings.graph(bank, names), limit, feature_radius(bank, mfcc))

    def transcribe_all(
        self,
        sounds: Sequence[Sound],
        rate: int | None = None,
        *,
        grammar: str = "",
        word_penalty: float | None = None,
        garbage: float | None = None,
        beam: float | None = None,
    ) -> list[list[Spoken]]:
        """The words of each recording (waveforms of one rate in Hz, or sound files), in order, by the model's graph.

        A `grammar` or `word_penalty` takes the place of the model's own. Raises AudioError for sound that cannot be
        used, ModelError for one that is too short for the graph, a word without a model, or `garbage`, of which the
        model has none.
        """
        if garbage is not None:
            raise ModelError("a model of sentences has one of silence, and no garbage model: leave garbage out")
        graph = self._graph(grammar, self.settings.word_penalty if word_penalty is None else word_penalty)
        heard = [self.words(features, beam, graph) for features in features_of(sounds, Mfcc(self.mfcc), rate)]
        hop = self.mfcc.hop_s
        return [[Spoken(word.word, word.start * hop, word.end * hop) for word in words] for words in heard]

    def _graph(self, grammar: str, word_penalty: float) -> DecodingGraph:
        """Of the model, or by another grammar or penalty."""
        if isinstance(self.settings, SentenceNetworkSettings):
            said = grammar or self.settings.grammar
            if (said, word_penalty) == (self.settings.grammar, self.settings.word_penalty):
                return self.graph
            return replace(self.settings, grammar=said, word_penalty=word_penalty).graph(self.bank, self.names)
        other = replace(self.settings, word_penalty=word_penalty)
        other = replace(other, grammar=grammar, ngrams=()) if grammar else other
        assert isinstance(self.bank, HiddenMarkovModel)
        return self.graph if other == self.settings else other.graph(self.bank, self.names)

    def words(
        self, features: Tensor, beam: float | None = None, graph: DecodingGraph | None = None
    ) -> tuple[Word, ...]:
        """The words of frames `(frames, features)`, with their first frame and the one after their last."""
        return decode(graph or self.graph, self.scores(features), beam).words

    @torch.no_grad()
    def scores(self, features: Tensor) -> Tensor:
        """Of frames `(frames, features)`, clipped, in every state, `(frames, models * states)`."""
        if isinstance(self.bank, StateNetwork):
            scores: Tensor = self.bank(features.unsqueeze(0), torch.tensor([len(features)]))[0]
            return scores
        assert isinstance(self.bank.emission, GaussianEmission)
        clipped = clipped_to(features, self.limit, self.mfcc, self.radius)
        return self.bank.emission.log_likelihood(clipped.unsqueeze(0)).squeeze(0).flatten(1)


@dataclass(frozen=True, slots=True)
class CtcTranscriber:
    """A network that says every few frames which word begins, if any, by greedy CTC, as an encrypted service does."""

    names: tuple[str, ...]
    mfcc: MfccConfig
    model: SequenceNetwork

    def transcribe_all(
        self,
        sounds: Sequence[Sound],
        rate: int | None = None,
        *,
        grammar: str = "",
        word_penalty: float | None = None,
        garbage: float | None = None,
        beam: float | None = None,
    ) -> list[list[Spoken]]:
        """The words of each recording (waveforms of one rate in Hz, or sound files), in order, with the stride of
        frames in which each is first the best. Raises AudioError for sound that cannot be used, ModelError for a
        grammar, penalty, garbage model or beam: such a network has no graph.
        """
        if grammar or word_penalty is not None or garbage is not None or beam is not None:
            raise ModelError(
                "a network that is read greedily has no graph: leave grammar, word_penalty, garbage and beam out, or "
                "train one that has by `ppspeech train sentences`"
            )
        hop = self.mfcc.hop_s
        heard = [self.words(features) for features in features_of(sounds, Mfcc(self.mfcc), rate)]
        return [[Spoken(word.word, word.start * hop, word.end * hop) for word in words] for words in heard]

    def words(self, features: Tensor) -> tuple[Word, ...]:
        """The words of frames `(frames, features)`, with the first frame of their stride and the one after its last."""
        scores = self.scores(features)
        sure, stride = scores.log_softmax(-1), self.model.stride
        return tuple(
            Word(self.names[label - 1], stride * at, stride * (at + 1), float(sure[at, label]))
            for label, at in greedy_labels(scores.argmax(-1).tolist())
        )

    @torch.no_grad()
    def scores(self, features: Tensor) -> Tensor:
        """Of every stride of frames `(frames, features)`, the blank first, `(strides, 1 + words)`."""
        scores: Tensor = self.model(features.unsqueeze(0), torch.tensor([len(features)]))[0]
        return scores


AnyTranscriber = Transcriber | SentenceTranscriber | CtcTranscriber


def transcriber_of(model: nn.Module, config: BundleConfig) -> AnyTranscriber:
    """A model with what its bundle, or checkpoint, says about it, for recordings of several words."""
    if isinstance(config.settings, CtcNetworkSettings):
        assert isinstance(model, SequenceNetwork)
        return CtcTranscriber(config.labels, config.front_end, model.eval())
    if isinstance(config.settings, SentenceHmmSettings | SentenceNetworkSettings):
        return SentenceTranscriber.of(model, config)
    assert isinstance(model, HiddenMarkovModel)
    return Transcriber(config.labels, config.front_end, model)
