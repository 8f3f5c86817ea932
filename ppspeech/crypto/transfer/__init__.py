"""Oblivious transfer: 128 base transfers, extended to as many as are needed; every extension is checked."""

from ppspeech.crypto.points import POINT_BYTES
from ppspeech.crypto.transfer.base import ANSWER_BYTES, choose_keys, offer_keys
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.crypto.transfer.codes import LARGEST_BITS, Batch, CodeReceiver, CodeSender
from ppspeech.crypto.transfer.extension import Code
from ppspeech.crypto.transfer.setup import GREETING_BYTES, SETUP_BYTES_FIRST, SETUP_BYTES_SECOND, PairSetup, Side

__all__ = [
    "ANSWER_BYTES",
    "GREETING_BYTES",
    "LARGEST_BITS",
    "POINT_BYTES",
    "SETUP_BYTES_FIRST",
    "SETUP_BYTES_SECOND",
    "Batch",
    "BlockHash",
    "Code",
    "CodeReceiver",
    "CodeSender",
    "PairSetup",
    "Side",
    "choose_keys",
    "offer_keys",
]
