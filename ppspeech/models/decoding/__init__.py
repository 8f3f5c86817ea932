"""From scores to words: decoding graphs, grammars, language models, the search."""

from ppspeech.models.decoding.decoder import decode
from ppspeech.models.decoding.embedded import embedded_training, even_start_
from ppspeech.models.decoding.grammar import OneOf, Repeated, parse_grammar
from ppspeech.models.decoding.graph import DecodingGraph, Unit, units_of_bank
from ppspeech.models.decoding.tasks import grammar_graph, transcript_graph

__all__ = [
    "DecodingGraph",
    "OneOf",
    "Repeated",
    "Unit",
    "decode",
    "embedded_training",
    "even_start_",
    "grammar_graph",
    "parse_grammar",
    "transcript_graph",
    "units_of_bank",
]
