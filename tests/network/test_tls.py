"""Who is let in: TLS 1.3 with the pinned or signed certificate, and nobody else."""

import contextlib
import datetime
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ppspeech.errors import (
    BadTypeError,
    PeerGoneError,
    PeerTimeoutError,
    PpspeechError,
    ProtocolError,
    WrongKeyError,
    WrongSessionError,
)
from ppspeech.network import (
    Address,
    ClientTls,
    Limits,
    Listener,
    ServerTls,
    StreamChannel,
    connect,
    fingerprint,
    make_certificate,
    own_tls,
)
from ppspeech.network.channel.stream import ByteStream, Peer
from tests.network.conftest import QUICK, Identity, make_identity

LOCAL = Address("127.0.0.1", 0)


def meet(
    server: ServerTls, client: Callable[[Address], object], limits: Limits = QUICK, seconds: float = 10
) -> tuple[object, object]:
    """What came of both sides: what was returned, or the error."""
    came: list[object] = []

    def serve(listener: Listener) -> None:
        try:
            with listener.wait("toy", {}, seconds=seconds) as channel:
                channel.send(1, channel.receive(1, at_most=100))
            came.append("served")
        except ProtocolError as error:
            came.append(error)

    with Listener(LOCAL, tls=server, limits=limits) as listener:
        serving = threading.Thread(target=serve, args=(listener,))
        serving.start()
        try:
            result: object = client(listener.address)
        except ProtocolError as error:
            result = error
        serving.join()
    return result, came[0]


def ask(tls: ClientTls) -> Callable[[Address], bytes]:
    def run(address: Address) -> bytes:
        with connect(address, "toy", {}, tls=tls, limits=QUICK) as channel:
            channel.send(1, b"hi")
            return channel.receive(1, size=2)

    return run


def test_the_pinned_certificate_is_let_in(identity: Identity) -> None:
    colons = ":".join(identity.pin[i : i + 2] for i in range(0, 64, 2)).upper()
    assert fingerprint(identity.certificate) == identity.pin
    for pin in (identity.pin, colons):
        assert meet(identity.server, ask(ClientTls(pin=pin))) == (b"hi", "served")


def test_a_signed_certificate_is_let_in(identity: Identity) -> None:
    assert meet(identity.server, ask(ClientTls(ca=identity.certificate))) == (b"hi", "served")


def test_another_certificate_is_refused(identity: Identity, tmp_path: Path) -> None:
    other = make_identity(tmp_path, "other")
    for tls in (other.client, ClientTls(ca=other.certificate)):
        ours, theirs = meet(identity.server, ask(tls))
        assert isinstance(ours, WrongKeyError)
        assert isinstance(theirs, ProtocolError)


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    expired = make_identity(tmp_path, "expired", days=-1)
    for tls in (expired.client, ClientTls(ca=expired.certificate)):
        assert isinstance(meet(expired.server, ask(tls))[0], WrongKeyError)


def test_who_would_be_refused_by_everyone_does_not_begin_to_listen(tmp_path: Path) -> None:
    expired = make_identity(tmp_path, "expired", days=-1)
    with (
        pytest.raises(PpspeechError, match=r"valid from .* not now: clients would refuse it"),
        own_tls(expired.certificate, expired.key),
    ):
        pass
    good = make_identity(tmp_path, "good")
    with own_tls(good.certificate, good.key) as tls:
        assert tls == ServerTls(good.certificate, good.key)


def test_who_listens_everywhere_is_found_somewhere() -> None:
    for host in ("0.0.0.0", "::"):
        found = Address(host, 7000).reachable()
        assert found.host not in {"0.0.0.0", "::", ""}
        assert found.port == 7000
    for host in ("127.0.0.1", "example.org"):
        assert Address(host, 7000).reachable() == Address(host, 7000)


def test_a_certificate_for_another_host_is_refused(tmp_path: Path) -> None:
    elsewhere = make_identity(tmp_path, "elsewhere", names=("example.org",))
    assert isinstance(meet(elsewhere.server, ask(ClientTls(ca=elsewhere.certificate)))[0], WrongKeyError)
    assert meet(elsewhere.server, ask(elsewhere.client))[0] == b"hi"  # a pin names the key itself


