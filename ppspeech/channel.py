"""What two parties talk through, as a party program sees it."""

from enum import IntEnum
from typing import Protocol, Self


class Channel(Protocol):
    """One end of an ordered, authenticated, confidential conversation with one peer.

    A party program is straight-line code over `send` and `receive`, and is thereby its own script: each `receive`
    says which kind of message may come now and how long it may be, and anything else ends the session before a byte
    of it is parsed. The same program runs in memory, between processes and over TLS.
    """

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        """Send one message.

        Args:
            kind: what it is, 1..254, from the protocol's own enumeration (0 and 255 open and abort sessions).
            payload: its bytes.

        Raises:
            ProtocolError: if the peer is gone or does not take it in time.
        """
        ...

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        """Wait for the next message, which must be of this kind and length.

        Args:
            kind: the only kind that may come now.
            size: the exact length of its payload, in bytes.
            at_most: the largest length, where it is not known exactly; one of the two is required.

        Raises:
            ProtocolError: for anything else, a peer that is silent for too long, or one that is gone.
        """
        ...


class MessageKind(IntEnum):
    """Base of the enumerations of a room's messages: each has its number, and what it is to whoever receives it."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> Self:
        """One kind, as `NAME = number, meaning`."""
        kind = int.__new__(cls, number)
        kind._value_ = number
        kind.meaning = meaning
        return kind
