"""Which words were said, and when."""

from ppspeech.protocols.sentences.shape import SentenceArrays, SentenceShape
from ppspeech.protocols.sentences.stream import CHUNK, ListeningEar, follow_speech, stream_cost, stream_plan, streamed
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
    "CHUNK",
    "Heard",
    "ListeningEar",
    "SentenceArrays",
    "SentenceShape",
    "answer_sentence",
    "check_heard",
    "encode_sentences",
    "follow_speech",
    "prepare",
    "product_plan",
    "shares_cost",
    "stream_cost",
    "stream_plan",
    "streamed",
    "total_bytes",
    "transcribe",
]
