"""Private searches: keywords in recordings, and the template that an utterance is most like."""

from ppspeech.protocols.search.shape import Keywords, Recordings, SpotShape
from ppspeech.protocols.search.spotting import Answers, Found, answer, ask, check_found, encode, prepare, spotting_cost

__all__ = [
    "Answers",
    "Found",
    "Keywords",
    "Recordings",
    "SpotShape",
    "answer",
    "ask",
    "check_found",
    "encode",
    "prepare",
    "spotting_cost",
]
