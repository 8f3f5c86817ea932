"""The bytes of a session inside binary WebSocket messages (RFC 6455), with the bounds that they have over TCP."""

import contextlib
import logging
import time

from websockets.exceptions import PayloadTooBig
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from ppspeech.errors import BadTypeError, FrameTooLargeError, PeerGoneError, ProtocolError
from ppspeech.network.channel.frames import HEADER
from ppspeech.network.channel.stream import ByteStream, Peer, end_of_stream

SUBPROTOCOL = "ppspeech.1"
OPENING_BYTES = 2**14
"""What may come before the session has begun: a HELLO, however it is cut."""
FAREWELL_SECONDS = 0.2

SILENT = logging.Logger("websockets", logging.CRITICAL + 1)
"""For a library that would write what it receives into its log, where that is kept in detail."""


def server_protocol(largest: int) -> ServerProtocol:
    """The server's side of one WebSocket: messages of frames with payloads of up to `largest` bytes, no compression."""
    return ServerProtocol(subprotocols=[SUBPROTOCOL], max_size=largest + HEADER.size, logger=SILENT)  # type: ignore[list-item]


class WebStream:
    """A session's bytes over a WebSocket that is open: what `ByteStream` is over TCP, which it owns and closes.

    The payloads of all binary messages, one after another, are the stream; how it is cut says nothing. Pings are
    answered. Whatever else comes (text, frames that are not masked, more than the limit) ends the session. `already`:
    what has come of it.
    """

    def __init__(self, inner: ByteStream, protocol: ServerProtocol, already: bytes = b"") -> None:
        self.bytes_sent = self.bytes_received = 0
        self._already = already
        self._inner, self._protocol = inner, protocol
        self._inbox = bytearray()
        self._raw, self._most = 0, float(OPENING_BYTES)
        self._ended = self._closed = self._inside_write = False

    @property
    def peer(self) -> Peer:
        """Who is at the other end."""
        return self._inner.peer

    def opened(self) -> None:
        """The session has begun: from now on messages may be as large as the limits say."""
        self._most = float("inf")

    def write(self, data: bytes | bytearray | memoryview, deadline: float) -> None:
        """Send all in one message before `deadline`; after a `ProtocolError` part of it may have been sent."""
        if self._ended or self._protocol.state is not OPEN:
            raise PeerGoneError("the peer closed the WebSocket")
        self._protocol.send_binary(data)
        self._flush(deadline)
        self.bytes_sent += len(data)

    def read(self, size: int, deadline: float, *, inside: bool = False) -> bytes:
        """Receive exactly `size` bytes before `deadline`; see `ByteStream.read`."""
        inbox = self._inbox
        while len(inbox) < size:
            if self._ended:
                raise end_of_stream(len(inbox), size, inside)
            self._take(deadline)
        data = bytes(memoryview(inbox)[:size])
        del inbox[:size]
        return data

    def close(self) -> None:
        """Say that it is over, without a reason, and close the connection. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = self._ended = True
        if not self._inside_write:  # inside a message, it would only be part of that
            with contextlib.suppress(ProtocolError):  # the peer is gone, and needs no telling
                if self._protocol.state is OPEN:
                    self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
                self._flush(time.monotonic() + FAREWELL_SECONDS)
        self._inner.close()
        self._inbox.clear()

    def _take(self, deadline: float) -> None:
        """Wait for bytes of the peer, and keep those that are the session's."""
        data, self._already = self._already or self._inner.read_some(deadline), b""
        self._raw += len(data)
        if self._raw > self._most:
            raise FrameTooLargeError(f"more than {OPENING_BYTES} bytes came before a session had begun")
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        for frame in self._protocol.events_received():
            assert isinstance(frame, Frame)
            if frame.opcode is Opcode.TEXT:
                self._protocol.fail(CloseCode.UNSUPPORTED_DATA)
                self._ended = True
                raise BadTypeError("the peer sent text where bytes must come")
            if frame.opcode in (Opcode.BINARY, Opcode.CONT):
                self._inbox += frame.data
                self.bytes_received += len(frame.data)
        self._ended = self._protocol.state is not OPEN or not data
        fault = self._protocol.parser_exc
        if isinstance(fault, PayloadTooBig):
            raise FrameTooLargeError("the peer sent a WebSocket message beyond the limit")
        if fault is not None and not isinstance(fault, EOFError):
            raise BadTypeError(f"the peer sent what is not WebSocket: {fault!s:.80}")
        with contextlib.suppress(ProtocolError) if self._ended else contextlib.nullcontext():
            self._flush(deadline)

    def _flush(self, deadline: float) -> None:
        """Send what is due: messages, pongs, the closing frame."""
        self._inside_write = True
        for data in self._protocol.data_to_send():
            if data:  # an empty one asks for a half-close; we close instead
                self._inner.write(data, deadline)
        self._inside_write = False
