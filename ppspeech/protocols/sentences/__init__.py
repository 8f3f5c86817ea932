"""Which words were said, and when."""

from ppspeech.protocols.scores.streamed import GivenModels, TakenModels
from ppspeech.protocols.sentences.garbled import (
    answer_garbled,
    fits_garbled,
    garbled_bytes,
    garbled_cost,
    held_bytes,
    prepare_answer,
    prepare_question,
    sentence_circuit,
    transcribe_garbled,
)
from ppspeech.protocols.sentences.shape import CHUNK, SentenceArrays, SentenceShape, product_plan
from ppspeech.protocols.sentences.stream import (
    Engine,
    ListeningEar,
    follow_speech,
    stream_cost,
    stream_plan,
    streamed,
)
from ppspeech.protocols.sentences.transcribe import (
    Heard,
    answer_sentence,
    check_heard,
    encode_sentences,
    follow_words,
    prepare,
    shares_cost,
    total_bytes,
    transcribe,
)

__all__ = [
    "CHUNK",
    "Engine",
    "GivenModels",
    "Heard",
    "ListeningEar",
    "SentenceArrays",
    "SentenceShape",
    "TakenModels",
    "answer_garbled",
    "answer_sentence",
    "check_heard",
    "encode_sentences",
    "fits_garbled",
    "follow_speech",
    "follow_words",
    "garbled_bytes",
    "garbled_cost",
    "held_bytes",
    "prepare",
    "prepare_answer",
    "prepare_question",
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
