"""Which words, and when? A bank of hidden Markov models, used in the clear on recordings of several words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from ppspeech.audio import Mfcc, MfccConfig, Sound, features_of
from ppspeech.models.decoding import OneOf, Repeated, decode, grammar_graph, parse_grammar, units_of_bank
from ppspeech.models.hmm import HiddenMarkovModel

WORD_PENALTY = 50.0  # nats that every word costs, against words that were not said


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
        beam: float | None = None,
    ) -> list[list[Spoken]]:
        """The words of each recording (waveforms of one rate in Hz, or sound files), in order.

        `grammar` is what may be said, such as `(one | two)+ [zero]`; any words by default. Paths more than `beam` nats
        below the best are forgotten. Raises AudioError for sound that cannot be used; ModelError for a word without a
        model.
        """
        units = {
            name: replace(unit, log_initial=tuple(entry - word_penalty for entry in unit.log_initial))
            for name, unit in units_of_bank(self.bank, self.names).items()
        }
        graph = grammar_graph(parse_grammar(grammar) if grammar else Repeated(OneOf(self.names)), units)
        found = []
        for features in features_of(sounds, Mfcc(self.mfcc), rate):
            scores = self.bank.emission.log_likelihood(features.unsqueeze(0)).flatten(2).squeeze(0)
            heard, hop = decode(graph, scores, beam), self.mfcc.hop_s
            found.append([Spoken(word.word, word.start * hop, word.end * hop) for word in heard.words])
        return found
