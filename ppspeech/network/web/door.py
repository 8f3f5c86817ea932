"""What a page's browser asks of the server: a file of the page, or a WebSocket; anything else is refused."""

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from websockets.datastructures import Headers, MultipleValuesError
from websockets.http11 import Request

from ppspeech.errors import PeerGoneError, ProtocolError, WrongSessionError
from ppspeech.network.address import Address
from ppspeech.network.channel.stream import ByteStream
from ppspeech.network.limits import Limits
from ppspeech.network.web.stream import WebStream, server_protocol

logger = logging.getLogger(__name__)

SOCKET_PATH = "/ws"
HEAD_BYTES = 2**14
"""Of a request: browsers send along what other servers of the same host have given them to keep."""
HOST = re.compile(r"([a-z0-9.\-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
ORIGIN = re.compile(r"https://[a-z0-9.\-]+(:[0-9]{1,5})?|https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")

ALWAYS = {
    # Nothing but our own files runs; WebAssembly is compiled from our own script; the microphone is the page's alone.
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",
}
"""Headers of every answer that is not a WebSocket's."""


@dataclass(frozen=True, slots=True)
class WebFile:
    """A file that a page is made of: its bytes, in memory, and its media type."""

    body: bytes = field(repr=False)
    media_type: str


@dataclass(frozen=True, slots=True)
class WebDoor:
    """Where pages come in. `files`: by path, all that there is; nothing is looked up in a file system. `origins`: pages
    of other hosts that may open a WebSocket here, such as `https://pages.example`; this host's own always may.

    Raises ValueError for an origin that is not one, or that others could change on its way.
    """

    address: Address
    files: Mapping[str, WebFile]
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_origins(self.origins)

    def admit(self, stream: ByteStream, limits: Limits, deadline: float, *, secure: bool) -> "WebStream | bytes":
        """Hear what is asked for: a WebSocket, opened, or the answer to a request for a file, to be sent.

        `secure`: whether the connection has TLS. Raises `ProtocolError` for what is neither, after it was refused.
        """
        head, rest = _read_head(stream, deadline)
        with _refusing(stream, deadline):
            wants_body = not head.startswith(b"HEAD ")
            if not head.startswith((b"GET ", b"HEAD ")):
                return _answer(HTTPStatus.NOT_FOUND)
            protocol = server_protocol(limits.message_bytes)
            protocol.receive_data(head if wants_body else b"GET " + head[5:])
            events = protocol.events_received()
            if not events or not isinstance(request := events[0], Request):
                raise _RefusedError(HTTPStatus.BAD_REQUEST, "not an HTTP request")
            host = _one(request.headers, "Host")
            if host is None or not (secure or self._is_ours(host)):
                raise _RefusedError(HTTPStatus.FORBIDDEN, "a request for another host")
            if request.path != SOCKET_PATH:
                return _answer(HTTPStatus.OK, self.files.get(request.path), wants_body=wants_body)
            origin = _one(request.headers, "Origin")
            if not may_ask(origin, host, self.origins, secure=secure):
                raise _RefusedError(HTTPStatus.FORBIDDEN, "a page of another host")
            response = protocol.accept(request)
            if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS or not wants_body:
                raise _RefusedError(HTTPStatus.BAD_REQUEST, "not a WebSocket of ours")
            protocol.send_response(response)
            opened = WebStream(stream, protocol, rest)
            stream.write(b"".join(protocol.data_to_send()), deadline)
            return opened

    def _is_ours(self, host: str) -> bool:
        """Without TLS a name is nobody's: one that a stranger lets point here would make its pages this host's."""
        named = HOST.fullmatch(host.lower())
        name = named[1] if named else ""
        return (
            name == "localhost" or Address(name.strip("[]"), 0).is_loopback or f"https://{host.lower()}" in self.origins
        )


def check_origins(origins: tuple[str, ...]) -> None:
    """Raises ValueError for an origin that is not one, or that others could change on its way."""
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            raise ValueError(f"an origin is https://HOST:PORT, in lower case (http for loopback), got {origin!r}")


def may_ask(origin: str | None, host: str, origins: tuple[str, ...], *, secure: bool) -> bool:
    """Whether a page of this origin may ask. Programs have none: the check is for browsers, who never leave it out
    nor let a page choose it, so that no page uses the certificate or address of whoever looks at it.
    """
    own = f"{'https' if secure else 'http'}://{host.lower()}"
    return origin is None or origin in (own, *origins)


class _RefusedError(Exception):
    """A request that is answered by a status and nothing else; why, for the log, in words of ours."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


@contextlib.contextmanager
def _refusing(stream: ByteStream, deadline: float) -> Iterator[None]:
    """Answer what is refused, and end."""
    try:
        yield
    except _RefusedError as refused:
        logger.warning("no session: %s", refused)
        with contextlib.suppress(ProtocolError):
            stream.write(_answer(refused.status), deadline)
        raise WrongSessionError(str(refused)) from None


def _read_head(stream: ByteStream, deadline: float) -> tuple[bytes, bytes]:
    """The head of a request, up to and with its empty line, and what came after it."""
    head = bytearray()
    while (end := head.find(b"\r\n\r\n")) < 0:
        if len(head) > HEAD_BYTES:
            raise WrongSessionError(f"a request of more than {HEAD_BYTES} bytes")
        data = stream.read_some(deadline)
        if not data:
            raise PeerGoneError("the peer left before it had asked for anything")
        head += data
    return bytes(head[: end + 4]), bytes(head[end + 4 :])


def _one(headers: Headers, name: str) -> str | None:
    """A header that may come once."""
    try:
        return headers.get(name)
    except MultipleValuesError:
        raise _RefusedError(HTTPStatus.BAD_REQUEST, f"several headers {name}") from None


def _answer(status: HTTPStatus, file: WebFile | None = None, *, wants_body: bool = True) -> bytes:
    """An answer of HTTP: a file, or no more than a status."""
    if file is None:
        status = HTTPStatus.NOT_FOUND if status is HTTPStatus.OK else status
        file = WebFile(f"{status.phrase}\n".encode(), "text/plain; charset=utf-8")
    headers = {"Content-Type": file.media_type, "Content-Length": str(len(file.body)), **ALWAYS}
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + (file.body if wants_body else b"")
