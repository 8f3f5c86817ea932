"""Which word was said."""

from ppspeech.protocols.words.keyword import KeywordJob, Order, answer, encode_models, recognize, share_scores
from ppspeech.protocols.words.keyword_stream import (
    Hearing,
    StreamModels,
    encrypt_models,
    end_cost,
    follow,
    give_models,
    model_bytes,
    stream_cost,
    stream_plan,
    take_models,
)

__all__ = [
    "Hearing",
    "KeywordJob",
    "Order",
    "StreamModels",
    "answer",
    "encode_models",
    "encrypt_models",
    "end_cost",
    "follow",
    "give_models",
    "model_bytes",
    "recognize",
    "share_scores",
    "stream_cost",
    "stream_plan",
    "take_models",
]
