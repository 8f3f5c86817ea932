"""A session over a connection: frames out, frames in, and one way to end."""

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Self

from ppspeech.errors import FrameTooLargeError, PeerGoneError, ProtocolError
from ppspeech.network.channel.frames import (
    ABORT,
    ABORT_PAYLOAD,
    HEADER,
    HELLO,
    LAST_SEQUENCE,
    NO_SESSION,
    check_header,
    pack_header,
)
from ppspeech.network.channel.stream import Carrier, Peer
from ppspeech.network.limits import Limits

logger = logging.getLogger(__name__)

COALESCED = 2**16  # payloads up to this size are copied behind their header and sent in one piece
FAREWELL_SECONDS = 0.2  # how long an ABORT may take: a peer that reads nothing gets none


def _nothing() -> None:
    """Nobody asked to be told of the next message."""


class StreamChannel:
    """A `Channel` over a connection. Use it as a context manager: an error inside aborts the session.

    Kinds 1..254 belong to the protocols; 0 and 255 are HELLO and ABORT. Whatever goes wrong, the peer sees one
    constant ABORT frame and the end of the stream; the reason is raised here and goes to this party's log, where no
    payload is ever written. After that every call raises `PeerGoneError`.

    `greet_by`: when (of `time.monotonic`) the session must have begun; `handshake_seconds` from now by default.
    """

    def __init__(self, stream: Carrier, limits: Limits, greet_by: float | None = None) -> None:
        self.limits = limits
        self.session = NO_SESSION
        self._stream = stream
        self._ends = time.monotonic() + limits.handshake_seconds if greet_by is None else greet_by
        self._sent = self._received = 0
        self._next_by, self._on_next = float("inf"), _nothing
        self._over = False
        self._inside_write = False

    @property
    def peer(self) -> Peer:
        """Who is at the other end: its address, and the certificate it has shown."""
        return self._stream.peer

    @property
    def bytes_sent(self) -> int:
        """Bytes of frames sent, headers included, TLS not."""
        return self._stream.bytes_sent

    @property
    def bytes_received(self) -> int:
        """Bytes of frames received, headers included, TLS not."""
        return self._stream.bytes_received

    def begin(self, session: bytes) -> None:
        """Start the session that the HELLOs agreed on."""
        self.session = session
        self._ends = time.monotonic() + self.limits.session_seconds

    def expect_within(self, seconds: float, then: Callable[[], None]) -> None:
        """Wait no longer than this for the next message, whatever the limits say; `then` is called when it has come."""
        self._next_by, self._on_next = time.monotonic() + seconds, then

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        """Send one message; see `Channel.send`."""
        check_kind(kind)
        self.send_frame(kind, payload)

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        """Wait for the next message, which must be of this kind and length; see `Channel.receive`."""
        check_kind(kind)
        check_bounds(size, at_most)
        return self.receive_frame(kind, size, at_most)

    def send_frame(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        """Send a frame of any type, HELLO too."""
        self._check_open()
        try:
            data = payload if isinstance(payload, bytes) else memoryview(payload).cast("B")
            length = len(data)
            if length > self.limits.message_bytes or self._sent >= LAST_SEQUENCE:
                raise FrameTooLargeError(
                    f"cannot send {length} bytes as frame {self._sent}: "
                    f"the limits are {self.limits.message_bytes} bytes and {LAST_SEQUENCE} frames"
                )
            header = pack_header(kind, self.session, self._sent, length)
            deadline = min(time.monotonic() + self.limits.message_seconds, self._ends)
            self._inside_write = True
            if length <= COALESCED:
                self._stream.write(header + data, deadline)
            else:
                view = memoryview(data)
                self._stream.write(header + view[:COALESCED], deadline)
                self._stream.write(view[COALESCED:], deadline)
            self._inside_write = False
            self._sent += 1
        except ProtocolError as error:
            self.fail(error)
            raise

    def receive_frame(self, kind: int, size: int | None, at_most: int | None) -> bytes:
        """Receive a frame of any type, HELLO too."""
        self._check_open()
        try:
            largest = size if at_most is None else at_most
            assert largest is not None
            if largest > self.limits.message_bytes:
                raise FrameTooLargeError(
                    f"this step may bring {largest} bytes, more than this party's limit of "
                    f"{self.limits.message_bytes}: raise Limits.message_bytes"
                )
            deadline = min(time.monotonic() + self.limits.message_seconds, self._ends, self._next_by)
            header, number = self._stream.read(HEADER.size, deadline), self._received
            length = check_header(header, kind=kind, session=self.session, sequence=number, size=size, at_most=largest)
            payload = self._stream.read(length, deadline, inside=True) if length else b""
            self._received += 1
        except ProtocolError as error:
            self.fail(error)
            raise
        if self._on_next is not _nothing:
            self._on_next()
            self._next_by, self._on_next = float("inf"), _nothing
        return payload

    def abort(self) -> None:
        """End the session early: the peer gets the constant ABORT frame if it can still be sent, and nothing more."""
        if self._over:
            return
        self._over = True
        if not self._inside_write:  # inside a frame, an ABORT would only be part of its payload
            farewell = pack_header(ABORT, self.session, self._sent, len(ABORT_PAYLOAD)) + ABORT_PAYLOAD
            with contextlib.suppress(ProtocolError):  # the peer is gone, and needs no telling
                self._stream.write(farewell, time.monotonic() + FAREWELL_SECONDS)
        self._stream.close()

    def fail(self, error: BaseException) -> None:
        """Abort for a reason, which goes to the log if it is one of ours: the words of others may hold secrets."""
        if not self._over:
            level = logging.INFO if isinstance(error, PeerGoneError) else logging.WARNING
            reason = f": {error}" if isinstance(error, ProtocolError) else ""
            logger.log(level, "session %s ended: %s%s", self.session.hex()[:8], type(error).__name__, reason)
        self.abort()

    def close(self) -> None:
        """End the session after its last message."""
        self._over = True
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self.fail(error)

    def _check_open(self) -> None:
        if self._over:
            raise PeerGoneError("the session is over")


def check_kind(kind: int) -> None:
    """Refuse a kind that is not a protocol's own. Raises `ValueError` unless 1 <= kind <= 254."""
    if not HELLO < kind < ABORT:
        raise ValueError(f"the kind of a message must be in 1..254 (0 and 255 are the session's own), got {kind}")


def check_bounds(size: int | None, at_most: int | None) -> None:
    """Raises `ValueError` unless exactly one of the two says how long the next message may be, and is not negative."""
    bounds = [bound for bound in (size, at_most) if bound is not None]
    if len(bounds) != 1 or bounds[0] < 0:
        raise ValueError(f"give either size or at_most, and not below 0; got size={size}, at_most={at_most}")
