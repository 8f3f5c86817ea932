"""A client of the door for WebTransport for tests: the library's own connection carries a session of ours."""

import contextlib
import hashlib
import socket
import ssl
import time
from typing import Any

from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, StreamDataReceived, StreamReset
from cryptography.hazmat.primitives.serialization import Encoding

from ppspeech.errors import PeerGoneError, PeerTimeoutError
from ppspeech.network import Address, Limits, StreamChannel
from ppspeech.network.channel.hello import greet
from ppspeech.network.channel.stream import Peer
from tests.network.conftest import QUICK

PATIENCE = 60.0


class Transport:
    """A connection, and what has come on it. `request`: headers in place of the usual, None to leave one out."""

    def __init__(
        self, address: Address, request: dict[str, str | None] | None = None, idle_timeout: float = 60
    ) -> None:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind(("::1" if ":" in address.host else "127.0.0.1", 0))
        self.said: list[bytes] = []  # datagrams
        self.where = (address.host, address.port)
        self.quic = QuicConnection(
            configuration=QuicConfiguration(
                alpn_protocols=H3_ALPN,
                verify_mode=ssl.CERT_NONE,
                max_datagram_frame_size=65536,
                idle_timeout=idle_timeout,
            )
        )
        usual = {
            ":method": "CONNECT", ":scheme": "https", ":authority": str(address), ":path": "/wt",
            ":protocol": "webtransport",
        }  # fmt: skip
        self.headers = {name: value for name, value in (usual | (request or {})).items() if value is not None}
        self.http: H3Connection | None = None
        self.session = self.stream = -1
        self.status: int | None = None
        self.heard = bytearray()
        self.is_over = False
        self.quic.connect(self.where, time.monotonic())
        self.send()

    def send(self) -> None:
        for data, _ in self.quic.datagrams_to_send(time.monotonic()):
            self.said.append(data)
            self.socket.sendto(data, self.where)

    def turn(self, deadline: float) -> None:
        """Take a datagram, or do what is due."""
        now, due = time.monotonic(), self.quic.get_timer()
        until = min(deadline, due if due is not None else deadline)
        self.socket.settimeout(max(0.001, until - now))
        try:
            data, _ = self.socket.recvfrom(65536)
            self.quic.receive_datagram(data, self.where, time.monotonic())
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise PeerTimeoutError("in time") from None
            self.quic.handle_timer(time.monotonic())
        while (event := self.quic.next_event()) is not None:
            self.hear(event)
        self.send()

    def hear(self, event: Any) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self.quic, enable_webtransport=True)
            self.session = self.quic.get_next_available_stream_id()
            headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
            self.http.send_headers(self.session, headers, end_stream=False)
        if isinstance(event, ConnectionTerminated):
            self.is_over = True
        if isinstance(event, StreamReset) and event.stream_id in (self.session, self.stream):
            self.is_over = True
        if isinstance(event, StreamDataReceived) and event.stream_id == self.stream:  # what HTTP/3 knows nothing of
            self.heard += event.data
            self.is_over |= event.end_stream
            return
        for said in self.http.handle_event(event) if self.http is not None else ():
            if isinstance(said, HeadersReceived):
                self.status = int(dict(said.headers)[b":status"])
                self.is_over |= said.stream_ended

    def open(self) -> int:
        """Wait for the answer; where it is yes, open the stream. Returns its status, 0 where there was none."""
        deadline = time.monotonic() + PATIENCE
        while self.status is None and not self.is_over:
            self.turn(deadline)
        if self.status == 200:
            assert self.http is not None
            self.stream = self.http.create_webtransport_stream(self.session)
        return self.status or 0

    def say(self, data: bytes, *, end: bool = False) -> None:
        self.quic.send_stream_data(self.stream, data, end)
        self.send()

    def until_over(self, deadline: float | None = None) -> bytes:
        """All that comes until the server ends it."""
        deadline = deadline or time.monotonic() + PATIENCE
        while not self.is_over:
            self.turn(deadline)
        return bytes(self.heard)

    def fingerprint(self) -> str:
        shown = self.quic.tls._peer_certificate
        return hashlib.sha256(shown.public_bytes(Encoding.DER)).hexdigest()

    def vanish(self) -> None:
        """Leave without a word."""
        self.socket.close()

    def close(self) -> None:
        self.quic.close()
        try:
            self.send()
        finally:
            self.socket.close()


class TransportCarrier:
    """Carries a session; `cut`: after how many bytes the stream is sent, to see that it says nothing."""

    def __init__(self, transport: Transport, cut: int | None = None) -> None:
        self.bytes_sent = self.bytes_received = 0
        self.peer = Peer(None, None)
        self.transport, self._cut = transport, cut

    def write(self, data: bytes | bytearray | memoryview, deadline: float) -> None:
        if self.transport.is_over:
            raise PeerGoneError("over")
        data, cut = bytes(data), self._cut or len(data)
        for start in range(0, len(data), cut):
            self.transport.say(data[start : start + cut])

    def read(self, size: int, deadline: float, *, inside: bool = False) -> bytes:
        heard = self.transport.heard
        while len(heard) < size:
            if self.transport.is_over:
                raise PeerGoneError("over")
            self.transport.turn(deadline)
        data = bytes(heard[:size])
        del heard[:size]
        return data

    def opened(self) -> None:
        pass

    def close(self) -> None:
        if self.transport.socket.fileno() < 0:
            return
        if not self.transport.is_over:
            self.transport.say(b"", end=True)
            with contextlib.suppress(PeerTimeoutError, OSError):
                self.transport.until_over(time.monotonic() + 5)
        self.transport.close()


def transport_connect(
    address: Address,
    protocol: str,
    params: dict[str, Any],
    limits: Limits = QUICK,
    cut: int | None = None,
    **options: Any,
) -> StreamChannel:
    """A session over WebTransport, as `ppspeech.network.connect` opens one over TCP."""
    transport = Transport(address, **options)
    assert transport.open() == 200
    channel = StreamChannel(TransportCarrier(transport, cut), limits)
    try:
        greet(channel, protocol, params)
    except BaseException as error:
        channel.fail(error)
        raise
    return channel
