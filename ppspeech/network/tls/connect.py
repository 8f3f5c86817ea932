"""A channel to one peer: connect to it, wait for it, or make both ends here."""

import socket
import ssl
import time
from collections.abc import Callable

from ppspeech.errors import PeerGoneError, PeerTimeoutError, ProtocolError
from ppspeech.network.address import Address
from ppspeech.network.channel.hello import Params, accept_only, answer, greet
from ppspeech.network.channel.session import StreamChannel
from ppspeech.network.channel.stream import ByteStream
from ppspeech.network.limits import Limits
from ppspeech.network.tls.context import ClientTls, ServerTls, wrap_client, wrap_server


def connect(
    address: Address,
    protocol: str,
    params: Params,
    *,
    tls: ClientTls | None = None,
    insecure: bool = False,
    limits: Limits | None = None,
    source: str = "",
) -> StreamChannel:
    """Connect to a party that listens, and begin a session, to be used in a `with` statement.

    `insecure` is plain TCP, on a loopback address alone. `source`: which of this machine's addresses to call from.
    Raises `ProtocolError` if there is nobody, or not the one we trust, or it does not want the same protocol and
    parameters.
    """
    address.check_security(tls is not None, insecure)
    accept_only(protocol, params)  # refuse our own mistakes before anyone is called
    limits = limits or Limits()
    deadline = time.monotonic() + limits.handshake_seconds
    connection = _call(address, tls, source, deadline)
    channel = StreamChannel(ByteStream(connection, limits.message_bytes), limits, deadline)
    try:
        greet(channel, protocol, params)
    except BaseException as error:
        channel.fail(error)
        raise
    return channel


def _call(address: Address, tls: ClientTls | None, source: str, deadline: float) -> socket.socket:
    """A connection to the party that listens; with TLS, to the one we trust."""
    if tls is None:
        return _reach(address, source, deadline)
    context = tls.context()
    if tls.shows_itself:  # a first call, without our certificate, to see whether it is the one with the pin
        with wrap_client(_reach(address, source, deadline), context, tls.pin, address.host, deadline) as first:
            context = tls.context(first.getpeercert(binary_form=True))
    return wrap_client(_reach(address, source, deadline), context, tls.pin, address.host, deadline)


def _reach(address: Address, source: str, deadline: float) -> socket.socket:
    try:
        seconds = max(deadline - time.monotonic(), 0.001)
        return socket.create_connection((address.host, address.port), seconds, (source, 0) if source else None)
    except TimeoutError:
        raise PeerTimeoutError(f"{address} does not answer") from None
    except OSError as error:
        raise PeerGoneError(f"nobody listens at {address}: {error}") from None


class Listener:
    """Waits for one peer at a time, for two parties who both know what they want. `Server` serves many.

    Port 0 takes a free one, and `address` says which. `insecure` is plain TCP, on a loopback address alone.
    """

    def __init__(
        self, address: Address, *, tls: ServerTls | None = None, insecure: bool = False, limits: Limits | None = None
    ) -> None:
        address.check_security(tls is not None, insecure)
        self._context = tls.context() if tls is not None else None
        self._limits = limits or Limits()
        self._socket = listen(address)
        self.address = Address(address.host, self._socket.getsockname()[1])

    def wait(self, protocol: str, params: Params, seconds: float | None = None) -> StreamChannel:
        """Wait for a peer, else `ProtocolError`: also for one who wants another protocol or other parameters.

        Who leaves before it has said what it wants is not the one; nor is a stranger, where only known ones are let in.
        """
        accept = accept_only(protocol, params)
        ends = None if seconds is None else time.monotonic() + seconds
        while True:
            try:
                self._socket.settimeout(None if ends is None else max(ends - time.monotonic(), 0.001))
                connection, _ = self._socket.accept()
            except TimeoutError:
                raise PeerTimeoutError(f"nobody connected to {self.address} within {seconds} seconds") from None
            try:
                return self._greet(connection, accept)
            except ProtocolError as error:
                lets_in_all = self._context is None or self._context.verify_mode != ssl.CERT_REQUIRED
                if lets_in_all and not isinstance(error, PeerGoneError):
                    raise

    def _greet(self, connection: socket.socket, accept: Callable[[str, Params], None]) -> StreamChannel:
        deadline = time.monotonic() + self._limits.handshake_seconds
        if self._context is not None:
            connection = wrap_server(connection, self._context, deadline)
        channel = StreamChannel(ByteStream(connection, self._limits.message_bytes), self._limits, deadline)
        try:
            answer(channel, accept)
        except BaseException as error:
            channel.fail(error)
            raise
        return channel

    def close(self) -> None:
        """Stop listening; sessions go on."""
        self._socket.close()

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
