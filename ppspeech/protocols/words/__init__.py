"""Which word was said."""

from ppspeech.protocols.words.garbled import (
    answer_garbled,
    garbled_bytes,
    garbled_cost,
    prepare_naming,
    prepare_texts,
    recognize_garbled,
    why_not_garbled,
    word_circuit,
)
from ppspeech.protocols.words.keyword import (
    KeywordJob,
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
from ppspeech.protocols.words.recursion import FAR, looks_ahead, usual_ahead
from ppspeech.protocols.words.watch import Questions, Told, Watch, attend, most_steps

__all__ = [
    "FAR",
    "Hearing",
    "KeywordJob",
    "Questions",
    "StreamModels",
    "TakenModels",
    "Told",
    "Watch",
    "answer",
    "answer_garbled",
    "attend",
    "check_told",
    "encode_models",
    "end_cost",
    "follow",
    "garbled_bytes",
    "garbled_cost",
    "looks_ahead",
    "model_bytes",
    "most_steps",
    "name_best",
    "prepare_naming",
    "prepare_texts",
    "recognize",
    "recognize_garbled",
    "share_scores",
    "stream_cost",
    "stream_plan",
    "streams_a_key",
    "usual_ahead",
    "why_not_garbled",
    "word_circuit",
]
