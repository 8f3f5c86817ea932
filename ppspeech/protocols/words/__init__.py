"""Which word was said."""

from ppspeech.protocols.words.keyword import (
    KeywordJob,
    Order,
    answer,
    check_told,
    encode_models,
    name_best,
    recognize,
    share_scores,
)
from ppspeech.protocols.words.keyword_stream import (
    Hearing,
    StreamModels,
    TakenModels,
    end_cost,
    follow,
    model_bytes,
    stream_cost,
    stream_plan,
    streams_a_key,
)

__all__ = [
    "Hearing",
    "KeywordJob",
    "Order",
    "StreamModels",
    "TakenModels",
    "answer",
    "check_told",
    "encode_models",
    "end_cost",
    "follow",
    "model_bytes",
    "name_best",
    "recognize",
    "share_scores",
    "stream_cost",
    "stream_plan",
    "streams_a_key",
]
