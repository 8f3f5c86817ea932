"""The bytes of a session on one stream of WebTransport (over HTTP/3), with the bounds that they have over TCP."""

import contextlib
import logging
import select
import time

from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    ProtocolNegotiated,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.quic.stream import QuicStreamSender

from ppspeech.errors import BadTypeError, FrameTooLargeError, PeerGoneError, PeerTimeoutError, ProtocolError
from ppspeech.network.channel.stream import Peer, end_of_stream
from ppspeech.network.tls.short_lived import ShortLived
from ppspeech.network.web.calls import DATAGRAM_BYTES, ID_BYTES, Call

OPENING_BYTES = 2**16
"""Of datagrams that may come before the session has begun: a handshake, a request and a HELLO, some of them again."""
ASIDE_BYTES = 2**16
"""Of all streams but the session's, in a whole session: settings, headers, and that it closes."""
PIECE = 2**18
AT_ONCE = 64  # datagrams that are taken before what is due is sent
PING_SECONDS = 10.0  # browsers give a connection up that was silent for 30
FAREWELL_SECONDS = 10.0
QUIET_SECONDS = 1.0
"""What was said last is sent again until it has come: for so long, unless the peer has been quiet for a while."""

logging.getLogger("quic").setLevel(logging.CRITICAL + 1)  # a library writes what peers say into its log

Headers = list[tuple[bytes, bytes]]


