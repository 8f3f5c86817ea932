"""The largest of several shared residues: where it stands, what it is, and what it is called.

Two ways, for two prices. All pairs compared in one batch, each candidate's wins then joined by tables: three rounds for
up to 9 candidates, four for up to 65, for n (n - 1) / 2 comparisons (`argmax`, `best_text`). Or a knock-out tournament:
three rounds for every factor of two, for n - 1 comparisons (`knock_out`). Of equals the first wins. Nobody learns a
place, a score or who met whom: what is left is a share each.
"""

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.bits import all_bits
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.shared import Shared, SharedBits, select
from ppspeech.crypto.shares.text import TEXT_RING
from ppspeech.errors import RangeError


def argmax(engine: ShareEngine, residues: Residues, ring: Ring) -> Bits:
    """Shares of a 1 where each row's largest residue stands, `(count, candidates)`; the lowest index wins a tie.

    The residues of a row must differ by less than 2^(bits - 1).
    """
    count, candidates = _check(residues)
    if candidates == 1:
        return engine.public(np.ones((count, 1), np.uint64)).astype(np.uint8)
    lower, higher = np.triu_indices(candidates, 1)
    given = Shared(engine, residues, ring)
    loses = given[:, lower] < given[:, higher]
    wins = np.empty((count, candidates, candidates - 1), np.uint8)
    wins[:, lower, higher - 1] = (~loses).own
    wins[:, higher, lower] = loses.own
    return all_bits(engine, wins.reshape(count * candidates, -1)).reshape(count, candidates)


def largest(engine: ShareEngine, residues: Residues, ring: Ring) -> Residues:
    """Shares of each row's largest residue, `(count,)`."""
    places = SharedBits(engine, argmax(engine, residues, ring))
    return (places * Shared(engine, residues, ring)).sum(axis=1).residues


def smallest(engine: ShareEngine, residues: Residues, ring: Ring) -> Residues:
    """Shares of each row's smallest residue, `(count,)`: secure minimum."""
    return ring.reduce(np.uint64(0) - largest(engine, ring.reduce(np.uint64(0) - residues), ring))


def best_text(engine: ShareEngine, scores: Residues, texts: Residues, ring: Ring) -> Residues:
    """Shares of the text of each row's largest score, `(rows, candidates)` to `(rows, residues)`, by all pairs.

    Args:
        engine: this party's.
        scores: our shares; those of a row must differ by less than 2^(bits - 1).
        texts: our shares of what the candidates are called, `(candidates, residues)`, the same for all rows.
        ring: of the scores.
    """
    best = SharedBits(engine, argmax(engine, scores, ring))
    return (best[..., None] * Shared(engine, texts, TEXT_RING)).sum(axis=1).residues


def knock_out(engine: ShareEngine, scores: Residues, texts: Residues, ring: Ring) -> tuple[Residues, Residues]:
    """Shares of the largest score, `(1,)`, and of its text, `(residues,)`, by a tournament of neighbors.

    Args:
        engine: this party's.
        scores: our shares, `(candidates,)`; they must differ by less than 2^(bits - 1).
        texts: our shares of what the candidates are called, `(candidates, residues)`.
        ring: of the scores, of at most 56 bits.
    """
    # A share mod 2^21 is one mod 2^56 of the same residue mod 2^21: scores and texts are chosen in one batch.
    both = np.concatenate([ring.reduce(scores)[:, None], texts], axis=1)
    while len(both) > 1:
        duels = len(both) // 2
        left, right, rest = both[0 : 2 * duels : 2], both[1 : 2 * duels : 2], both[2 * duels :]
        stays = Shared(engine, left[:, 0], ring) >= Shared(engine, right[:, 0], ring)
        winners = select(stays[:, None], Shared(engine, left, TEXT_RING), Shared(engine, right, TEXT_RING))
        both = np.concatenate([winners.residues, rest])
    return ring.reduce(both[:, 0]), both[0, 1:]


def _check(residues: Residues) -> tuple[int, int]:
    if residues.ndim != 2 or residues.shape[1] < 1:
        raise RangeError(f"candidates come as (count, candidates), got shape {residues.shape}")
    return residues.shape[0], residues.shape[1]
