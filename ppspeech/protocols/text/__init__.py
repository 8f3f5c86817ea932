"""A secret pattern in a text that stays where it is: alphabets, regular expressions, automata, and the search."""

from ppspeech.protocols.text.alphabet import ALPHABETS, Alphabet, alphabet_of
from ppspeech.protocols.text.automaton import Automaton, walks
from ppspeech.protocols.text.pattern import PatternError
from ppspeech.protocols.text.search import Sought, find_in_clear, prepare, read_found, search, search_costs
from ppspeech.protocols.text.shape import MOST_WIDTH, TELLS, WAYS, Tells, TextShape, Way

__all__ = [
    "ALPHABETS",
    "MOST_WIDTH",
    "TELLS",
    "WAYS",
    "Alphabet",
    "Automaton",
    "PatternError",
    "Sought",
    "Tells",
    "TextShape",
    "Way",
    "alphabet_of",
    "find_in_clear",
    "prepare",
    "read_found",
    "search",
    "search_costs",
    "walks",
]