class TransportStream:
    """A session's bytes on one bidirectional stream of WebTransport: what `ByteStream` is over TCP.

    The client opens the stream, and no other, once its request was accepted. Datagrams of its own are let go. Nothing
    runs beside the session: packets are taken and sent while it reads or writes, and wait in the system meanwhile.
    `most_bytes`: how much is kept of a client that sends while we do.
    """

    def __init__(self, call: Call, shown: ShortLived, most_bytes: int) -> None:
        self.bytes_sent = self.bytes_received = 0
        self._socket = call.connection
        self._source = call.source
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._quic = QuicConnection(
            configuration=QuicConfiguration(
                is_client=False,
                alpn_protocols=H3_ALPN,
                certificate=shown.certificate,
                private_key=shown.key,
                connection_id_length=ID_BYTES,
                max_datagram_frame_size=DATAGRAM_BYTES,  # which WebTransport asks for
                supported_versions=[QuicProtocolVersion.VERSION_1],
            ),
            original_destination_connection_id=call.first_id,
            retry_source_connection_id=call.retry_id,
        )
        self._http: H3Connection | None = None
        self._asked: Headers | None = None
        self._request = self._stream = -1
        self._accepted = self._ended = self._closed = self._inside_write = False
        self._inbox = bytearray()
        self._most_bytes = most_bytes
        self._raw, self._most_raw, self._aside = 0, float(OPENING_BYTES), 0
        self._peer = Peer(str(call.source[0]), None)
        self._take(call.datagrams)
        self._look()

    @property
    def peer(self) -> Peer:
        """Who is at the other end: its address has been checked, and it has no certificate."""
        return self._peer

    def asked(self, deadline: float) -> Headers:
        """Wait for what is asked for. Raises `ProtocolError` for no request of HTTP/3 before `deadline`."""
        while self._asked is None:
            self._check_there()
            self._go_on(deadline)
        return self._asked

    def answer(self, status: int, deadline: float) -> None:
        """Answer the request: 200 opens a session, and anything else is the end."""
        assert self._http is not None
        self._accepted = status == 200
        # Browsers of today and the library speak the second draft, in which a server has to say so.
        headers = [(b":status", b"%d" % status), (b"sec-webtransport-http3-draft", b"draft02")]
        self._http.send_headers(self._request, headers, end_stream=not self._accepted)
        self._send()
        if not self._accepted:
            with contextlib.suppress(ProtocolError):  # it is refused, whether it hears that or not
                self._linger(self._request, deadline)

    def opened(self) -> None:
        """The session has begun: from now on frames may be as large as the limits say."""
        self._most_raw = float("inf")

    def write(self, data: bytes | bytearray | memoryview, deadline: float) -> None:
        """Send all before `deadline`; after a `ProtocolError` part of it may have been sent."""
        self._inside_write = True
        view = memoryview(data)
        for start in range(0, len(data), PIECE):
            self._check_there()
            if self._stream < 0:
                raise PeerGoneError("the peer has opened no stream")
            piece = bytes(view[start : start + PIECE])
            self._quic.send_stream_data(self._stream, piece)
            self.bytes_sent += len(piece)
            self._send()
            sender = self._sender(self._stream)
            while sender.highest_offset < self.bytes_sent:
                self._check_there()
                self._go_on(deadline)
                if len(self._inbox) > self._most_bytes:
                    raise FrameTooLargeError(f"the peer sent more than {self._most_bytes} bytes ahead of us")
        self._inside_write = False

    def read(self, size: int, deadline: float, *, inside: bool = False) -> bytes:
        """Receive exactly `size` bytes before `deadline`; see `ByteStream.read`."""
        inbox = self._inbox
        while len(inbox) < size:
            if self._ended:
                raise end_of_stream(len(inbox), size, inside)
            self._go_on(deadline)
        data = bytes(memoryview(inbox)[:size])
        del inbox[:size]
        return data

    def close(self) -> None:
        """End the stream, wait a little until what was sent has come, and close. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        if self._stream >= 0 and not self._ended and not self._inside_write:
            with contextlib.suppress(ProtocolError):
                self._quic.send_stream_data(self._stream, b"", end_stream=True)
                self._linger(self._stream, time.monotonic() + FAREWELL_SECONDS)
        self._quic.close(error_code=ErrorCode.H3_NO_ERROR)
        with contextlib.suppress(ProtocolError):  # the peer is gone, and needs no telling
            self._send()
        self._socket.close()
        self._inbox.clear()

    def _check_there(self) -> None:
        if self._ended:
            raise PeerGoneError("the peer closed the session")

    def _sender(self, stream: int) -> QuicStreamSender:
        """What the library knows of what we have sent on a stream; no event tells of it."""
        return self._quic._streams[stream].sender

    def _linger(self, stream: int, deadline: float) -> None:
        """Wait until all of a stream that we have ended is acknowledged."""
        sender, self._heard_at = self._sender(stream), time.monotonic()
        while not (sender.is_finished or self._ended):
            self._go_on(min(deadline, self._heard_at + QUIET_SECONDS))

    def _go_on(self, deadline: float) -> None:
        """Wait for datagrams, or until something is due, and do both; `PeerTimeoutError` at `deadline`."""
        now, timer = time.monotonic(), self._quic.get_timer()
        if now >= deadline:  # asked first: a peer that never stops would keep us waiting for ever
            raise PeerTimeoutError("the peer did not answer in time")
        due, ping = float("inf") if timer is None else timer, now + PING_SECONDS
        if self._poll.poll(1000 * max(0.0, min(due, ping, deadline) - now)):
            self._take(self._receive())
        elif (now := time.monotonic()) >= due:
            self._quic.handle_timer(now)
        elif now >= ping:
            self._quic.send_ping(0)
        self._look()
        self._send()

    def _receive(self) -> list[bytes]:
        """The datagrams that have come."""
        found = []
        for _ in range(AT_ONCE):
            try:
                data, source = self._socket.recvfrom(DATAGRAM_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                raise PeerGoneError(f"the connection to the peer is lost: {error}") from None
            if source == self._source:  # others had a moment, before this socket was the peer's alone
                found.append(data)
        return found

    def _take(self, datagrams: list[bytes]) -> None:
        """Open datagrams; `_look` hears what is in them."""
        self._heard_at = time.monotonic()
        for data in datagrams:
            self._raw += len(data)
            if self._raw > self._most_raw:
                raise FrameTooLargeError(f"more than {OPENING_BYTES} bytes came before a session had begun")
            self._quic.receive_datagram(data, self._source, self._heard_at)

    def _send(self) -> None:
        """Send what is due; what the system has no room for is sent again when it is missed."""
        if self._quic.get_peer_address() is None:  # nothing that has come began a connection
            return
        for data, _ in self._quic.datagrams_to_send(time.monotonic()):
            try:
                self._socket.send(data)
            except BlockingIOError:
                return
            except OSError as error:
                raise PeerGoneError(f"the connection to the peer is lost: {error}") from None

    def _look(self) -> None:
        """Hear what has happened since we looked."""
        while (event := self._quic.next_event()) is not None:
            self._hear(event)

    def _hear(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic, enable_webtransport=True)
        elif isinstance(event, ConnectionTerminated):
            self._ended = True
        elif isinstance(event, StreamReset | StopSendingReceived):
            self._ended |= event.stream_id in (self._request, self._stream)
        elif isinstance(event, StreamDataReceived) and event.stream_id != self._stream:
            self._aside += len(event.data)
            if self._aside > ASIDE_BYTES:
                raise FrameTooLargeError(f"more than {ASIDE_BYTES} bytes came beside the session")
        if self._http is not None:
            for said in self._http.handle_event(event):
                self._hear_http(said)

    def _hear_http(self, said: H3Event) -> None:
        if isinstance(said, HeadersReceived):
            if self._asked is not None:
                raise BadTypeError("the peer asks a second time")
            self._asked, self._request = said.headers, said.stream_id
            self._ended |= said.stream_ended
        elif isinstance(said, DataReceived):
            self._ended |= said.stream_ended  # what it says of why it closes is not read
        elif isinstance(said, WebTransportStreamDataReceived):
            if not self._accepted or said.session_id != self._request or said.stream_id % 4:
                raise BadTypeError("the peer opened a stream that is not of this session")
            if self._stream not in (-1, said.stream_id):
                raise BadTypeError("the peer opened a second stream")
            self._stream = said.stream_id
            self._inbox += said.data
            self.bytes_received += len(said.data)
            self._ended |= said.stream_ended
