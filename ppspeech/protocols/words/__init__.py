"""Which word was said."""

from ppspeech.protocols.words.keyword import (
    KeywordClient,
    KeywordJob,
    KeywordServer,
    Order,
    encode_models,
    end_cost,
    share_scores,
)
from ppspeech.protocols.words.keyword_stream import (
    StreamClient,
    StreamJob,
    StreamModels,
    StreamServer,
    encrypt_models,
    give_models,
    take_models,
)

__all__ = [
    "KeywordClient",
    "KeywordJob",
    "KeywordServer",
    "Order",
    "StreamClient",
    "StreamJob",
    "StreamModels",
    "StreamServer",
    "encode_models",
    "encrypt_models",
    "end_cost",
    "give_models",
    "share_scores",
    "take_models",
]
