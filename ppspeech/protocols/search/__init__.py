"""Private searches: keywords in recordings, and the template that an utterance is most like."""

from ppspeech.protocols.search.shape import Keywords, Recordings, SpotShape
from ppspeech.protocols.search.spotting import (
    ASSUMPTIONS,
    Answers,
    Found,
    answer,
    ask,
    check_found,
    encode,
    prepare,
    share_segments,
    spotting_cost,
)
from ppspeech.protocols.search.tournament import best_of, bits_where, joined, tell_name
from ppspeech.protocols.search.warping import (
    Templates,
    WarpShape,
    nearest,
    prepare_warping,
    read_alignment,
    read_label,
    serve_templates,
    warping_cost,
)

__all__ = [
    "ASSUMPTIONS",
    "Answers",
    "Found",
    "Keywords",
    "Recordings",
    "SpotShape",
    "Templates",
    "WarpShape",
    "answer",
    "ask",
    "best_of",
    "bits_where",
    "check_found",
    "encode",
    "joined",
    "nearest",
    "prepare",
    "prepare_warping",
    "read_alignment",
    "read_label",
    "serve_templates",
    "share_segments",
    "spotting_cost",
    "tell_name",
    "warping_cost",
]
