"""Which words were said, and when."""

from ppspeech.protocols.sentences.garbled import (
    GarbledEar,
    GarbledSentence,
    Spoken,
    answer_garbled,
    follow_garbled,
    garbled_bytes,
    garbled_streamed,
    prepare_evaluation,
    prepare_garbling,
    sentence_circuit,
    transcribe_garbled,
)
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
    "GarbledEar",
    "GarbledSentence",
    "Heard",
    "ListeningEar",
    "SentenceArrays",
    "SentenceShape",
    "Spoken",
    "answer_garbled",
    "answer_sentence",
    "check_heard",
    "encode_sentences",
    "follow_garbled",
    "follow_speech",
    "garbled_bytes",
    "garbled_streamed",
    "prepare",
    "prepare_evaluation",
    "prepare_garbling",
    "product_plan",
    "sentence_circuit",
    "shares_cost",
    "stream_cost",
    "stream_plan",
    "streamed",
    "total_bytes",
    "transcribe",
    "transcribe_garbled",
]
