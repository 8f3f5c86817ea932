"""The best of several shared scores with what it carries, by a tournament of neighbors; and what is told of it.

Nobody learns a score, a place or who met whom. Loads are bits that both share by exclusive or.
"""

from collections.abc import Sequence

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import (
    TEXT_RING,
    Shared,
    SharedBits,
    ShareEngine,
    multiply_loaded,
    tell_texts,
    text_residues,
    text_size,
)
from ppspeech.crypto.transfer import Side


def best_of(scores: Shared, loads: Residues, width: int) -> tuple[Shared, Residues]:
    """The largest score of each row and its load, `(rows, candidates)` to `(rows,)` each; of equals the first.

    Scores of a row must differ by less than 2^(bits - 1). `loads`: our share, of `width` bits.
    """
    engine, ring, own = scores.engine, scores.ring, scores.own
    while own.shape[1] > 1:
        duels = own.shape[1] // 2
        left, right, shape = slice(0, 2 * duels, 2), slice(1, 2 * duels, 2), (len(own), duels)
        ahead = Shared(engine, ring.reduce(own[:, left] - own[:, right]).reshape(-1), ring)
        stays = ~ahead.is_negative()
        other = (loads[:, left] ^ loads[:, right]).reshape(-1)
        gained, moved = multiply_loaded(engine, stays.own, ahead.own, other, ring, width)
        own = np.concatenate((own[:, right] + gained.reshape(shape), own[:, 2 * duels :]), axis=1)
        loads = np.concatenate((loads[:, right] ^ moved.reshape(shape), loads[:, 2 * duels :]), axis=1)
    return Shared(engine, own[:, 0], ring), loads[:, 0]


def tell_where(found: SharedBits, loads: Residues, width: int) -> Residues | None:
    """Each load, above it a bit that is 1, where `found` is 1, and 0 where it is not; to the second party, `(rows,)`.

    A load is multiplied by the bit, so that what was not found says nothing of where it would have been.
    """
    masked = bits_where(found, loads, width)
    opened = SharedBits(found.engine, np.concatenate((masked, found.own[:, None]), axis=1)).open_to(Side.SECOND)
    return None if opened is None else joined(opened)


def tell_name(
    engine: ShareEngine, place: Residues, width: int, names: Sequence[str] | None, name_bytes: int
) -> Residues | None:
    """The name at a place that both share by exclusive or, `(1,)` of `width` bits, as text to the second party. Places
    count from 1, and nobody's, 0, has an empty name. `names`: the first party's; None for the second.

    As `tell_texts`: nothing that the first says depends on more than its part of the place.
    """
    shape, texts = ((1 << width) - 1, text_size(name_bytes)), None
    if names is not None:
        texts = np.zeros(shape, np.uint64)
        texts[: len(names)] = text_residues(names, name_bytes)
    told = tell_texts(engine, place, texts, shape, TEXT_RING)
    return None if told is None else told[0]


def bits_where(found: SharedBits, loads: Residues, width: int) -> Bits:
    """Our share of each load's bits where `found` is 1, and of zeros where it is not, `(rows, width)`."""
    engine, rows = found.engine, len(loads)
    repeated = SharedBits(engine, np.repeat(found.own, width))
    return (repeated & SharedBits(engine, bits_of(loads, width).reshape(-1))).own.reshape(rows, width)


def joined(bits: Bits) -> Residues:
    """Numbers from their bits, the lowest first: `(rows, bits)` to `(rows,)`."""
    places = np.arange(bits.shape[1], dtype=np.uint64)
    return np.asarray((bits.astype(np.uint64) << places).sum(axis=1, dtype=np.uint64))


def bits_of(loads: Residues, width: int) -> Bits:
    """Bits, the lowest first: `(rows,)` to `(rows, width)`."""
    return ((loads[:, None] >> np.arange(width, dtype=np.uint64)) & np.uint64(1)).astype(np.uint8)


def added_bits(engine: ShareEngine, bits: Bits, ring: Ring) -> Shared:
    """Numbers whose bits are shared by exclusive or, `(rows, bits)`, the lowest first, as sums: `(rows,)`."""
    places = engine.public(np.uint64(1) << np.arange(bits.shape[1], dtype=np.uint64))
    return (SharedBits(engine, bits) * Shared(engine, np.broadcast_to(places, bits.shape), ring)).sum(axis=1)
