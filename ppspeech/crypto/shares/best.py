"""The largest of several shared residues: where it stands, what it is, and what it is called.

Two ways, for two prices. All pairs compared in one batch, each candidate's wins then joined by tables: three rounds for
up to 9 candidates, four for up to 65, for n (n - 1) / 2 comparisons (`argmax`, `tell_best`). Or a knock-out tournament:
three rounds for every factor of two, for n - 1 comparisons (`knock_out`, and of places alone, for a million,
`sieve`). Of equals the first wins, but in a sieve, where chance decides. Nobody learns a place, a score or who met
whom: what is left is a share each.
"""

from functools import partial

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.bits import all_bits, truncate_local
from ppspeech.crypto.shares.choose import choose
from ppspeech.crypto.shares.compare import is_negative, walking_carry
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.select import multiply_bit, multiply_loaded
from ppspeech.crypto.shares.shared import Shared, SharedBits, concatenate, select
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError


def argmax(residues: Shared) -> SharedBits:
    """A 1 where each row's largest residue stands, `(count, candidates)`; the lowest index wins a tie.

    The residues of a row must differ by less than 2^(bits - 1).
    """
    engine = residues.engine
    if len(residues.shape) != 2 or residues.shape[1] < 1:
        raise RangeError(f"candidates come as (count, candidates), got shape {residues.shape}")
    count, candidates = residues.shape
    if candidates == 1:
        return SharedBits(engine, engine.public(np.ones((count, 1), np.uint64)).astype(np.uint8))
    lower, higher = np.triu_indices(candidates, 1)
    loses = residues[:, lower] < residues[:, higher]
    wins = np.empty((count, candidates, candidates - 1), np.uint8)
    wins[:, lower, higher - 1] = (~loses).own
    wins[:, higher, lower] = loses.own
    best = all_bits(engine, wins.reshape(count * candidates, -1))
    return SharedBits(engine, best.reshape(count, candidates))


def largest(residues: Shared) -> Shared:
    """Each row's largest residue, `(count,)`."""
    return (argmax(residues) * residues).sum(axis=1)


def smallest(residues: Shared) -> Shared:
    """Each row's smallest residue, `(count,)`: secure minimum."""
    return -largest(-residues)


def tell_best(scores: Shared, texts: Residues | None, shape: tuple[int, int], ring: Ring) -> Residues | None:
    """The text of each row's largest score, `(rows, candidates)` to `(rows, residues)`, to the second party; None for
    the first. `scores`: those of a row must differ by less than 2^(bits - 1). `texts`: what the first party calls the
    candidates, of `shape` (candidates, residues); None for the second.

    Places count from 1: nobody's, 0, has an empty text, and is what a row gets in which no candidate beats all others.
    """
    if shape[0] != scores.shape[1]:
        raise RangeError(f"{scores.shape[1]} candidates need as many texts, agreed on are {shape}")
    won = argmax(scores).own.astype(np.int64)
    place = np.bitwise_xor.reduce(won * np.arange(1, shape[0] + 1), axis=1)
    return tell_texts(scores.engine, place.astype(np.uint64), texts, shape, ring)


def tell_texts(
    engine: ShareEngine, place: Residues, texts: Residues | None, shape: tuple[int, int], ring: Ring
) -> Residues | None:
    """The texts at some places, `(rows,)` to `(rows, residues)`, to the second party; None for the first. `texts`: the
    first party's, of `shape` (candidates, residues), at the places 1, 2, …; place 0 has an empty one.

    A place is the exclusive or of what both hold, `candidates.bit_length()` bits. The first party turns its texts by
    its own part, the second asks for one of them at its part (`choose`). So nothing the first party says depends on
    more than its part of the place, whatever the second has done before: it cannot learn more than as many bits.
    (Products of bits and texts would tell a second party that shifts its factors every bit of `argmax`.)
    """
    rows, (candidates, residues) = len(place), shape
    if texts is not None and texts.shape != shape:
        raise RangeError(f"texts of shape {shape} were agreed on, got {texts.shape}")
    size = 1 << candidates.bit_length()
    own = place.astype(np.int64) & (size - 1)
    turned = np.zeros((rows, residues, size), np.uint64)
    if texts is not None:
        padded = np.zeros((size, residues), np.uint64)
        padded[1 : candidates + 1] = texts
        turned = padded[np.arange(size) ^ own[:, None]].transpose(0, 2, 1)
    tables = Shared(engine, turned.reshape(rows * residues, size), ring)
    told = choose(tables, None if engine.is_first else np.repeat(own, residues)).open_to(Side.SECOND)
    return None if told is None else told.reshape(rows, residues)


