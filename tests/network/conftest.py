"""What the tests of this room share: certificates, and both ends of a raw connection."""

import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ppspeech.network import ClientTls, Limits, ServerTls, StreamChannel, make_certificate
from ppspeech.network.channel.frames import HEADER, HELLO, pack_header
from ppspeech.network.channel.hello import Hello, session_id
from ppspeech.network.channel.stream import ByteStream

QUICK = Limits(handshake_seconds=20, message_seconds=20, session_seconds=60, message_bytes=2**20)


@dataclass(frozen=True)
class Identity:
    """A certificate with its key and fingerprint."""

    certificate: Path
    key: Path
    pin: str

    @property
    def server(self) -> ServerTls:
        return ServerTls(self.certificate, self.key)

    @property
    def client(self) -> ClientTls:
        return ClientTls(pin=self.pin)


def make_identity(folder: Path, name: str, **options: object) -> Identity:
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    return Identity(certificate, key, make_certificate(certificate, key, **options))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return make_identity(tmp_path_factory.mktemp("tls"), "server")


class RawPeer:
    """A peer that says hello properly and then whatever a test wants, byte by byte."""

    def __init__(self, limits: Limits = QUICK) -> None:
        ours, theirs = socket.socketpair()
        self.socket = theirs
        self.socket.settimeout(10)
        self.channel = StreamChannel(ByteStream(ours, limits.message_bytes), limits)
        self.session = bytes(range(16))
        self.channel.begin(self.session)

    def frame(self, kind: int = 1, sequence: int = 0, payload: bytes = b"", **other: object) -> bytes:
        return (
            pack_header(kind, other.get("session", self.session), sequence, other.get("length", len(payload))) + payload
        )  # type: ignore[arg-type]

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def hear_all(self) -> bytes:
        """Everything until the channel closes; a reset says that it closed with bytes of ours unread."""
        heard = b""
        try:
            while data := self.socket.recv(65536):
                heard += data
        except ConnectionResetError:
            pass
        return heard


@pytest.fixture
def raw() -> Iterator[RawPeer]:
    peer = RawPeer()
    yield peer
    peer.channel.close()
    peer.socket.close()


def raw_hello(connection: socket.socket, protocol: str, params: dict[str, object]) -> bytes:
    """Shake hands as a client would, by hand; returns the session."""
    ours = Hello(protocol, params, bytes(16))
    data = ours.encode()
    connection.sendall(pack_header(HELLO, bytes(16), 0, len(data)) + data)
    stream = connection.makefile("rb")
    header = stream.read(HEADER.size)
    return session_id(ours, Hello.decode(stream.read(HEADER.unpack(header)[5])))


@pytest.fixture(autouse=True)
def _log_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="ppspeech")
