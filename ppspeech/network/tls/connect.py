"""A channel to a party that listens."""

import socket
import time

from ppspeech.errors import PeerGoneError, PeerTimeoutError
from ppspeech.network.address import Address
from ppspeech.network.channel.hello import Params, accept_only, greet
from ppspeech.network.channel.session import StreamChannel
from ppspeech.network.channel.stream import ByteStream
from ppspeech.network.limits import Limits
from ppspeech.network.tls.context import ClientTls, wrap_client

TICKET = 79  # the kind of the message that shows one
PATIENCE = 30.0  # seconds: a server with many clients lets a new one wait


def connect(
    address: Address,
    protocol: str,
    params: Params,
    *,
    tls: ClientTls | None = None,
    insecure: bool = False,
    limits: Limits | None = None,
    source: str = "",
    ticket: bytes = b"",
) -> StreamChannel:
    """Connect to a party that listens, and begin a session, to be used in a `with` statement.

    `insecure` is plain TCP, on a loopback address alone. `source`: which of this machine's addresses to call from.
    `ticket`: by which the one who listens knows us, where it has given us one; shown to whom we trust alone.
    Raises `ProtocolError` if there is nobody, or not the one we trust, or it does not want the same protocol and
    parameters.
    """
    address.check_security(tls is not None, insecure)
    accept_only(protocol, params)  # refuse our own mistakes before anyone is called
    limits = limits or Limits(handshake_seconds=PATIENCE)
    deadline = time.monotonic() + limits.handshake_seconds
    connection = _call(address, tls, source, deadline)
    channel = StreamChannel(ByteStream(connection, limits.message_bytes), limits, deadline)
    try:
        greet(channel, protocol, params)
        if ticket:
            channel.send(TICKET, ticket)
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