def test_clients_must_show_a_certificate_where_it_is_asked_for(identity: Identity, tmp_path: Path) -> None:
    known, unknown = make_identity(tmp_path, "known"), make_identity(tmp_path, "unknown")
    server = ServerTls(identity.certificate, identity.key, client_ca=known.certificate)
    for tls in (identity.client, ClientTls(identity.pin, None, unknown.certificate, unknown.key)):
        ours, theirs = meet(server, ask(tls), seconds=0.5)
        assert isinstance(ours, PeerGoneError)
        assert isinstance(theirs, PeerTimeoutError)  # sent away, and the right one is waited for
    good = ClientTls(identity.pin, None, known.certificate, known.key)
    assert meet(server, ask(good)) == (b"hi", "served")


def sign(folder: Path, name: str, by: Identity | None = None, is_authority: bool = False) -> Identity:
    """A certificate that another one's key has signed, or its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer = own if by is None else x509.load_pem_x509_certificate(by.certificate.read_bytes()).subject
    signer = key if by is None else serialization.load_pem_private_key(by.key.read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(issuer, own, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    identity = Identity(folder / f"{name}.pem", folder / f"{name}.key", "")
    identity.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    identity.key.write_bytes(key.private_bytes(*form))
    return identity


def test_who_is_let_in_cannot_let_in_others(identity: Identity, tmp_path: Path) -> None:
    known = make_identity(tmp_path, "known")
    minted = sign(tmp_path, "minted", known)
    server = ServerTls(identity.certificate, identity.key, client_ca=known.certificate)
    ours, _ = meet(server, ask(ClientTls(identity.pin, None, minted.certificate, minted.key)), seconds=0.5)
    assert isinstance(ours, PeerGoneError)
    authority = sign(tmp_path, "authority", is_authority=True)
    minted = sign(tmp_path, "again", authority)  # what a client could do with a certificate that may sign others
    server = ServerTls(identity.certificate, identity.key, client_ca=authority.certificate)
    assert meet(server, ask(ClientTls(identity.pin, None, minted.certificate, minted.key)))[0] == b"hi"


@pytest.mark.parametrize("is_pinned", [True, False])
def test_our_certificate_is_shown_to_the_pinned_server_alone(
    identity: Identity, tmp_path: Path, is_pinned: bool
) -> None:
    known, impostor = make_identity(tmp_path, "known"), make_identity(tmp_path, "impostor")
    seen: list[bytes | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = identity if is_pinned else impostor
    context.load_cert_chain(own.certificate, own.key)
    context.verify_mode = ssl.CERT_OPTIONAL  # asks, and takes whoever comes
    context.load_verify_locations(known.certificate)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def curious() -> None:
            for _ in range(2):
                listening.settimeout(5)
                with contextlib.suppress(OSError):
                    connection, _ = listening.accept()
                    with context.wrap_socket(connection, server_side=True) as wrapped:
                        seen.append(wrapped.getpeercert(binary_form=True))

        listens = threading.Thread(target=curious)
        listens.start()
        where = Address("127.0.0.1", listening.getsockname()[1])
        with pytest.raises(ProtocolError):
            ask(ClientTls(identity.pin, None, known.certificate, known.key))(where)
        if not is_pinned:
            with contextlib.suppress(OSError), socket.create_connection((where.host, where.port)):
                pass
        listens.join()
    assert any(seen) is is_pinned


def test_tls_1_2_is_refused_by_both_sides(identity: Identity) -> None:
    def old_client(address: Address) -> object:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with (
            socket.create_connection((address.host, address.port), timeout=5) as plain,
            pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"),
        ):
            context.wrap_socket(plain)
        return None

    assert isinstance(meet(identity.server, old_client)[1], WrongSessionError)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def old_server() -> None:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                context.wrap_socket(connection, server_side=True)

        serving = threading.Thread(target=old_server)
        serving.start()
        with pytest.raises(WrongSessionError, match="TLS"):
            ask(identity.client)(Address("127.0.0.1", listening.getsockname()[1]))
        serving.join()


def test_what_is_spoken_is_tls_1_3(identity: Identity) -> None:
    def version(address: Address) -> str | None:
        with connect(address, "toy", {}, tls=identity.client, limits=QUICK) as channel:
            channel.send(1, b"hi")
            channel.receive(1, size=2)
            return channel._stream._socket.version()  # type: ignore[attr-defined]

    assert meet(identity.server, version)[0] == "TLSv1.3"


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"", bytes(5000)])
def test_a_client_that_speaks_no_tls(identity: Identity, said: bytes) -> None:
    def shout(address: Address) -> None:
        with socket.create_connection((address.host, address.port), timeout=5) as plain:
            plain.sendall(said)

    left_early = said in (b"", b"\x16\x03\x01")  # then the right one is waited for
    error = meet(identity.server, shout, seconds=0.5 if left_early else 10)[1]
    assert isinstance(error, PeerTimeoutError if left_early else WrongSessionError)


def test_a_client_that_stalls_in_the_handshake(identity: Identity) -> None:
    connections = []

    def stall(address: Address) -> None:
        connections.append(socket.create_connection((address.host, address.port), timeout=5))

    assert isinstance(meet(identity.server, stall, Limits(handshake_seconds=0.2))[1], PeerTimeoutError)
    connections[0].close()


def test_a_changed_byte_is_noticed(identity: Identity) -> None:
    """A proxy flips one bit of what the client sends after the handshake."""
    with Listener(LOCAL, tls=identity.server, limits=QUICK) as listener, socket.create_server(LOCAL_PAIR) as front:
        flip = threading.Event()
        came: list[object] = []

        def relay(source: socket.socket, target: socket.socket, change: bool) -> None:
            try:
                while data := source.recv(65536):
                    if change and flip.is_set():
                        data = data[:-1] + bytes([data[-1] ^ 1])
                    target.sendall(data)
            except OSError:
                pass
            target.close()

        def serve() -> None:
            try:
                with listener.wait("toy", {}, seconds=10) as channel:
                    came.append(channel.receive(1, at_most=100))
            except ProtocolError as error:
                came.append(error)

        def proxy() -> None:
            client, _ = front.accept()
            server = socket.create_connection((listener.address.host, listener.address.port))
            back = threading.Thread(target=relay, args=(server, client, False))
            back.start()
            relay(client, server, True)
            back.join()

        threads = [threading.Thread(target=serve), threading.Thread(target=proxy)]
        for thread in threads:
            thread.start()
        address = Address("127.0.0.1", front.getsockname()[1])
        with connect(address, "toy", {}, tls=identity.client, limits=QUICK) as channel:
            flip.set()
            channel.send(1, b"hi")
            with pytest.raises(PeerGoneError):
                channel.receive(1, size=2)
        for thread in threads:
            thread.join()
    assert isinstance(came[0], BadTypeError)
    assert "not TLS" in str(came[0])


LOCAL_PAIR = ("127.0.0.1", 0)


def test_the_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    made = make_identity(tmp_path, "mine")
    assert stat.S_IMODE(made.key.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        make_certificate(tmp_path / "new.pem", made.key)
    assert not (tmp_path / "new.pem").exists()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"pin": "ab" * 32, "ca": Path("x")},
        {"pin": "short"},
        {"pin": "zz" * 32},
        {"pin": "ab" * 32, "certificate": Path("x")},
        {"pin": "ab" * 32, "key": Path("x")},
    ],
)
def test_a_client_must_know_whom_to_trust(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"fingerprint|certificate"):
        ClientTls(**fields)  # type: ignore[arg-type]


def test_files_that_do_not_fit_are_named(identity: Identity, tmp_path: Path) -> None:
    other = make_identity(tmp_path, "other")
    for tls in (ServerTls(identity.certificate, other.key), ServerTls(tmp_path / "absent.pem", other.key)):
        with pytest.raises(PpspeechError, match=r"other\.key"):
            Listener(LOCAL, tls=tls)


def test_closing_leaves_no_socket_open(identity: Identity) -> None:
    ends: list[StreamChannel] = []

    def keep(address: Address) -> None:
        with connect(address, "toy", {}, tls=identity.client, limits=QUICK) as channel:
            channel.send(1, b"hi")
            channel.receive(1, size=2)
            ends.append(channel)

    meet(identity.server, keep)
    assert ends[0]._stream._socket.fileno() == -1


def test_each_knows_who_the_other_is(tmp_path: Path, identity: Identity) -> None:
    """The address, and the certificate that was shown: the server's always, a client's where it was asked for."""
    own = make_identity(tmp_path, "ann", names=("ann",))
    seen: list[Peer] = []

    def serve(listener: Listener) -> None:
        with listener.wait("toy", {}, seconds=10) as channel:
            seen.append(channel.peer)
            channel.receive(1, size=0)

    for authority, shown in ((None, None), (own.certificate, own.pin)):
        tls = ServerTls(identity.certificate, identity.key, authority)
        with Listener(LOCAL, tls=tls, limits=QUICK) as listener:
            serving = threading.Thread(target=serve, args=(listener,))
            serving.start()
            client = ClientTls(pin=identity.pin, certificate=own.certificate, key=own.key)
            with connect(listener.address, "toy", {}, tls=client, limits=QUICK) as channel:
                assert channel.peer == Peer("127.0.0.1", identity.pin)
                channel.send(1, b"")
            serving.join()
        assert seen.pop() == Peer("127.0.0.1", shown)


def test_who_stalls_longest_gives_way_and_nothing_stays_behind(identity: Identity) -> None:
    before = threading.active_count()

    def call(address: Address) -> None:
        connect(address, "toy", {}, tls=identity.client, limits=QUICK).close()

    with Listener(LOCAL, tls=identity.server, limits=Limits(handshake_seconds=60)) as listener:
        where = (listener.address.host, listener.address.port)
        stalled = [socket.create_connection(where, timeout=10) for _ in range(6)]
        with listener.reception("toy", {}, lambda channel: "guest", most=3) as reception:
            left = [reception.next(10) for _ in range(3)]  # the first three, for the three after them
            assert all(isinstance(each, PeerGoneError) for each in left)
            assert reception.next(0.1) is None
            assert [connection.recv(1) for connection in stalled[:3]] == [b""] * 3
            calling = threading.Thread(target=call, args=(listener.address,))
            calling.start()
            while isinstance(came := reception.next(10), ProtocolError):
                assert isinstance(came, PeerGoneError)
            assert came is not None
            assert came[1] == "guest"
            calling.join()
            came[0].close()
        assert stalled[-1].recv(1) == b""
        for connection in stalled:
            connection.close()
    for _ in range(100):
        if threading.active_count() == before:
            break
        time.sleep(0.05)
    assert threading.active_count() == before


@pytest.mark.parametrize("ticket", [b"", b"x" * 16, b"x" * 15, b"x" * 17])
def test_a_listener_takes_the_one_with_its_ticket(identity: Identity, ticket: bytes) -> None:
    refused: list[ProtocolError] = []
    heard: list[bytes] = []

    def serve(listener: Listener) -> None:
        with listener.wait("toy", {}, seconds=20, ticket=b"0123456789abcdef", tell=refused.append) as channel:
            heard.append(channel.receive(1, size=2))

    with Listener(LOCAL, tls=identity.server, limits=QUICK) as listener:
        serving = threading.Thread(target=serve, args=(listener,))
        serving.start()
        with connect(listener.address, "toy", {}, tls=identity.client, limits=QUICK, ticket=ticket) as stranger:
            stranger.send(1, b"no")
            with pytest.raises(PeerGoneError):
                stranger.receive(1, size=2)
        with pytest.raises(PeerGoneError):  # nor does one end the wait who wants something else
            connect(listener.address, "other", {}, tls=identity.client, limits=QUICK)
        with connect(
            listener.address, "toy", {}, tls=identity.client, limits=QUICK, ticket=b"0123456789abcdef"
        ) as right:
            right.send(1, b"hi")
        serving.join()
    assert heard == [b"hi"]
    assert len(refused) == 2
    assert all(b"0123456789abcdef".decode() not in str(error) for error in refused)


def test_a_peer_without_a_network_or_that_has_left() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        assert ByteStream(ours, 100).peer == Peer(None, None)
    with socket.socket() as lonely:
        assert Peer.of(lonely) == Peer(None, None)
    ours.close()
