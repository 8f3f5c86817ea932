"""1-of-n oblivious transfer of entries of any length, as the paper's protocols use it: Bob offers, Alice chooses.

    Alice -> Bob    i ⊕ ρ, with the random choice ρ of a prepared transfer (`crypto.transfer`)
    Bob -> Alice    entry(w) ⊕ pad(w ⊕ i ⊕ ρ) for every w

An entry of several words takes as many transfers with the same choice.
"""

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto.transfer import LARGEST_BITS, Batch, CodeReceiver, CodeSender, PairSetup, Side
from ppspeech.errors import RangeError
from ppspeech.protocols import Kind


def offer_entries(channel: Channel, tables: Residues) -> None:
    """Be Bob: Alice gets the entry of her choice of each table, `(count, 2 to 256 entries, words)`, 64 bits a word."""
    count, entries, words = tables.shape
    batch = _batch(count, entries, words)
    setup = PairSetup.agree(channel, Side.FIRST)
    with setup.session(channel):
        assert isinstance(setup.code, CodeSender)
        (pads,) = setup.code.random(channel, [batch])
        flips = np.frombuffer(channel.receive(Kind.CHOICE, batch.count), np.uint8) & np.uint8((1 << batch.bits) - 1)
        padded = np.zeros((batch.count, 1 << batch.bits), np.uint64)
        padded[:, :entries] = tables.transpose(0, 2, 1).reshape(batch.count, entries)
        positions = np.arange(1 << batch.bits)[None, :] ^ flips[:, None]
        channel.send(Kind.OFFER, (padded ^ np.take_along_axis(pads, positions, axis=1)).astype("<u8").tobytes())


def choose_entries(channel: Channel, choices: NDArray[np.int64], entries: int, words: int) -> Residues:
    """Be Alice: the chosen entry of each table, `(count, words)`. Raises `RangeError` for a choice that is no entry."""
    if len(choices) and not (choices.min() >= 0 and choices.max() < entries):
        raise RangeError(f"choices lie between 0 and {entries - 1}, got {choices.min()} to {choices.max()}")
    batch = _batch(len(choices), entries, words)
    setup = PairSetup.agree(channel, Side.SECOND)
    with setup.session(channel):
        assert isinstance(setup.code, CodeReceiver)
        ((drawn, pads),) = setup.code.random(channel, [batch])
        index = np.repeat(choices, words)
        channel.send(Kind.CHOICE, (index.astype(np.uint8) ^ drawn).tobytes())
        offered = np.frombuffer(channel.receive(Kind.OFFER, batch.count * 8 << batch.bits), "<u8")
        chosen = offered.reshape(batch.count, -1)[np.arange(batch.count), index].astype(np.uint64) ^ pads
    return chosen.reshape(len(choices), words)


def _batch(count: int, entries: int, words: int) -> Batch:
    if not 2 <= entries <= 1 << LARGEST_BITS:
        raise RangeError(f"a choice is one of 2 to {1 << LARGEST_BITS} entries, got {entries}")
    return Batch((entries - 1).bit_length(), 64, count * words)
