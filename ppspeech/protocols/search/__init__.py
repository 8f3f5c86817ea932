"""Private searches: keywords in recordings, and the template that an utterance is most like."""

from ppspeech.protocols.search.shape import Keywords, Recordings, SpotShape
from ppspeech.protocols.search.spotting import (
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
    "Answers",
    "Found",
    "Keywords",
    "Recordings",
    "SpotShape",
    "Templates",
    "WarpShape",
    "answer",
    "ask",
    "check_found",
    "encode",
    "nearest",
    "prepare",
    "prepare_warping",
    "read_alignment",
    "read_label",
    "serve_templates",
    "share_segments",
    "spotting_cost",
    "warping_cost",
]
