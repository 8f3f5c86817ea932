"""Rows that open by a sum: what `hardened` and `login` share.

Of every bit of its code the client has one key. Keys become residues, which it adds up; the sum points to one row of a
table, and opens that one alone.
"""

import numpy as np

from ppspeech.arrays import Bytes, Residues
from ppspeech.crypto.transfer import BlockHash

WORDS = 3  # of what the client adds up: one that points to a row, two that open it


def in_order(keys: Bytes, masked: bytes) -> Bytes:
    """Pairs of keys `(count, 2, 16)` by what the client wants instead of by what it had drawn."""
    turned = np.unpackbits(np.frombuffer(masked, np.uint8))[: len(keys)].astype(np.bool_)
    return np.where(turned[:, None, None], keys[:, ::-1], keys)


def key_residues(hashed: BlockHash, keys: Bytes) -> Residues:
    """Uniform residues from keys `(count, 16)`: `(count, 3)`."""
    blocks = hashed.hash_blocks(np.repeat(keys, 2, axis=0).view(np.uint64), 0)
    return np.ascontiguousarray(blocks.reshape(len(keys), 4)[:, :WORDS])


def row_pads(hashed: BlockHash, openers: Residues, first: int) -> Bytes:
    """What hides the labels of rows from `first` on, `(rows, 16)`."""
    return hashed.hash_blocks(np.ascontiguousarray(openers), first).view(np.uint8)
