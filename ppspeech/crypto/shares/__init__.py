"""Two parties computing on additive shares: inputs, comparisons, tables, choices, sums."""

from ppspeech.crypto.shares.best import argmax, knock_out, largest, sieve, smallest, tell_best, tell_texts
from ppspeech.crypto.shares.bits import all_bits, at_least, extend, round_local, truncate_local, widen
from ppspeech.crypto.shares.choose import check_index, choose
from ppspeech.crypto.shares.compare import carry, is_negative
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.lines import Lines, follow_lines, scale_public
from ppspeech.crypto.shares.log_add import ENTRIES, LogAdd, log_add, log_add_twin
from ppspeech.crypto.shares.look_up import look_up
from ppspeech.crypto.shares.products import cross_products, multiply, scale_by_first, square
from ppspeech.crypto.shares.recorder import blank, record
from ppspeech.crypto.shares.secret_table import RowShape, SecretTable, look_up_secret
from ppspeech.crypto.shares.select import LARGEST_RING, multiply_bit, multiply_loaded
from ppspeech.crypto.shares.shared import (
    Shared,
    SharedBits,
    concatenate,
    maximum,
    minimum,
    open_bits_to,
    open_to,
    select,
    share_among,
    share_input,
)
from ppspeech.crypto.shares.text import TEXT_RING, read_text, show_text, text_residues, text_size

__all__ = [
    "ENTRIES",
    "LARGEST_RING",
    "TEXT_RING",
    "Cost",
    "Lines",
    "LogAdd",
    "RowShape",
    "SecretTable",
    "ShareEngine",
    "Shared",
    "SharedBits",
    "all_bits",
    "argmax",
    "at_least",
    "blank",
    "carry",
    "check_index",
    "choose",
    "concatenate",
    "cross_products",
    "extend",
    "follow_lines",
    "is_negative",
    "knock_out",
    "largest",
    "log_add",
    "log_add_twin",
    "look_up",
    "look_up_secret",
    "maximum",
    "minimum",
    "multiply",
    "multiply_bit",
    "multiply_loaded",
    "open_bits_to",
    "open_to",
    "read_text",
    "record",
    "round_local",
    "scale_by_first",
    "scale_public",
    "select",
    "share_among",
    "share_input",
    "show_text",
    "sieve",
    "smallest",
    "square",
    "tell_best",
    "tell_texts",
    "text_residues",
    "text_size",
    "truncate_local",
    "widen",
]
