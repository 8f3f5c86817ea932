"""Oblivious transfer: 128 base transfers, extended to as many as are needed; every extension is checked."""

from ppspeech.crypto.transfer.base import ANSWER_BYTES, POINT_BYTES, choose_keys, offer_keys
from ppspeech.crypto.transfer.codes import LARGEST_BITS, Batch, CodeReceiver, CodeSender
from ppspeech.crypto.transfer.setup import PairSetup, Side, setup_bytes_first

__all__ = [
    "ANSWER_BYTES",
    "LARGEST_BITS",
    "POINT_BYTES",
    "Batch",
    "CodeReceiver",
    "CodeSender",
    "PairSetup",
    "Side",
    "choose_keys",
    "offer_keys",
    "setup_bytes_first",
]
