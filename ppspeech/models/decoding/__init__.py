"""From scores to words: decoding graphs, grammars, language models, spotting, the search.

A graph says what may be said; `decode` finds the best path through it. Graphs come from a grammar, a transcript, an
n-gram language model (estimated from texts, or read from an ARPA file), or phrases to spot among garbage:

>>> import torch
>>> from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, left_right
>>> bank = HiddenMarkovModel(left_right(2, must_finish=True), GaussianEmission(3, 2, features=2))
>>> bank.emission.gaussians.mean.data.copy_(torch.tensor([0.0, 5.0, 9.0]).view(3, 1, 1).expand(3, 2, 2)).shape
torch.Size([3, 2, 2])
>>> units = units_of_bank(bank, {"no": "no", "yes": "yes", "noise": None})
>>> frames = torch.tensor([5.0, 5.0, 0.0, 0.0]).unsqueeze(-1).expand(4, 2)
>>> with torch.no_grad():
...     scores = bank.emission.log_likelihood(frames.unsqueeze(0)).flatten(2).squeeze(0)

>>> spoken = estimate_ngrams([["yes", "no"], ["yes", "yes"]], order=2)
>>> said = {name: units[name] for name in ("no", "yes")}
>>> [word.word for word in decode(ngram_graph(spoken, said), scores).words]
['yes', 'no']
>>> [word.word for word in decode(spotting_graph([["no"]], ["noise"], units), scores).words]
['no']

A single keyword is found by its best segment, `spot`; a clip is named after its nearest template, `TemplateRecognizer`:

>>> ratios = torch.tensor([[-1.0, -1.0], [2.0, -1.0], [-1.0, 3.0], [-1.0, -1.0]])
>>> found = spot(ratios, block=4, longest=2)
>>> float(found.score), int(found.start), int(found.end)
(5.0, 1, 3)
"""

from ppspeech.models.decoding.alignment import (
    Alignment,
    TemplateRecognizer,
    align,
    resampled,
    similarities,
    warp,
    within_radius,
)
from ppspeech.models.decoding.builder import GraphBuilder, Unit, even_units, joined_units, units_of_bank
from ppspeech.models.decoding.decoder import Hypothesis, Word, decode
from ppspeech.models.decoding.embedded import embedded_statistics, embedded_training, even_start_
from ppspeech.models.decoding.grammar import OneOf, Repeated, parse_grammar, words_of
from ppspeech.models.decoding.graph import LATER, NOTHING, DecodingGraph, Edge, WordGraph
from ppspeech.models.decoding.language import END, START, NgramModel, estimate_ngrams, read_arpa, write_arpa
from ppspeech.models.decoding.spotting import (
    LAST_STAY,
    Chain,
    KeywordModel,
    Segments,
    best_average,
    best_of_blocks,
    best_segments,
    in_blocks,
    keyword_of_takes,
    spot,
    unit_ratios,
)
from ppspeech.models.decoding.tasks import (
    grammar_graph,
    lexicon_graph,
    loop_graph,
    ngram_graph,
    spotting_graph,
    transcript_graph,
)

__all__ = [
    "END",
    "LAST_STAY",
    "LATER",
    "NOTHING",
    "START",
    "Alignment",
    "Chain",
    "DecodingGraph",
    "Edge",
    "GraphBuilder",
    "Hypothesis",
    "KeywordModel",
    "NgramModel",
    "OneOf",
    "Repeated",
    "Segments",
    "TemplateRecognizer",
    "Unit",
    "Word",
    "WordGraph",
    "align",
    "best_average",
    "best_of_blocks",
    "best_segments",
    "decode",
    "embedded_statistics",
    "embedded_training",
    "estimate_ngrams",
    "even_start_",
    "even_units",
    "grammar_graph",
    "in_blocks",
    "joined_units",
    "keyword_of_takes",
    "lexicon_graph",
    "loop_graph",
    "ngram_graph",
    "parse_grammar",
    "read_arpa",
    "resampled",
    "similarities",
    "spot",
    "spotting_graph",
    "transcript_graph",
    "unit_ratios",
    "units_of_bank",
    "warp",
    "within_radius",
    "words_of",
    "write_arpa",
]