def knock_out(scores: Shared, texts: Shared) -> tuple[Shared, Shared]:
    """The largest score, `(1,)`, and its text, `(residues,)`, by a tournament of neighbors. `scores`: `(candidates,)`,
    of a ring of at most 56 bits; they must differ by less than 2^(bits - 1). `texts`: what the candidates are called,
    `(candidates, residues)`.
    """
    # A share mod 2^21 is one mod 2^56 of the same residue mod 2^21: scores and texts are chosen in one batch.
    both = concatenate([scores.in_ring(texts.ring)[:, None], texts], axis=1)
    while len(both) > 1:
        duels = len(both) // 2
        left, right, rest = both[0 : 2 * duels : 2], both[1 : 2 * duels : 2], both[2 * duels :]
        stays = left[:, 0].in_ring(scores.ring) >= right[:, 0].in_ring(scores.ring)
        both = concatenate([select(stays[:, None], left, right), rest])
    return both[:, 0].in_ring(scores.ring), both[0, 1:]


STEP = 6
"""Bits of a block of a sieve's comparisons: of 12 bits they take two tables of 64, 64 bytes offline and 16 online."""


def sieve(scores: Shared, bits: int, finalists: int) -> tuple[Shared, Residues]:
    """The largest of a million scores, `(1,)`, and its place, `(1,)`, the exclusive or of what both hold.

    Candidates p and p + 2^b meet for every bit b of a place, the highest first, so that who has won spells the place:
    a load of the product that keeps the winner's score (`select`) grows by a bit a level. While more than `finalists`
    are left only the upper `bits` of differences are compared, each party dropping the rest of its share: whoever is
    behind loses, unless by less than a step, 2^-`bits` of the ring, where chance may decide. The finalists' scores,
    carried along as they were, are compared whole. Lemma 2.34 in docs/theory/asking.md.

    The scores `(candidates,)` must differ by less than 2^(ring - 1) less two steps. Raises RangeError for more bits
    than scores have, or scores and places that do not travel in 64 bits.
    """
    engine, ring = scores.engine, scores.ring
    if not 2 <= bits <= ring.bits or finalists < 1:
        raise RangeError(f"the upper 2 to {ring.bits} bits are compared, and somebody is left, got {bits}, {finalists}")
    own, places = scores.residues, np.zeros(len(scores), np.uint64)
    for width, bit in enumerate(reversed(range((len(scores) - 1).bit_length()))):
        half = 1 << bit
        left, right = slice(0, len(own) - half), slice(half, len(own))
        behind = _behind(Shared(engine, own[left] - own[right], ring), ring.bits if len(own) <= finalists else bits)
        moved, load = own[right] - own[left], places[left] ^ places[right]
        if width:
            won, spelled = multiply_loaded(engine, behind, moved, load, ring, width)
        else:
            won, spelled = multiply_bit(engine, behind, moved, ring), load
        own, places = own[:half].copy(), places[:half] << np.uint64(1)
        own[left] = ring.reduce(own[left] + won)
        places[left] ^= spelled << np.uint64(1) | behind
    return Shared(engine, own, ring), places


def _behind(ahead: Shared, bits: int) -> Bits:
    """Shares of [ahead < 0], by its upper bits."""
    short = truncate_local(ahead, ahead.ring.bits - bits)
    return is_negative(ahead.engine, short.own, short.ring, partial(walking_carry, step=STEP, wide_first=True))
