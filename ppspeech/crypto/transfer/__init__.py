"""Oblivious transfer: 128 base transfers, extended to as many as are needed."""

from ppspeech.crypto.transfer.base import POINT_BYTES, choose_keys, offer_keys
from ppspeech.crypto.transfer.codes import CODE_COLUMNS, LARGEST_BITS, Batch, CodeReceiver, CodeSender
from ppspeech.crypto.transfer.extension import PAIR_COLUMNS
from ppspeech.crypto.transfer.setup import PairSetup, Side

__all__ = [
    "CODE_COLUMNS",
    "LARGEST_BITS",
    "PAIR_COLUMNS",
    "POINT_BYTES",
    "Batch",
    "CodeReceiver",
    "CodeSender",
    "PairSetup",
    "Side",
    "choose_keys",
    "offer_keys",
]
