"""Bytes over one connected socket, plain or TLS: in time, in bounded memory, and never stuck on one another."""

import contextlib
import hashlib
import io
import select
import socket
import ssl
import struct
import time
from dataclasses import dataclass
from typing import Protocol

from ppspeech.errors import BadLengthError, BadTypeError, PeerGoneError, PeerTimeoutError, ProtocolError

PIECE = 2**18
BUFFERED = 2**14
"""Payloads up to this size may come out of the inbox; larger ones are read straight into their own buffer."""
BLOCKING_SECONDS = 1
"""How long a plain socket may wait inside one system call. An answer mostly comes by then, and has cost one call in
place of two; after that, and near a deadline, `poll` keeps the time. TLS needs several reads for a record and always
polls."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, as far as the connection shows it.

    `address`: its IP address, which many may share and anyone may change; None without a network. `certificate`:
    SHA-256 fingerprint of the certificate it has proved to own, in hexadecimal; None without one.
    """

    address: str | None
    certificate: str | None

    @staticmethod
    def of(connection: socket.socket) -> "Peer":
        """The peer of a connection whose TLS handshake, if there is one, is done."""
        address: object = None
        with contextlib.suppress(OSError):  # a peer that has left already has none
            address = connection.getpeername()
        shown = connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLSocket) else None
        return Peer(
            str(address[0]) if isinstance(address, tuple) else None,
            None if shown is None else hashlib.sha256(shown).hexdigest(),
        )


class Carrier(Protocol):
    """What carries the bytes of a session: `ByteStream` over a socket, or what wraps one."""

    bytes_sent: int
    bytes_received: int

    @property
    def peer(self) -> Peer:
        """Who is at the other end."""
        ...

    def write(self, data: bytes | bytearray | memoryview, deadline: float) -> None:
        """Send all before `deadline` (of `time.monotonic`)."""
        ...

    def read(self, size: int, deadline: float, *, inside: bool = False) -> bytes:
        """Receive exactly `size` bytes before `deadline`."""
        ...

    def opened(self) -> None:
        """The session has begun, and its limits hold from now on."""
        ...

    def close(self) -> None:
        """Close the connection; closing twice is allowed."""
        ...


