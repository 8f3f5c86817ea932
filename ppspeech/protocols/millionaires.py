"""Yao's millionaires: who is richer, and nothing else. The worked example of a protocol.

Alice has a, Bob b, both below 2^bits. The carry of a + (2^bits - 1 - b) is 1 iff a > b; it is computed on shares,
and both send each other their share of this one bit.
"""

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.shares import ShareEngine, blank, carry, open_bits_to, record
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import RangeError
from ppspeech.protocols.party import Party, register_protocol

millionaires = register_protocol(
    "millionaires",
    functionality="whether alice's number is larger than bob's, to both",
    leakage="nothing but the number of bits, which is public",
    assumptions="both follow the protocol; Diffie-Hellman on ed25519, AES a random permutation, SHA-256 an oracle",
)


@millionaires.party("alice")
def alice(party: Party, wealth: int, *, bits: int = 32) -> str:
    """Alice's program: her number and the public number of bits, 1 to 60."""
    return _compare(party, Side.FIRST, wealth, bits)


@millionaires.party("bob")
def bob(party: Party, wealth: int, *, bits: int = 32) -> str:
    """Bob's program."""
    return _compare(party, Side.SECOND, wealth, bits)


def _compare(party: Party, side: Side, wealth: int, bits: int) -> str:
    cost = record(lambda engine: _open_carry(engine, blank(1), bits))
    if not isinstance(wealth, int) or not 0 <= wealth < 1 << bits:
        raise RangeError(f"numbers of {bits} bits are whole and from 0 to {(1 << bits) - 1}, got {wealth}")
    setup = PairSetup.agree(party.channel, side)
    with setup.session(party.channel):
        engine = ShareEngine(party.channel, setup, cost)
        own = wealth if side is Side.FIRST else (1 << bits) - 1 - wealth
        richer = _open_carry(engine, np.array([own], np.uint64), bits)
    return "alice is richer" if richer else "alice is not richer"


def _open_carry(engine: ShareEngine, own: Residues, bits: int) -> int:
    share = carry(engine, own, bits)
    answers = [open_bits_to(engine, receiver, share) for receiver in (Side.SECOND, Side.FIRST)]
    return next(int(answer[0]) for answer in answers if answer is not None)
