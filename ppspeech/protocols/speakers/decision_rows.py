"""Rows that open by a sum: what `hardened` and `login` share.

Of every bit of its code the client has one key. Keys become residues, which it adds up; the sum points to one row of a
table, and opens that one alone.
"""

import numpy as np

from ppspeech.arrays import Bytes, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.transfer import BlockHash
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.speakers.codes import Code

WORDS = 3  # of what the client adds up: one that points to a row, two that open it


def in_order(keys: Bytes, masked: bytes) -> Bytes:
    """Pairs of keys `(count, 2, 16)` by what the client wants instead of by what it had drawn."""
    turned = np.unpackbits(np.frombuffer(masked, np.uint8))[: len(keys)].astype(np.bool_)
    return np.where(turned[:, None, None], keys[:, ::-1], keys)


def key_residues(hashed: BlockHash, keys: Bytes) -> Residues:
    """Uniform residues from keys `(count, 16)`: `(count, 3)`."""
    blocks = hashed.hash_blocks(np.repeat(keys, 2, axis=0).view(np.uint64), 0)
    return np.ascontiguousarray(blocks.reshape(len(keys), 4)[:, :WORDS])


def send_steps(channel: Channel, hashed: BlockHash, keys: Bytes, ways: Residues) -> Residues:
    """The server: for every pair of keys `(count, 2, 16)` the step with which the second opens the pad of the first,
    and a way `(count, 3)` more. Returns the pads of the first, `(count, 3)`.
    """
    none, one = (key_residues(hashed, keys[:, bit]) for bit in (0, 1))
    channel.send(Kind.MASKED_INPUTS, (none + ways - one).astype("<u8").tobytes())
    return none


def receive_steps(channel: Channel, hashed: BlockHash, keys: Bytes, bits: Code) -> Residues:
    """The client, with a key `(count, 16)` of each pair, the second where a bit is set: what it opens, `(count, 3)`."""
    pads = key_residues(hashed, keys)
    steps = np.frombuffer(channel.receive(Kind.MASKED_INPUTS, pads.nbytes), "<u8").reshape(pads.shape)
    pads[bits] += steps[bits]
    return pads


def row_pads(hashed: BlockHash, openers: Residues, first: int) -> Bytes:
    """What hides the labels of rows from `first` on, `(rows, 16)`."""
    return hashed.hash_blocks(np.ascontiguousarray(openers), first).view(np.uint8)
