"""What two parties keep from their base transfers, and reuse safely from session to session.

The setup costs a third of a second once for a pair of parties; after that, transfers are extended from it by symmetric
cryptography alone. Counters make sure that no pad is made twice. A session that ends with an error leaves the two
sides at positions nobody can vouch for: the setup is then spent, and the parties must agree on a new one.
"""

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.points import POINT_BYTES
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.transfer.base import ANSWER_BYTES, choose_keys, offer_keys
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.crypto.transfer.codes import CODE_COLUMNS, CodeReceiver, CodeSender
from ppspeech.crypto.transfer.extension import (
    PAIR_COLUMNS,
    Code,
    ColumnReceiver,
    ColumnSender,
    OtReceiver,
    OtSender,
)
from ppspeech.errors import ProtocolError, RangeError, WrongSessionError

SETUP_BYTES_FIRST = ANSWER_BYTES * PAIR_COLUMNS + Code.total_bytes(CODE_COLUMNS + PAIR_COLUMNS)
"""What the first party sends in `PairSetup.agree`."""
SETUP_BYTES_SECOND = POINT_BYTES + Code.total_bytes(PAIR_COLUMNS)
"""What the second party sends in it."""

_RESUME = struct.Struct(">16sQQQQQ")
GREETING_BYTES = _RESUME.size
"""What each party sends in `PairSetup.session`, by which the two tell each other where they are."""


class Side(IntEnum):
    """Which of two parties one is. The first offers tables; the second looks up in them and speaks first."""

    FIRST = 0
    SECOND = 1


class PairSetup:
    """One party's half of a setup; `agree` makes both.

    Attributes:
        id: 16 public bytes that both halves share.
        sender: this party's transfers to the other.
        receiver: the other's to this party.
        code: the 1-of-n transfers, from the first to the second.
        labels: correlated ones, from the first to the second, that are nothing but labels of garbled circuits. The
            first's secret in them is Δ, whose lowest bit is 1: it tells the two labels of a wire apart.
        gates: how many gates were garbled or evaluated, of which no two have the same number.
    """

    def __init__(
        self,
        party: Side,
        name: bytes,
        sender: OtSender,
        receiver: OtReceiver,
        code: CodeSender | CodeReceiver,
        labels: ColumnSender | ColumnReceiver,
    ):
        self.party = party
        self.id = name
        self.sender = sender
        self.receiver = receiver
        self.code = code
        self.labels = labels
        self.gates = 0
        self._process = os.getpid()
        self._state = "ready"

    @classmethod
    def agree(cls, channel: Channel, party: Side) -> "PairSetup":
        """Run 128 base transfers, in which the second offers keys and the first chooses, and extend the others.

            128 base transfers → 1-of-2 to the second, 128 of these → 1-of-2 to the first,
            256 of these → 1-of-n, 128 of these → labels

        Every step is checked, so that keys which come of it are as good as the base transfers' own. Raises
        NotInGroupError for a received point that is not one, CheatError for a peer whose columns do not agree.
        """
        party = Side(party)
        pair_bits, code_bits = _uniform_bits(PAIR_COLUMNS), _uniform_bits(CODE_COLUMNS)
        label_bits = _uniform_bits(PAIR_COLUMNS)
        label_bits[0] = True
        if party is Side.FIRST:
            chosen, said = choose_keys(channel, pair_bits)
        else:
            offered, said = offer_keys(channel, PAIR_COLUMNS)
        name = hashlib.sha256(b"ppspeech setup" + said).digest()[:16]
        forth, back, wide, free = (
            BlockHash(hashlib.sha256(name + use).digest()[:16]) for use in (b"0", b"1", b"n", b"label")
        )
        if party is Side.FIRST:
            sender = OtSender(pair_bits, chosen, forth, name)
            receiver = OtReceiver(sender.offer_keys(channel, PAIR_COLUMNS), back, sender.said)
            keys = receiver.choose_keys(channel, np.concatenate([code_bits, label_bits]))
            code = CodeSender(code_bits, keys[:CODE_COLUMNS], wide, receiver.said)
            labels = ColumnSender(label_bits, keys[CODE_COLUMNS:], free, receiver.said + b"labels")
            return cls(party, name, sender, receiver, code, labels)
        receiver = OtReceiver(offered, forth, name)
        sender = OtSender(pair_bits, receiver.choose_keys(channel, pair_bits), back, receiver.said)
        pairs = sender.offer_keys(channel, CODE_COLUMNS + PAIR_COLUMNS)
        asked = CodeReceiver(pairs[:CODE_COLUMNS], wide, sender.said)
        return cls(
            party, name, sender, receiver, asked, ColumnReceiver(pairs[CODE_COLUMNS:], free, sender.said + b"labels")
        )

    @property
    def usable(self) -> bool:
        """Whether a session may begin."""
        return self._state == "ready" and self._process == os.getpid()

    @contextmanager
    def session(self, channel: Channel) -> Iterator[None]:
        """Use the setup over this channel; an error inside leaves it spent.

        Both parties first show each other which setup they hold and where they are in it. Raises ProtocolError if the
        setup is spent, in use, or belongs to another process, WrongSessionError if the peer holds another setup, or is
        elsewhere in it.
        """
        if self._state != "ready":
            raise ProtocolError(f"this setup is {self._state}: agree on a new one with PairSetup.agree")
        if self._process != os.getpid():
            raise ProtocolError("this setup belongs to another process, which may be using it: agree on a new one")
        self._state = "in use"
        try:
            mine = self._position()
            channel.send(Kind.RESUME, mine)
            if channel.receive(Kind.RESUME, _RESUME.size) != mine:
                raise WrongSessionError("the peer holds another setup, or stopped elsewhere in it: agree on a new one")
            yield
        except BaseException:
            self._state = "spent"
            raise
        self._state = "ready"

    def check_in_use(self) -> None:
        """Refuse transfers outside a session. Raises ProtocolError unless a session of this setup is open."""
        if self._state != "in use":
            raise ProtocolError(f"this setup is {self._state}: open a session with `with setup.session(channel)`")

    def take_gates(self, count: int) -> int:
        """The number of the first of so many gates; nobody gets one of them again. Raises ProtocolError outside a
        session, RangeError for fewer than none.
        """
        self.check_in_use()
        if count < 0:
            raise RangeError(f"cannot number {count} gates")
        first, self.gates = self.gates, self.gates + count
        return first

    def _position(self) -> bytes:
        counters = (self.sender.done, self.receiver.done)
        forth, back = counters if self.party is Side.FIRST else counters[::-1]
        return _RESUME.pack(self.id, forth, back, self.code.done, self.labels.done, self.gates)

    def __repr__(self) -> str:
        return f"PairSetup(party={self.party.name}, id={self.id.hex()}, {self._state})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a setup holds secrets and positions: it cannot be pickled or copied")


def _uniform_bits(count: int) -> NDArray[np.bool_]:
    return uniform_residues(count, 1).astype(np.bool_)
