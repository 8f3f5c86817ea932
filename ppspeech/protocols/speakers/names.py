"""Names as shared residues, and the name of the best of many scores.

A knock-out tournament: neighbors are compared, the winner's score and name go on; of equals the left one. Nobody
learns a place, a score or who met whom; what is left is a share each of the winner's score and name.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Ring, pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.shares import (
    Cost,
    ShareEngine,
    at_least,
    is_negative_cost,
    multiply_bit,
    multiply_bit_cost,
    open_cost,
    open_to,
)
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ModelError
from ppspeech.protocols.message_kinds import Kind

Recipient = Literal["client", "server", "third"]

LETTERS = 7
"""Bytes of a name in one residue."""

NAME_RING = Ring(8 * LETTERS)


@dataclass(frozen=True)
class Answer:
    """What the recipient learns: a name, or None where nobody was accepted."""

    name: str | None


def say_name(answer: Answer | None) -> str:
    """The answer in residues; None is that of a party who is not the recipient."""
    return "the other party knows" if answer is None else answer.name or "nobody"


def name_residues(names: list[str], length: int) -> Residues:
    """Names of up to `length` bytes of UTF-8 as residues `(names, residues)`.

    Raises:
        ModelError: for a name that is empty, too long, or has a zero byte in it.

    >>> read_name(name_residues(["Zoë"], 14)[0])
    'Zoë'
    """
    residues = np.zeros((len(names), words_of(length)), np.uint64)
    for row, name in zip(residues, names, strict=True):
        letters = name.encode()
        if not 0 < len(letters) <= length or 0 in letters:
            raise ModelError(f"a name has 1 to {length} bytes, none of them zero, got {name!r}")
        padded = letters.ljust(LETTERS * len(row), b"\0")
        row[:] = [int.from_bytes(padded[at : at + LETTERS], "little") for at in range(0, len(padded), LETTERS)]
    return residues


def read_name(residues: Residues) -> str | None:
    """The name that residues `(residues,)` spell; None for nobody's, which is all zero."""
    letters = b"".join(int(residue).to_bytes(LETTERS, "little") for residue in residues).rstrip(b"\0")
    return letters.decode(errors="replace") or None


def words_of(length: int) -> int:
    """Residues of a name of `length` bytes."""
    return -(-length // LETTERS)


def best_name(engine: ShareEngine, scores: Residues, names: Residues, ring: Ring) -> tuple[Residues, Residues]:
    """Shares of the largest score, `(1,)`, and of its name, `(residues,)`.

    Args:
        engine: this party's.
        scores: our shares, `(candidates,)`; they must differ by less than 2^(bits - 1).
        names: our shares, `(candidates, residues)`.
        ring: of the scores.
    """
    with engine.in_flights():
        while len(scores) > 1:
            scores, names = _halve(engine, scores, names, ring)
    return scores, names[0]


def best_name_cost(ring: Ring, candidates: int, residues: int) -> Cost:
    """`best_name` among `candidates`."""
    cost = Cost()
    while candidates > 1:
        duels = candidates // 2
        cost += is_negative_cost(ring, duels) + multiply_bit_cost(NAME_RING, duels * (1 + residues))
        candidates -= duels
    return cost.in_flights()


def give_name(
    engine: ShareEngine, recipient: Recipient, accepted: Bits, name: Residues, third: Channel | None
) -> Answer | None:
    """Give the recipient the shared name, or nobody's if the shared bit says so; None for whoever is not the recipient.

    Args:
        engine: this party's.
        recipient: the client is the engine's second party, the server its first.
        accepted: our share of the decision, `(1,)`.
        name: our share, `(residues,)`.
        third: channel to the third party, where that is the recipient: it gets one share from each.
    """
    masked = multiply_bit(engine, np.repeat(accepted, len(name)), name, NAME_RING)
    if third is not None:
        third.send(Kind.NAME_SHARE, pack_numbers(masked, NAME_RING.bits))
        return None
    opened = open_to(engine, Side.SECOND if recipient == "client" else Side.FIRST, masked, NAME_RING)
    return None if opened is None else Answer(read_name(opened))


def give_name_cost(recipient: Recipient, residues: int) -> Cost:
    """`give_name`; what goes to a third party is not counted here."""
    masked = multiply_bit_cost(NAME_RING, residues)
    if recipient == "third":
        return masked
    return masked + open_cost(Side.SECOND if recipient == "client" else Side.FIRST, NAME_RING, residues)


def learn_name(client: Channel, server: Channel, residues: int) -> Answer:
    """The third party's program: a share from each, and their sum."""
    size = packed_bytes(residues, NAME_RING.bits)
    data = [channel.receive(Kind.NAME_SHARE, size) for channel in (client, server)]
    shares = [unpack_numbers(each, residues, NAME_RING.bits).astype(np.uint64) for each in data]
    return Answer(read_name(NAME_RING.join(*shares)))


def check_recipient(recipient: str, longest_name: int) -> None:
    """Refuse recipients and names that cannot be.

    Raises:
        ModelError: for another recipient than client, server or third, or names of no or more than 256 bytes.
    """
    if recipient not in ("client", "server", "third"):
        raise ModelError(f"the name goes to the client, the server or a third party, got {recipient!r}")
    if not 1 <= longest_name <= 256:
        raise ModelError(f"names have up to 1 to 256 bytes, got {longest_name}")


def check_third(recipient: Recipient, third: Channel | None) -> None:
    """Refuse a channel to a third party that gets nothing, and a third party without one.

    Raises:
        ModelError: if recipient and channel do not fit.
    """
    if (recipient == "third") != (third is not None):
        raise ModelError("a channel to the third party is given if, and only if, it is the recipient")


def _halve(engine: ShareEngine, scores: Residues, names: Residues, ring: Ring) -> tuple[Residues, Residues]:
    """One level; without an opponent the last goes on."""
    duels = len(scores) // 2
    both = np.concatenate([scores[:, None], names], axis=1)
    left, right, rest = both[0 : 2 * duels : 2], both[1 : 2 * duels : 2], both[2 * duels :]
    stays = at_least(engine, left[:, 0], right[:, 0], ring)
    # A share mod 2^21 is one mod 2^56 of the same residue mod 2^21: scores and names are chosen in one batch.
    difference = NAME_RING.reduce(left - right)
    chosen = multiply_bit(engine, np.repeat(stays, both.shape[1]), difference.reshape(-1), NAME_RING)
    winners = np.concatenate([NAME_RING.reduce(right + chosen.reshape(left.shape)), rest])
    return ring.reduce(winners[:, 0]), winners[:, 1:]
