"""Wait for a peer: all who call are greeted at the same time, and the right one is taken."""

import contextlib
import hmac
import queue
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from ppspeech.errors import PeerGoneError, PeerTimeoutError, ProtocolError, WrongKeyError
from ppspeech.network.address import Address
from ppspeech.network.channel.hello import Params, accept_only, answer, canonical
from ppspeech.network.channel.session import StreamChannel
from ppspeech.network.channel.stream import ByteStream
from ppspeech.network.limits import Limits
from ppspeech.network.tls.connect import TICKET
from ppspeech.network.tls.context import ServerTls, wrap_server

MOST_CALLERS = 32
"""Greeted at a time. A greeting takes milliseconds: of those who stall, the longest gives way to the next."""
BELLS = 4096
PAUSE_SECONDS = 0.1

Who = TypeVar("Who")
Guest = tuple[StreamChannel, Who]


class Listener:
    """Waits for one peer at a time, for parties who know what they want. `Server` serves many.

    Port 0 takes a free one, and `address` says which. `insecure` is plain TCP, on a loopback address alone.
    """

    def __init__(
        self, address: Address, *, tls: ServerTls | None = None, insecure: bool = False, limits: Limits | None = None
    ) -> None:
        address.check_security(tls is not None, insecure)
        self._context = tls.context() if tls is not None else None
        self._limits = limits or Limits()
        self._socket = listen(address)
        self._waiting: tuple[object, Reception[None]] | None = None
        self.address = Address(address.host, self._socket.getsockname()[1])

    def wait(
        self,
        protocol: str,
        params: Params,
        seconds: float | None = None,
        *,
        ticket: bytes = b"",
        tell: Callable[[ProtocolError], None] = lambda _: None,
    ) -> StreamChannel:
        """Wait for a peer, else `ProtocolError`: also for one who wants another protocol or other parameters.

        Who leaves before it has said what it wants is not the one. Where only known ones are let in, by certificate or
        with a `ticket`, nor is a stranger, whatever it wants: `tell` hears of it, and the right one is waited for.
        """
        asked = (protocol, canonical(dict(params)), ticket)
        if self._waiting is None or self._waiting[0] != asked:
            self._dismiss()
            self._waiting = asked, self.reception(protocol, params, lambda channel: _check_ticket(channel, ticket))
        known = bool(ticket) or (self._context is not None and self._context.verify_mode == ssl.CERT_REQUIRED)
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            came = self._waiting[1].next(None if ends is None else ends - time.monotonic())
            if came is None:
                raise PeerTimeoutError(f"nobody connected to {self.address} within {seconds} seconds")
            if not isinstance(came, ProtocolError):
                return came[0]
            if not known and not isinstance(came, PeerGoneError):
                raise came
            tell(came)

    def reception(
        self, protocol: str, params: Params, admit: Callable[[StreamChannel], Who], most: int = MOST_CALLERS
    ) -> "Reception[Who]":
        """Greet whoever calls from now on; `admit` is asked, in the caller's own thread, who it is."""
        accept = accept_only(protocol, params)

        def greet(connection: socket.socket) -> Guest[Who]:
            deadline = time.monotonic() + self._limits.handshake_seconds
            if self._context is not None:
                connection = wrap_server(connection, self._context, deadline)
            channel = StreamChannel(ByteStream(connection, self._limits.message_bytes), self._limits, deadline)
            try:
                answer(channel, accept)
                return channel, admit(channel)
            except BaseException as error:
                channel.fail(error)
                raise

        return Reception(self._socket, greet, most)

    def close(self) -> None:
        """Stop listening; sessions go on."""
        self._dismiss()
        self._socket.close()

    def _dismiss(self) -> None:
        if self._waiting is not None:
            self._waiting[1].close()
            self._waiting = None

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Reception(Generic[Who]):
    """Greets up to `most` callers at a time, each in a thread of its own: none who stalls makes another wait."""

    def __init__(
        self, listening: socket.socket, greet: Callable[[socket.socket], Guest[Who]], most: int = MOST_CALLERS
    ) -> None:
        self._listening, self._greet, self._most = listening, greet, most
        self._came: queue.SimpleQueue[Guest[Who] | ProtocolError] = queue.SimpleQueue()
        self._callers: dict[int, socket.socket] = {}  # by number, the oldest first
        self._number = 0
        self._lock = threading.Lock()  # nobody uses a descriptor that another closes
        self._open = True
        self._bell, self._ring = socket.socketpair()
        self._poll = select.poll()
        for each in (self._bell, self._ring, listening):
            each.setblocking(False)
        for each in (self._bell, listening):
            self._poll.register(each, select.POLLIN)

    def next(self, seconds: float | None) -> Guest[Who] | ProtocolError | None:
        """Who has been greeted, or why someone was not; None if nobody is within so many seconds."""
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            with contextlib.suppress(queue.Empty):
                return self._came.get_nowait()
            left = None if ends is None else 1000 * (ends - time.monotonic())
            if left is not None and left <= 0:
                return None
            for number, _ in self._poll.poll(left):
                if number == self._bell.fileno():
                    self._bell.recv(BELLS)
                else:
                    self._accept()

    def close(self) -> None:
        """Greet nobody any more, and leave those who are being greeted or were not asked for."""
        with self._lock:
            self._open = False
            for number in list(self._callers):
                self._hang_up(number)
            self._bell.close()
            self._ring.close()
        with contextlib.suppress(queue.Empty):
            while True:
                came = self._came.get_nowait()
                if not isinstance(came, ProtocolError):
                    came[0].abort()

    def __enter__(self) -> "Reception[Who]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except BlockingIOError:  # it has left again
            return
        except OSError as error:
            time.sleep(PAUSE_SECONDS)  # out of descriptors, say
            self._came.put(PeerGoneError(f"someone who called is gone: {error}"))
            return
        self._number += 1
        with self._lock:
            if len(self._callers) >= self._most:
                self._hang_up(next(iter(self._callers)))
            # A second descriptor of the same connection: the first is TLS's, and closed by whoever greets.
            self._callers[self._number] = connection.dup()
        threading.Thread(target=self._receive, args=(self._number, connection), daemon=True).start()

    def _receive(self, number: int, connection: socket.socket) -> None:
        try:
            came: Guest[Who] | ProtocolError = self._greet(connection)
        except ProtocolError as error:
            came = error
        with self._lock:
            if number in self._callers:
                self._callers.pop(number).close()
            if self._open:
                self._came.put(came)
                with contextlib.suppress(BlockingIOError):  # it has rung often enough
                    self._ring.send(b"!")
                return
        if not isinstance(came, ProtocolError):
            came[0].abort()

    def _hang_up(self, number: int) -> None:
        """End a connection in whatever thread it is used."""
        with self._callers.pop(number) as caller, contextlib.suppress(OSError):  # it may be gone
            caller.shutdown(socket.SHUT_RDWR)


def _check_ticket(channel: StreamChannel, ticket: bytes) -> None:
    if ticket:
        channel.expect_within(channel.limits.handshake_seconds, lambda: None)
        if not hmac.compare_digest(channel.receive(TICKET, len(ticket)), ticket):
            raise WrongKeyError("someone with another ticket called")


def listen(address: Address) -> socket.socket:
    """A listening socket. Raises `OSError` if the address cannot be had."""
    family, _, _, _, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(1024)
    except BaseException:
        listening.close()
        raise
    return listening
