"""Which words were said, and when."""

from ppspeech.protocols.sentences.shape import SentenceArrays, SentenceShape
from ppspeech.protocols.sentences.transcribe import (
    Heard,
    answer_sentence,
    check_heard,
    encode_sentences,
    prepare,
    product_plan,
    shares_cost,
    total_bytes,
    transcribe,
)

__all__ = [
    "Heard",
    "SentenceArrays",
    "SentenceShape",
    "answer_sentence",
    "check_heard",
    "encode_sentences",
    "prepare",
    "product_plan",
    "shares_cost",
    "total_bytes",
    "transcribe",
]
