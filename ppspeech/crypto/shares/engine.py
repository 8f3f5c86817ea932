"""Two parties computing on shares: a channel, which of the two one is, and what was prepared offline.

Between two parties in lock step, a message that comes a moment before another wakes its receiver twice. Inside
`ShareEngine.in_flights` messages are held until the party waits for an answer, and travel as one frame:

    kind u8 | length u32 | payload, for each message

The receiver checks each of them against its script when its turn comes, as the channel itself does.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.shares.correlations import Correlations, Supply
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.transfer.setup import PairSetup, Side
from ppspeech.errors import BadLengthError, BadTypeError

HEADER = struct.Struct(">BI")
ROOM = 2**16
"""Bytes a flight may hold, unless its first message alone is larger."""


class ShareEngine:
    """What every operation on shares takes first.

    A shared residue is the sum mod 2^k of the parties' residues (`uint64`), a shared bit the exclusive or of their bits
    (`uint8`, 0 or 1). Both parties call the same operations, in the same order, on arrays of the same shape. `setup`:
    with a session open on the channel. `cost`: what will be computed, so that the offline phase can prepare it:
    `record(program)`.
    """

    def __init__(self, channel: Channel, setup: PairSetup, cost: Cost) -> None:
        self.channel = channel
        self.party = setup.party
        self.correlations: Supply = Correlations(setup, channel, cost)

    @property
    def is_first(self) -> bool:
        """Whether this is the first party, which offers tables."""
        return self.party is Side.FIRST

    def public(self, residues: Residues) -> Residues:
        """Shares of residues that both parties know."""
        return residues if self.is_first else np.zeros_like(residues)

    def flip(self, bits: Bits) -> Bits:
        """Shares of the opposite bits."""
        return bits ^ np.uint8(1) if self.is_first else bits

    @contextmanager
    def in_flights(self) -> Iterator[None]:
        """Let messages of one direction travel together, where both parties do so in the same part of a program.

        For recursions, whose time is that of their messages. Nothing else may use the channel meanwhile.
        """
        plain, flights = self.channel, FlightChannel(self.channel)
        self.channel = flights
        try:
            yield
            flights.finish()
        finally:
            self.channel = plain

    def __repr__(self) -> str:
        return f"ShareEngine({self.party.name}, {self.correlations!r})"


class FlightChannel:
    """A channel through another one, for a part of a program where both parties use it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._outgoing: list[bytes | bytearray | memoryview] = []
        self._held = 0
        self._incoming = b""
        self._read = 0

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        """Hold one message until this party listens; see `Channel.send`."""
        size = HEADER.size + len(payload)
        if self._held + size > ROOM:
            self.flush()
        self._outgoing += [HEADER.pack(kind, len(payload)), payload]
        self._held += size

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        """Send what is held, and give the next message; see `Channel.receive`."""
        self.flush()
        allowed = size if size is not None else at_most
        if allowed is None:
            raise ValueError("give either size or at_most")
        if self._read == len(self._incoming):
            self._incoming = self._channel.receive(Kind.FLIGHT, at_most=max(HEADER.size + allowed, ROOM))
            self._read = 0
        start = self._read + HEADER.size
        if start > len(self._incoming):
            raise BadLengthError("a flight ends inside the header of a message")
        got, length = HEADER.unpack_from(self._incoming, self._read)
        if got != kind:
            raise BadTypeError(f"expected a message of kind {kind}, got kind {got}")
        if length > allowed or (size is not None and length != size) or start + length > len(self._incoming):
            raise BadLengthError(f"a message of kind {kind} announces {length} bytes where {allowed} may come")
        self._read = start + length
        return self._incoming[start : self._read]

    def flush(self) -> None:
        """Send what is held."""
        if self._outgoing:
            together, self._outgoing, self._held = b"".join(self._outgoing), [], 0
            self._channel.send(Kind.FLIGHT, together)

    def finish(self) -> None:
        """Send what is held. Raises BadLengthError if the last flight holds messages nobody asked for."""
        self.flush()
        if self._read != len(self._incoming):
            raise BadLengthError(f"a flight holds {len(self._incoming) - self._read} bytes that no step asked for")
