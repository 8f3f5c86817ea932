"""Sums over any number of parties, as shares of some of them. A missing party ends the sum: no partial result."""

from collections.abc import Collection, Mapping

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.errors import RangeError


def share_among(
    channels: Mapping[int, Channel], own: int, residues: Residues, ring: Ring, receivers: Collection[int]
) -> Residues | None:
    """Additive shares, among the parties named, of the sum of all parties' residues; None for the others.

    Every party cuts its residues into one share for each receiver; a receiver adds up what it gets. Whoever lacks the
    share of one receiver has uniform residues. Raises RangeError if a receiver is no party, or there is one alone, who
    would get everyone's residues, ProtocolError if a party is missing.
    """
    if set(receivers) - set(channels) - {own} or not receivers:
        raise RangeError(f"receivers must be parties, and at least one; got {sorted(receivers)}")
    named = sorted(receivers)
    if len(named) < 2:
        raise RangeError("shares need two receivers or more: one alone would get everyone's residues")
    parts = uniform_residues((len(named), len(residues)), ring.bits)
    parts[-1] = ring.reduce(residues - parts[:-1].sum(axis=0, dtype=np.uint64))
    for receiver, part in zip(named, parts, strict=True):
        if receiver != own:
            channels[receiver].send(Kind.SHARES, pack_numbers(part, ring.bits))
    if own not in receivers:
        return None
    count, total = len(residues), parts[named.index(own)]
    for _, channel in sorted(channels.items()):
        received = channel.receive(Kind.SHARES, packed_bytes(count, ring.bits))
        total = total + unpack_numbers(received, count, ring.bits).astype(np.uint64)
    return ring.reduce(total)
