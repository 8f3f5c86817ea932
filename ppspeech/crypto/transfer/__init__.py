"""Oblivious transfer: 128 base transfers, extended to as many as are needed."""

from ppspeech.crypto.transfer import extension, one_of_many
from ppspeech.crypto.transfer.base import POINT_BYTES, choose_keys, offer_keys
from ppspeech.crypto.transfer.one_of_many import LARGEST_BITS, Batch, CodeReceiver, CodeSender
from ppspeech.crypto.transfer.setup import PairSetup, Side

__all__ = [
    "LARGEST_BITS",
    "POINT_BYTES",
    "Batch",
    "CodeReceiver",
    "CodeSender",
    "PairSetup",
    "Side",
    "choose_keys",
    "extension",
    "offer_keys",
    "one_of_many",
]
