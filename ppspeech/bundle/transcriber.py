"""Which words, and when? A bank of hidden Markov models, used in the clear on recordings of several words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from ppspeech.audio import Mfcc, MfccConfig, Sound, features_of
from ppspeech.bundle.recognizer import GARBAGE
from ppspeech.models.decoding import Unit, decode, grammar_graph, parse_grammar, spotting_graph, units_of_bank
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel

WORD_PENALTY = 50.0  # nats that every word costs, against words that were not said
FILLER = ""  # the unit of everything that is no word: silence, and speech that the model does not know
LEAVE_FILLER = 0.2


@dataclass(frozen=True, slots=True)
class Spoken:
    """A word of a recording, with its start and end in seconds."""

    value: str
    start: float
    end: float


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
        word_penalty: float = WORD_PENALTY,
        garbage: float = GARBAGE,
        beam: float | None = None,
    ) -> list[list[Spoken]]:
        """The words of each recording (waveforms of one rate in Hz, or sound files), in order.

        `grammar` is what may be said, such as `(one | two)+ [zero]`; any words by default, or none. Before, between and
        after words a filler takes what is no word: sounds of all words in any order, and any other, all equally
        probable, `garbage` nats a frame on top; the larger, the more it takes. A word is heard where its own sounds
        follow one another. Paths more than `beam` nats below the best are forgotten. Raises AudioError for sound that
        cannot be used; ModelError for a word without a model.
        """
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