class ByteStream:
    """One end of a connection, used by one thread.

    There is no sender thread: a small message costs one system call. When the peer does not take our bytes because
    it is sending too, what it sends is put aside in an inbox until ours are out, so two parties that send at the
    same time do not block each other. The inbox is bounded; beyond that the peer is made to wait, as TCP does.

    `connection`: a connected stream socket; the stream owns and closes it. `inbox_bytes`: the most bytes put aside
    while sending.
    """

    def __init__(self, connection: socket.socket, inbox_bytes: int) -> None:
        self._is_tls = isinstance(connection, ssl.SSLSocket)
        self._at_once = 0 if self._is_tls else socket.MSG_DONTWAIT
        connection.setblocking(not self._is_tls)
        if not self._is_tls:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", BLOCKING_SECONDS, 0))
        if connection.family in {socket.AF_INET, socket.AF_INET6}:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peer = Peer.of(connection)
        self.bytes_sent = self.bytes_received = 0
        self._socket = connection
        self._inbox = bytearray()
        self._scratch = memoryview(bytearray(BUFFERED))
        self._inbox_bytes = inbox_bytes
        self._closed = False
        self._polled = select.POLLIN
        self._poll = select.poll()
        self._poll.register(connection, self._polled)

    @property
    def peer(self) -> Peer:
        """Who is at the other end, as it was when the stream was made."""
        return self._peer

    def write(self, data: bytes | bytearray | memoryview, deadline: float) -> None:
        """Send all before `deadline` (of `time.monotonic`); after a `ProtocolError` part of it may have been sent."""
        rest = data if len(data) <= PIECE else memoryview(data)
        while rest:
            try:
                sent = self._socket.send(rest if len(rest) <= PIECE else rest[:PIECE], self._at_once)
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait_to_write(deadline)
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, deadline)
            except (OSError, ValueError) as error:
                raise _as_protocol_error(error) from None
            else:
                self.bytes_sent += sent
                if sent == len(rest):
                    return
                rest = memoryview(rest)[sent:]

    def read(self, size: int, deadline: float, *, inside: bool = False) -> bytes:
        """Receive exactly `size` bytes before `deadline`; the caller has made sure that the size is agreed. `inside`:
        these bytes continue a message, so that the end of the stream is the peer's fault, a `BadLengthError`.
        """
        inbox = self._inbox
        if size <= BUFFERED:
            while len(inbox) < size:
                got = self._receive_into(self._scratch, deadline)
                if not got:
                    raise end_of_stream(len(inbox), size, inside)
                inbox += self._scratch[:got]
            data = bytes(inbox[:size]) if len(inbox) > size else bytes(inbox)
            del inbox[:size]
            return data
        # The pages of this buffer are taken as bytes arrive, and `getvalue` hands it over without a copy.
        buffer = io.BytesIO(bytes(size))
        with buffer.getbuffer() as view:
            have = min(len(inbox), size)
            view[:have] = memoryview(inbox)[:have]
            del inbox[:have]
            while have < size:
                got = self._receive_into(view[have : have + PIECE], deadline)
                if not got:
                    raise end_of_stream(have, size, inside)
                have += got
        return buffer.getvalue()

    def read_some(self, deadline: float) -> bytes:
        """Receive what has come, at most `BUFFERED` bytes, and wait for at least one; none at the end of the stream."""
        if not self._inbox:
            got = self._receive_into(self._scratch, deadline)
            return bytes(self._scratch[:got])
        data = bytes(memoryview(self._inbox)[:BUFFERED])
        del self._inbox[:BUFFERED]
        return data

    def opened(self) -> None:
        """The session has begun: nothing changes here, where no more is taken than is asked for."""

    def close(self) -> None:
        """Close the connection; what was sent is still delivered. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        if isinstance(self._socket, ssl.SSLSocket):
            with contextlib.suppress(OSError, ValueError):
                self._socket.unwrap()  # sends the closing notice; the peer's is not waited for
        self._socket.close()
        self._inbox.clear()

    def _receive_into(self, view: memoryview, deadline: float) -> int:
        """Wait for bytes and put them in `view`; 0 at the end of the stream."""
        blocking = not self._is_tls and deadline - time.monotonic() > BLOCKING_SECONDS
        if not blocking and not (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()):
            self._wait(select.POLLIN, deadline)
        while True:
            try:
                got = self._socket.recv_into(view, len(view), 0 if blocking else self._at_once)
            except (BlockingIOError, ssl.SSLWantReadError):
                blocking = False
                self._wait(select.POLLIN, deadline)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, deadline)
            except (OSError, ValueError) as error:
                raise _as_protocol_error(error) from None
            else:
                self.bytes_received += got
                return got

    def _wait_to_write(self, deadline: float) -> None:
        """Wait until the peer takes bytes again; meanwhile take its own, so that it can."""
        room = len(self._inbox) < self._inbox_bytes
        ready = self._wait(select.POLLOUT | select.POLLIN if room else select.POLLOUT, deadline)
        if ready & select.POLLIN:
            try:
                data = self._socket.recv(PIECE, self._at_once)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return  # part of a TLS record
            except (OSError, ValueError) as error:
                raise _as_protocol_error(error) from None
            if not data:
                raise PeerGoneError("the peer closed the connection while we were sending")
            self._inbox += data
            self.bytes_received += len(data)

    def _wait(self, events: int, deadline: float) -> int:
        """Wait for one of `events`; says which came."""
        if events != self._polled:
            self._poll.modify(self._socket, events)
            self._polled = events
        remaining = deadline - time.monotonic()
        ready = self._poll.poll(remaining * 1000) if remaining > 0 else []
        if not ready:
            raise PeerTimeoutError("the peer did not answer in time")
        return ready[0][1]


def end_of_stream(have: int, size: int, inside: bool) -> ProtocolError:
    """What it means that a stream ended when `have` of `size` bytes had come."""
    if have or inside:
        return BadLengthError(f"the stream ended inside a message: {have} of {size} bytes came")
    return PeerGoneError("the peer closed the connection")


def _as_protocol_error(error: OSError | ValueError) -> ProtocolError:
    """What a failure of the socket means to the session."""
    if isinstance(error, ssl.SSLError) and error.reason and "ALERT" not in error.reason and "EOF" not in error.reason:
        return BadTypeError(f"the peer sent bytes that are not TLS: {error.reason}")
    return PeerGoneError(f"the connection to the peer is lost: {error}")
