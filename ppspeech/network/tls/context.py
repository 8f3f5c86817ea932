"""TLS 1.3, and nothing older: who is trusted, and the handshake in bounded time."""

import logging
import re
import select
import socket
import ssl
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ppspeech.errors import (
    PeerGoneError,
    PeerTimeoutError,
    PpspeechError,
    ProtocolError,
    WrongKeyError,
    WrongSessionError,
)
from ppspeech.network.tls.certificates import check_current, check_pin, make_certificate

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerTls:
    """How the party that listens proves itself; `client_ca` (PEM) must have signed, or be, every client's."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def context(self) -> ssl.SSLContext:
        """The settings for the `ssl` module. Raises `PpspeechError` if a file cannot be read or does not fit."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        _load(context, self.certificate, self.key, self.client_ca)
        # A client that only sends would leave tickets unread, and closing with unread bytes resets the connection.
        context.num_tickets = 0
        if self.client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@dataclass(frozen=True, slots=True)
class ClientTls:
    """Whom the party that connects trusts: one certificate by its fingerprint, or those an authority signed.

    Either `pin`, a SHA-256 in hexadecimal, or `ca` (PEM); the server's certificate must then name the host we connect
    to. `certificate` and `key`: our own, where the server asks.
    """

    pin: str | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if (self.pin is None) == (self.ca is None):
            raise ValueError("give either the server's fingerprint (pin) or its authority (ca)")
        if (self.certificate is None) != (self.key is None):
            raise ValueError("a client certificate needs its key, and a key its certificate")
        if self.pin is not None:
            plain = self.pin.replace(":", "").lower()
            if not re.fullmatch("[0-9a-f]{64}", plain):
                raise ValueError(f"a fingerprint is 64 hexadecimal digits (SHA-256), got {self.pin!r}")
            object.__setattr__(self, "pin", plain)

    def context(self, pinned: bytes | None = None) -> ssl.SSLContext:
        """The settings for the `ssl` module. Raises `PpspeechError` if a file cannot be read or does not fit.

        Our certificate says who we are, and is shown to the pinned server alone: it is left out until the server's own
        is known (`pinned`, in DER form), which is then the only one the handshake accepts.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if self.pin is not None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE  # `check_pin` does it after the handshake
        if pinned is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.load_verify_locations(cadata=pinned)
        own = None if self.pin is not None and pinned is None else self.certificate
        _load(context, own, self.key if own is not None else None, self.ca)
        return context

    @property
    def shows_itself(self) -> bool:
        """Whether we have a certificate for a server that we know by its fingerprint."""
        return self.pin is not None and self.certificate is not None


def _load(context: ssl.SSLContext, certificate: Path | None, key: Path | None, authority: Path | None) -> None:
    try:
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        if authority is not None:
            context.load_verify_locations(authority)
    except OSError as error:
        files = ", ".join(str(file) for file in (certificate, key, authority) if file is not None)
        raise PpspeechError(f"cannot use the certificates and key in {files}: {error}") from None


@contextmanager
def own_tls(
    certificate: Path | None, key: Path | None, client_ca: Path | None = None, *, insecure: bool = False
) -> Iterator[ServerTls | None]:
    """TLS for a listener; None for plain TCP, which `insecure` asks for. A certificate lasts as long as the `with`
    block where none is given; `client_ca`: let in only clients whose certificate is, or is signed by, one of these.

    Raises PpspeechError for a certificate that has expired or is not valid yet.
    """
    if insecure:
        yield None
    elif certificate is not None and key is not None:
        check_current(certificate)
        yield ServerTls(certificate, key, client_ca)
    elif certificate is not None or key is not None:
        raise PpspeechError("a certificate needs its key, and a key its certificate: give both or neither")
    else:
        with tempfile.TemporaryDirectory() as folder:
            made = ServerTls(Path(folder, "certificate.pem"), Path(folder, "key.pem"), client_ca)
            make_certificate(made.certificate, made.key)
            yield made


def wrap_server(connection: socket.socket, context: ssl.SSLContext, deadline: float) -> ssl.SSLSocket:
    """TLS on an accepted connection. A `ProtocolError` (not trusted, not TLS, gone, too slow) leaves it closed."""
    return _handshake(connection, context, None, deadline)


def wrap_client(
    connection: socket.socket, context: ssl.SSLContext, pin: str | None, host: str, deadline: float
) -> ssl.SSLSocket:
    """TLS on a connection we made, as `wrap_server`; `WrongKeyError` if the server is not the one we trust."""
    wrapped = _handshake(connection, context, host, deadline)
    if pin is not None:
        try:
            check_pin(wrapped.getpeercert(binary_form=True), pin)
        except WrongKeyError:
            wrapped.close()
            raise
    return wrapped


def _handshake(
    connection: socket.socket, context: ssl.SSLContext, server: str | None, deadline: float
) -> ssl.SSLSocket:
    """Wrap a connection and shake hands; `server` is the name of the other side, or None where we are the server."""
    connection.setblocking(False)
    try:
        wrapped = context.wrap_socket(
            connection, server_side=server is None, server_hostname=server, do_handshake_on_connect=False
        )
    except OSError as error:  # gone before the first byte
        raise _refusal(connection, error) from None
    poll = select.poll()
    poll.register(wrapped, select.POLLIN)
    try:
        while True:
            try:
                wrapped.do_handshake()
            except ssl.SSLWantReadError:
                poll.modify(wrapped, select.POLLIN)
            except ssl.SSLWantWriteError:
                poll.modify(wrapped, select.POLLOUT)
            else:
                return wrapped
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not poll.poll(remaining * 1000):
                raise TimeoutError("the peer did not finish the TLS handshake in time")
    except OSError as error:
        raise _refusal(wrapped, error) from None


def _refusal(connection: socket.socket, error: OSError) -> ProtocolError:
    """Close the connection, write down why, and say it as an error of the session."""
    connection.close()
    refusal = _as_protocol_error(error)
    logger.warning("no session: %s: %s", type(refusal).__name__, refusal)
    return refusal


def _as_protocol_error(error: OSError) -> ProtocolError:
    if isinstance(error, TimeoutError):
        return PeerTimeoutError(str(error))
    if isinstance(error, ssl.SSLCertVerificationError):
        return WrongKeyError(f"the peer's certificate is not trusted: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and error.reason and "EOF" not in error.reason:
        return WrongSessionError(f"no TLS 1.3 with this peer: {error.reason}")
    return PeerGoneError(f"the peer left during the TLS handshake: {error}")
