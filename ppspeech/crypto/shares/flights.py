"""Messages that leave together: one frame for all that a party says before it listens again.

Between two parties in lock step, a message that comes a moment before another wakes its receiver twice. Inside
`ShareEngine.in_flights` messages are held until the party waits for an answer, and travel as one frame:

    kind u8 | length u32 | payload, for each message

The receiver checks each of them against its script when its turn comes, as the channel itself does.
"""

import struct

from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.errors import BadLengthError, BadTypeError

HEADER = struct.Struct(">BI")
ROOM = 2**16
"""Bytes a flight may hold, unless its first message alone is larger."""


class FlightChannel:
    """A channel through another one, for a part of a program where both parties use it.

    Args:
        channel: what flights travel through.
    """

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
        """Send what is held, and make sure that nothing came that nobody asked for.

        Raises:
            BadLengthError: if the last flight holds more messages.
        """
        self.flush()
        if self._read != len(self._incoming):
            raise BadLengthError(f"a flight holds {len(self._incoming) - self._read} bytes that no step asked for")
