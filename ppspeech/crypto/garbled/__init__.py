"""Garbled circuits: a second engine for two parties, whose rounds do not grow with the depth of what is computed."""

from ppspeech.crypto.garbled.automaton import offer_automaton, read_automaton
from ppspeech.crypto.garbled.circuit import ONE, ZERO, Builder, Circuit
from ppspeech.crypto.garbled.half_gates import run_circuit, table_buffer
from ppspeech.crypto.garbled.parties import (
    FRAME_BYTES,
    KEY_BYTES,
    LABEL_BYTES,
    MEANING_BYTES,
    TABLE_BYTES,
    AskedInputs,
    Evaluator,
    Garbler,
    Meaning,
    OfferedInputs,
    Party,
    blinded_bytes,
    text_bytes,
    transfer_bytes,
)

__all__ = [
    "FRAME_BYTES",
    "KEY_BYTES",
    "LABEL_BYTES",
    "MEANING_BYTES",
    "ONE",
    "TABLE_BYTES",
    "ZERO",
    "AskedInputs",
    "Builder",
    "Circuit",
    "Evaluator",
    "Garbler",
    "Meaning",
    "OfferedInputs",
    "Party",
    "blinded_bytes",
    "offer_automaton",
    "read_automaton",
    "run_circuit",
    "table_buffer",
    "text_bytes",
    "transfer_bytes",
]
