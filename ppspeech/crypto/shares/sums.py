"""Sums over any number of parties that show nobody's term.

Every two parties share a random key, and from it masks that one adds and the other takes away: what a party sends is
uniform, and the masks cancel in the sum of all. All parties but one may collude without learning more of its term
than the sum and their own terms say. A party that is missing ends the sum; there is no partial result.
"""

from collections.abc import Collection, Mapping
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.errors import RangeError

KEY_BYTES = 32


class PairKeys:
    """The keys one party shares with each other one, and how many sums they have served.

    Args:
        channels: to every other party by its number.
        own: our own number.
    """

    def __init__(self, channels: Mapping[int, Channel], own: int) -> None:
        if own in channels or len(channels) < 2:
            raise RangeError("a sum hides its terms among three parties or more, each with a channel to all others")
        self.own = own
        self._streams = {}
        for other in sorted(channels):
            if own < other:
                key = uniform_bytes(KEY_BYTES)
                channels[other].send(Kind.SUM_KEY, key)
            else:
                key = channels[other].receive(Kind.SUM_KEY, KEY_BYTES)
            self._streams[other] = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def mask(self, count: int, ring: Ring) -> Residues:
        """The next masks: over all parties they add up to zero. The key streams move on, so none comes twice."""
        total = np.zeros(count, np.uint64)
        for other, stream in self._streams.items():
            residues = np.frombuffer(stream.update(bytes(8 * count)), "<u8").astype(np.uint64)
            total = total + residues if self.own < other else total - residues
        return ring.reduce(total)

    def __repr__(self) -> str:
        return f"PairKeys(own={self.own}, parties={len(self._streams) + 1})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("the keys of a sum are secret and used once: they cannot be pickled or copied")


def secure_sum(
    channels: Mapping[int, Channel], keys: PairKeys, residues: Residues, ring: Ring, receivers: Collection[int]
) -> Residues | None:
    """The sum mod 2^k of all parties' residues, to the parties named; None for the others.

    Args:
        channels: to every other party by its number.
        keys: agreed on over the same channels; they serve any number of sums.
        residues: our terms, `(count,)`; all parties have as many.
        ring: of the sum.
        receivers: the numbers of those who get it.

    Raises:
        RangeError: if a receiver is no party.
        ProtocolError: if a party is missing.
    """
    _check_receivers(channels, keys.own, receivers)
    masked = ring.reduce(residues + keys.mask(len(residues), ring))
    message = pack_numbers(masked, ring.bits)
    for other in receivers:
        if other != keys.own:
            channels[other].send(Kind.MASKED_SUM, message)
    if keys.own not in receivers:
        return None
    return ring.reduce(masked + _receive_all(channels, len(residues), ring, Kind.MASKED_SUM))


def share_among(
    channels: Mapping[int, Channel], own: int, residues: Residues, ring: Ring, receivers: Collection[int]
) -> Residues | None:
    """Additive shares, among the parties named, of the sum of all parties' residues; None for the others.

    Every party cuts its residues into one share for each receiver; a receiver adds up what it gets. Whoever lacks the
    share of one receiver has uniform residues.

    Raises:
        RangeError: if a receiver is no party, or there is one alone, who would get everyone's residues.
        ProtocolError: if a party is missing.
    """
    _check_receivers(channels, own, receivers)
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
    return ring.reduce(parts[named.index(own)] + _receive_all(channels, len(residues), ring, Kind.SHARES))


def _receive_all(channels: Mapping[int, Channel], count: int, ring: Ring, kind: Kind) -> Residues:
    size = packed_bytes(count, ring.bits)
    total = np.zeros(count, np.uint64)
    for other in sorted(channels):
        total += unpack_numbers(channels[other].receive(kind, size), count, ring.bits).astype(np.uint64)
    return total


def _check_receivers(channels: Mapping[int, Channel], own: int, receivers: Collection[int]) -> None:
    strangers = set(receivers) - set(channels) - {own}
    if strangers or not receivers:
        raise RangeError(f"receivers must be parties, and at least one; got {sorted(receivers)}")
