"""A client of the web door for tests: the library's own WebSocket client carries a session of ours."""

import contextlib
import socket
import ssl
import struct
import time
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as open_socket

from ppspeech.errors import PeerGoneError, PeerTimeoutError
from ppspeech.network import Address, Limits, StreamChannel
from ppspeech.network.channel.hello import greet
from ppspeech.network.channel.stream import Peer
from tests.network.conftest import QUICK, Identity


def trusting(identity: Identity) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(identity.certificate))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def web_socket(address: Address, tls: ssl.SSLContext | None = None, **options: Any) -> ClientConnection:
    """A WebSocket of the library, as our clients open it."""
    scheme = "ws" if tls is None else "wss"
    usual: dict[str, Any] = {"subprotocols": ["ppspeech.1"], "compression": None, "max_size": None, "proxy": None}
    return open_socket(
        f"{scheme}://{address}/ws", ssl=tls, **usual | {"open_timeout": 60, "ping_interval": None} | options
    )


class WebCarrier:
    """Carries a session over a WebSocket; `cut`: after how many bytes a message ends, to see that it says nothing."""

    def __init__(self, connection: ClientConnection, cut: int | None = None) -> None:
        self.bytes_sent = self.bytes_received = 0
        self.peer = Peer(None, None)
        self._connection, self._cut, self._inbox = connection, cut, bytearray()

    def write(self, data: bytes | bytearray | memoryview, deadline: float) -> None:
        data, cut = bytes(data), self._cut or len(data)
        try:
            for start in range(0, len(data), cut):
                self._connection.send(data[start : start + cut])
        except ConnectionClosed as error:
            raise PeerGoneError(str(error)) from None

    def read(self, size: int, deadline: float, *, inside: bool = False) -> bytes:
        while len(self._inbox) < size:
            try:
                said = self._connection.recv(timeout=max(0.01, deadline - time.monotonic()))
            except TimeoutError:
                raise PeerTimeoutError("in time") from None
            except ConnectionClosed as error:
                raise PeerGoneError(str(error)) from None
            assert isinstance(said, bytes)
            self._inbox += said
        data = bytes(self._inbox[:size])
        del self._inbox[:size]
        return data

    def opened(self) -> None:
        pass

    def close(self) -> None:
        self._connection.close()


def web_connect(
    address: Address,
    protocol: str,
    params: dict[str, Any],
    limits: Limits = QUICK,
    cut: int | None = None,
    **options: Any,
) -> StreamChannel:
    """A session through the web door, as `ppspeech.network.connect` opens one through the other."""
    channel = StreamChannel(WebCarrier(web_socket(address, **options), cut), limits)
    try:
        greet(channel, protocol, params)
    except BaseException as error:
        channel.fail(error)
        raise
    return channel


HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ppspeech.1\r\n"
)


def said_to(address: Address, said: bytes) -> bytes:
    """What the door answers to raw bytes, until it closes or a WebSocket is open."""
    with socket.create_connection((address.host, address.port), timeout=60) as connection:
        heard = b""
        with contextlib.suppress(OSError):
            connection.sendall(said)
            while not heard.startswith(b"HTTP/1.1 101") and (data := connection.recv(65536)):
                heard += data
        return heard


def raw_socket(address: Address) -> socket.socket:
    """A WebSocket that is open, to say anything by."""
    connection = socket.create_connection((address.host, address.port), timeout=60)
    connection.sendall(HANDSHAKE.encode() + b"\r\n")
    heard = b""
    while b"\r\n\r\n" not in heard:
        data = connection.recv(1)
        assert data, heard
        heard += data
    assert heard.startswith(b"HTTP/1.1 101")
    return connection


def ws_frame(payload: bytes, opcode: int = 2, *, fin: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    """A frame of RFC 6455, right or wrong; the mask is zero, so that bytes are as they are."""
    first, mask = (0x80 if fin else 0) | reserved << 4 | opcode, 0x80 if masked else 0
    if len(payload) < 126:
        header = struct.pack(">BB", first, mask | len(payload))
    elif len(payload) < 2**16:
        header = struct.pack(">BBH", first, mask | 126, len(payload))
    else:
        header = struct.pack(">BBQ", first, mask | 127, len(payload))
    return header + (bytes(4) if masked else b"") + payload
