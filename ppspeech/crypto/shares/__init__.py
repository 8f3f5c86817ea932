"""Two parties computing on additive shares: inputs, comparisons, tables, choices, sums."""

from ppspeech.crypto.shares.best import argmax, argmax_cost, best_text, knock_out
from ppspeech.crypto.shares.choose import check_index, choose, choose_cost
from ppspeech.crypto.shares.compare import (
    carry,
    carry_cost,
    is_negative,
    is_negative_cost,
    maximum_cost,
)
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.log_add import ENTRIES, LogAdd, log_add, log_add_cost, log_add_twin
from ppspeech.crypto.shares.look_up import look_up, look_up_cost
from ppspeech.crypto.shares.products import (
    multiply,
    multiply_cost,
    scale_by_first,
    scale_by_first_cost,
    square,
    square_cost,
)
from ppspeech.crypto.shares.recorder import BlankChannel, blank, record
from ppspeech.crypto.shares.select import LARGEST_RING, and_bits, and_bits_cost, multiply_bit, multiply_bit_cost
from ppspeech.crypto.shares.shared import (
    Shared,
    SharedBits,
    maximum,
    minimum,
    open_bits_to,
    open_cost,
    open_to,
    select,
    share_input,
)
from ppspeech.crypto.shares.sums import share_among
from ppspeech.crypto.shares.text import TEXT_RING, read_text, text_residues, text_size
from ppspeech.crypto.shares.truncate import extend, extend_cost, truncate_local

__all__ = [
    "ENTRIES",
    "LARGEST_RING",
    "TEXT_RING",
    "BlankChannel",
    "Cost",
    "LogAdd",
    "ShareEngine",
    "Shared",
    "SharedBits",
    "and_bits",
    "and_bits_cost",
    "argmax",
    "argmax_cost",
    "best_text",
    "blank",
    "carry",
    "carry_cost",
    "check_index",
    "choose",
    "choose_cost",
    "extend",
    "extend_cost",
    "is_negative",
    "is_negative_cost",
    "knock_out",
    "log_add",
    "log_add_cost",
    "log_add_twin",
    "look_up",
    "look_up_cost",
    "maximum",
    "maximum_cost",
    "minimum",
    "multiply",
    "multiply_bit",
    "multiply_bit_cost",
    "multiply_cost",
    "open_bits_to",
    "open_cost",
    "open_to",
    "read_text",
    "record",
    "scale_by_first",
    "scale_by_first_cost",
    "select",
    "share_among",
    "share_input",
    "square",
    "square_cost",
    "text_residues",
    "text_size",
    "truncate_local",
]
