"""The door for pages that pin: the sessions that TCP has, callers who are where they say, and short certificates."""

import contextlib
import datetime
import json
import logging
import socket
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aioquic.h3.connection import FrameType, encode_frame
from cryptography.hazmat.primitives.asymmetric import ec

from ppspeech.errors import PeerGoneError, PpspeechError, ProtocolError
from ppspeech.network import (
    Address,
    Capacity,
    Limits,
    RunningServer,
    Server,
    ServerTls,
    Service,
    ShortLivedCertificates,
    StreamChannel,
    Transcript,
    TransportDoor,
    connect,
    in_background,
)
from ppspeech.network.channel.frames import pack_header
from ppspeech.network.channel.hello import Hello
from ppspeech.network.web import transport as transport_module
from ppspeech.network.web.calls import Switchboard
from tests.network.conftest import QUICK, Identity
from tests.network.test_server import LOCAL, SERVICES, ask, children, counted, descriptors, wait_until
from tests.network.transport_client import Transport, transport_connect

DAY = datetime.timedelta(days=1)
NOW = datetime.datetime(2030, 5, 17, 12, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> ShortLivedCertificates:
    return ShortLivedCertificates(tmp_path_factory.mktemp("webtransport"))


@contextlib.contextmanager
def transport_server(
    certificates: ShortLivedCertificates,
    limits: Limits = QUICK,
    capacity: Capacity | None = None,
    origins: tuple[str, ...] = (),
) -> Iterator[RunningServer]:
    door = TransportDoor(LOCAL, certificates, origins)
    capacity = capacity or Capacity(grace_seconds=2)
    server = Server(LOCAL, SERVICES, limits=limits, capacity=capacity, insecure=True, transport=door)
    with in_background(server) as running:
        yield running


@pytest.fixture(scope="module")
def small(certificates: ShortLivedCertificates) -> Iterator[RunningServer]:
    """One server, with small limits, for whatever is refused: if any of it hurt, the next would notice."""
    plenty = Capacity(handshakes=400, grace_seconds=2)  # or else who fails so often would have to wait
    limits = replace(QUICK, message_bytes=5000)
    with transport_server(certificates, limits, plenty, ("https://pages.example",)) as server:
        yield server


def at(server: RunningServer) -> Address:
    assert server.transport_address is not None
    return server.transport_address


def add_up(channel: StreamChannel | Transcript, numbers: list[int]) -> list[int]:
    answers = []
    for number in numbers:
        channel.send(1, number.to_bytes(8, "big"))
        answers.append(int.from_bytes(channel.receive(2, size=9)[1:], "big"))
    return answers


def by_transport(server: RunningServer, numbers: list[int], **options: Any) -> list[int]:
    with transport_connect(at(server), "compare", {"steps": len(numbers)}, **options) as channel:
        return add_up(channel, numbers)


def opened(server: RunningServer) -> Transport:
    """A session that has begun to be asked for: a stream on which nothing was said."""
    transport = Transport(at(server))
    assert transport.open() == 200
    return transport


def hello(protocol: str = "compare", params: dict[str, Any] | None = None) -> bytes:
    data = Hello(protocol, {"steps": 1} if params is None else params, bytes(16)).encode()
    return pack_header(0, bytes(16), 0, len(data)) + data


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
        one.bind(("::1", 0))
        return True
    return False


# Sessions.


@pytest.mark.parametrize("cut", [None, 1, 30])
def test_a_session_however_it_is_cut(small: RunningServer, cut: int | None) -> None:
    assert by_transport(small, [400, 600, 1], cut=cut) == [400, 1000, 1001]


def test_the_transcript_is_that_of_tcp(certificates: ShortLivedCertificates) -> None:
    shapes = []
    with transport_server(certificates) as server:
        for channel in (
            connect(server.address, "compare", {"steps": 3}, insecure=True),
            transport_connect(at(server), "compare", {"steps": 3}),
        ):
            with channel:
                transcript = Transcript(channel)
                add_up(transcript, [1, 2, 3])
                shapes.append(transcript.shape())
        wait_until(lambda: not children(server))
    assert shapes[0] == shapes[1]
    counts = counted(server)
    assert (counts.started, counts.finished) == (2, 2)
    assert counts.bytes_sent % 2 == counts.bytes_received % 2 == 0  # frames are counted, not what carries them


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_a_session_over_ipv6(certificates: ShortLivedCertificates) -> None:
    door = TransportDoor(Address("::1", 0), certificates)
    with in_background(Server(LOCAL, SERVICES, limits=QUICK, insecure=True, transport=door)) as server:
        assert by_transport(server, [3, 4]) == [3, 7]


def test_sessions_side_by_side(certificates: ShortLivedCertificates) -> None:
    with transport_server(certificates) as server, ThreadPoolExecutor(4) as pool:
        by_page = [pool.submit(by_transport, server, [990, i]) for i in range(6)]
        by_tcp = [pool.submit(ask, server.address, [990, i]) for i in range(6)]
        assert [job.result() for job in by_page] == [[990, 990 + i] for i in range(6)]
        assert [job.result() for job in by_tcp] == [[False, False]] * 6


def test_large_messages_both_ways_at_once(certificates: ShortLivedCertificates) -> None:
    """Both send before they read: neither waits for the other for ever."""
    steps = 400
    with (
        transport_server(certificates) as server,
        transport_connect(at(server), "compare", {"steps": steps}) as channel,
    ):
        for _ in range(steps):
            channel.send(1, bytes(8))
        for _ in range(steps):
            channel.receive(2, size=9)


def test_what_is_said_last_comes(certificates: ShortLivedCertificates) -> None:
    """A server that is done closes: what it has said is still delivered, however much of it is on its way."""
    with transport_server(certificates) as server:
        transport = opened(server)
        transport.say(hello("fixed"))
        heard = transport.until_over()
        assert len(heard) == len(hello("fixed")) + 28
        transport.close()


def test_the_pin_is_that_of_the_certificate_that_is_shown(
    small: RunningServer, certificates: ShortLivedCertificates
) -> None:
    transport = opened(small)
    assert transport.fingerprint() == certificates.pins[0]
    transport.close()


def test_a_server_that_ends_a_session_says_so_and_not_why(small: RunningServer) -> None:
    transport = opened(small)
    transport.say(hello("nonesuch", {}))
    assert transport.until_over() == pack_header(255, bytes(16), 0, 1) + b"\0"
    transport.close()


def test_who_waits_is_kept(certificates: ShortLivedCertificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser gives up a connection that is silent: the server says that it is there while nobody speaks."""
    monkeypatch.setattr(transport_module, "PING_SECONDS", 0.1)
    with transport_server(certificates) as server:
        transport = Transport(at(server), idle_timeout=1.5)
        assert transport.open() == 200
        with contextlib.suppress(ProtocolError):
            transport.until_over(time.monotonic() + 4)
        assert not transport.is_over
        transport.close()


# Requests.


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({":path": "/"}, 404),
        ({":path": "/ws"}, 404),
        ({":path": "/wt?x=1"}, 404),
        ({":path": None, ":scheme": None}, 404),
        ({":method": "GET"}, 400),
        ({":protocol": None}, 400),
        ({":protocol": "websocket"}, 400),
        # Pages of others.
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://pages.example"}, 403),
        ({"origin": "https://pages.example.evil.example"}, 403),
        ({":authority": "evil.example", "origin": "http://evil.example"}, 403),
        # And who may.
        ({}, 200),
        ({"origin": "https://pages.example"}, 200),
        ({":authority": "speech.example:99", "origin": "https://speech.example:99"}, 200),
    ],
)
def test_requests(small: RunningServer, request_: dict[str, str | None], status: int) -> None:
    transport = Transport(at(small), request_)
    assert transport.open() == status
    if status != 200:
        transport.until_over()
    transport.close()


def test_a_page_that_is_refused_hears_nothing(certificates: ShortLivedCertificates) -> None:
    with transport_server(certificates) as server:
        transport = Transport(at(server), {"origin": "https://evil.example"})
        assert transport.open() == 403
        assert transport.until_over() == b""
        transport.close()
        wait_until(lambda: not children(server))
    assert dict(counted(server).failed) == {"WrongSessionError": 1}
    assert counted(server).bytes_sent == counted(server).bytes_received == 0


# What may not come.


def second_stream(transport: Transport) -> None:
    assert transport.http is not None
    transport.say(hello()[:5])
    other = transport.http.create_webtransport_stream(transport.session)
    transport.quic.send_stream_data(other, b"PS")


def one_way_stream(transport: Transport) -> None:
    assert transport.http is not None
    other = transport.http.create_webtransport_stream(transport.session, is_unidirectional=True)
    transport.quic.send_stream_data(other, b"PS")


def stream_of_another_session(transport: Transport) -> None:
    assert transport.http is not None
    transport.stream = transport.http.create_webtransport_stream(400)
    transport.quic.send_stream_data(transport.stream, hello())


def second_request(transport: Transport) -> None:
    assert transport.http is not None
    headers = [(name.encode(), value.encode()) for name, value in transport.headers.items()]
    transport.http.send_headers(transport.quic.get_next_available_stream_id(), headers)


def shouting_beside(transport: Transport) -> None:
    """Headers of another request, that never end, in a session that has begun."""
    transport.say(hello())
    while len(transport.heard) < len(hello()):
        transport.turn(time.monotonic() + 60)
    other = transport.quic.get_next_available_stream_id()
    head = encode_frame(FrameType.HEADERS, bytes(2**14))
    transport.quic.send_stream_data(other, head[:1] + b"\xbf\xff\xff\xff" + bytes(2**18))


def shouting_first(transport: Transport) -> None:
    """More than a HELLO, before there was one, and none of it of the session's stream."""
    for _ in range(100):
        transport.quic.send_datagram_frame(bytes(1000))


def oversize(transport: Transport) -> None:
    transport.say(pack_header(0, bytes(16), 0, 2**31))


@pytest.mark.parametrize(
    ("say", "failure"),
    [
        (second_stream, "BadTypeError"),
        (one_way_stream, "BadTypeError"),
        (stream_of_another_session, "BadTypeError"),
        (second_request, "BadTypeError"),
        (shouting_beside, "FrameTooLargeError"),
        (shouting_first, "FrameTooLargeError"),
        (oversize, "FrameTooLargeError"),
    ],
)
def test_what_may_not_come_ends_one_session(certificates: ShortLivedCertificates, say: Any, failure: str) -> None:
    with transport_server(certificates) as server:
        with transport_connect(at(server), "compare", {"steps": 2}) as bystander:
            assert add_up(bystander, [3]) == [3]
            transport = opened(server)
            say(transport)
            transport.send()
            with contextlib.suppress(ProtocolError, OSError):
                transport.until_over()
            transport.close()
            assert add_up(bystander, [4]) == [7]
        wait_until(lambda: not children(server))
    assert dict(counted(server).failed) == {failure: 1}
    assert counted(server).finished == 1


@pytest.mark.parametrize(("ahead", "failure"), [(0, "PeerTimeoutError"), (2**22, "FrameTooLargeError")])
def test_a_client_that_does_not_read(certificates: ShortLivedCertificates, ahead: int, failure: str) -> None:
    """What is said to it is given up in time, and what it says meanwhile is kept up to a limit."""
    limits, door = replace(QUICK, message_seconds=2), TransportDoor(LOCAL, certificates)
    services = {**SERVICES, "tells": Service(lambda channel, _: channel.send(1, bytes(QUICK.message_bytes)))}
    capacity = Capacity(grace_seconds=2)
    with in_background(
        Server(LOCAL, services, limits=limits, capacity=capacity, insecure=True, transport=door)
    ) as server:
        transport = opened(server)
        transport.quic._write_stream_limits = lambda *_, **__: None  # type: ignore[method-assign]
        transport.say(hello("tells", {}) + bytes(ahead))
        with contextlib.suppress(ProtocolError, OSError):
            transport.until_over()
        transport.close()
        assert by_transport(server, [5]) == [5]
        wait_until(lambda: not children(server))
    assert counted(server).finished == 1
    assert dict(counted(server).failed) == {failure: 1}


# What is left behind.


def left_at(server: RunningServer, step: int) -> None:
    """A page that is gone, without a word or with one: after the first datagrams, the request, HELLO, some answers."""
    transport = Transport(at(server))
    if step >= 1:
        assert transport.open() == 200
    if step == 2:
        transport.say(hello()[:40])
    if step >= 3:
        transport.say(hello("compare", {"steps": 9}))
        while len(transport.heard) < len(hello("compare", {"steps": 9})):
            transport.turn(time.monotonic() + 60)
    if step >= 4:
        transport.close()
    else:
        transport.vanish()


def test_a_page_that_is_gone_at_any_step_leaves_nothing_behind(certificates: ShortLivedCertificates) -> None:
    limits = replace(QUICK, handshake_seconds=3, message_seconds=5)
    with transport_server(certificates, limits) as server:
        assert by_transport(server, [1]) == [1]
        wait_until(lambda: not children(server))
        before = descriptors(server)
        with connect(server.address, "compare", {"steps": 10**6}, insecure=True) as bystander:
            for step in range(5):
                assert add_up(bystander, [0]) == [0]
                left_at(server, step)
            wait_until(lambda: add_up(bystander, [0]) == [0] and len(children(server)) == 1)
        wait_until(lambda: not children(server) and descriptors(server) == before)
    counts = counted(server)
    assert counts.finished == 1
    assert counts.started == 1 + sum(counts.failed.values())
    assert set(counts.failed) <= {"PeerGoneError", "BadLengthError", "PeerTimeoutError", "Killed"}


def test_silent_clients_are_given_up_and_those_who_never_stop(certificates: ShortLivedCertificates) -> None:
    with transport_server(certificates, replace(QUICK, handshake_seconds=2)) as server:
        silent = [opened(server) for _ in range(3)]

        def shout() -> bool:
            silent[0].quic.send_ping(1)
            silent[0].send()
            silent[1].socket.sendto(b"\x40" + bytes(99), silent[1].where)
            return not children(server)

        wait_until(shout)
        for transport in silent:
            transport.vanish()
        assert by_transport(server, [5]) == [5]
    assert dict(counted(server).failed) == {"PeerTimeoutError": 3}


def test_a_session_that_takes_too_much_ends_alone(certificates: ShortLivedCertificates) -> None:
    with transport_server(certificates, capacity=Capacity(session_bytes=2**28, grace_seconds=2)) as server:
        bystander = transport_connect(at(server), "compare", {"steps": 1})
        for protocol, params in (("greedy", {"bytes": 2**30}), ("faulty", {})):
            channel = transport_connect(at(server), protocol, params)
            channel.send(1, b"")
            with pytest.raises(PeerGoneError):
                channel.receive(1, size=8)
        assert add_up(bystander, [5]) == [5]
        bystander.close()
    assert dict(counted(server).failed) == {"MemoryError": 1, "RuntimeError": 1}


def test_no_payload_is_ever_logged(
    certificates: ShortLivedCertificates, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    handler, level = logging.StreamHandler(), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with transport_server(certificates) as server:
            for request in ({}, {"x": "MY SECRET WORD"}, {"x": "MY SECRET WORD", ":path": "/SECRET"}):
                transport = Transport(at(server), request)
                if transport.open() == 200:
                    transport.say(b"MY SECRET WORD" * 4)
                transport.until_over()
                transport.close()
            transport = opened(server)
            transport.say(b"PS")
            transport.quic.close(reason_phrase="MY SECRET WORD")
            transport.close()
            wait_until(lambda: not children(server))
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    heard = capfd.readouterr()
    assert "session" in heard.err
    assert "SECRET" not in heard.out + heard.err


# Callers.


def first_datagrams() -> list[bytes]:
    """What a client sends first, to nobody."""
    transport = Transport(Address("127.0.0.1", 9))
    transport.vanish()
    return transport.said


def test_who_has_not_shown_where_it_is_gets_no_process(certificates: ShortLivedCertificates) -> None:
    """Anybody can write any address on a datagram: it is answered with less than it was, and forgotten."""
    with transport_server(certificates) as server:
        assert by_transport(server, [5]) == [5]  # what a server has after its first session it keeps
        wait_until(lambda: not children(server))
        before = descriptors(server)
        said = first_datagrams()[0]
        changed = [said, said[:1199], said[1:], b"", b"\xff" * 1300, said[:1] + b"\0\0\0\2" + said[5:]]
        with contextlib.ExitStack() as stack:
            callers = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in changed]
            for caller, data in zip(callers, changed, strict=True):
                caller.sendto(data, (at(server).host, at(server).port))
            assert by_transport(server, [5]) == [5]  # so that all of it has been heard
            answers = []
            for caller in callers:
                caller.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    answers.append((caller, caller.recv(65536)))
            assert [caller for caller, _ in answers] == callers[:1]
            assert len(answers[0][1]) < len(said)
        wait_until(lambda: not children(server))
        assert descriptors(server) == before
    assert counted(server).started == 2


def test_a_token_is_good_for_one_place() -> None:
    board = Switchboard(LOCAL)
    with board.socket, contextlib.ExitStack() as stack:
        where = Address(*board.socket.getsockname())

        def calls() -> list[Any]:
            time.sleep(0.05)
            found = board.calls()
            for each in found:
                stack.enter_context(each.connection)
            return found

        transport = Transport(where)
        assert calls() == []  # it was asked to show where it is
        transport.said.clear()
        transport.turn(time.monotonic() + 60)
        shown = list(transport.said)
        transport.said.clear()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            for data in shown:
                other.sendto(data, (where.host, where.port))
            found = calls()
        assert [each.source for each in found] == [transport.socket.getsockname()]
        assert len(found[0].datagrams) == len(shown)
        transport.vanish()
    Switchboard(where).socket.close()  # it can be had again


def test_nobody_shares_the_port() -> None:
    board = Switchboard(LOCAL)
    with board.socket, pytest.raises(OSError, match="in use"):
        Switchboard(Address(*board.socket.getsockname()))


def test_where_it_may_not_be(identity: Identity, certificates: ShortLivedCertificates) -> None:
    """Pages show no certificate: a server for those who have one would let anybody in there."""
    known = ServerTls(identity.certificate, identity.key, identity.certificate)
    with pytest.raises(ValueError, match="pages show no certificate"):
        Server(LOCAL, SERVICES, tls=known, transport=TransportDoor(LOCAL, certificates))
    with pytest.raises(ValueError, match="an origin is https://HOST:PORT"):
        TransportDoor(LOCAL, certificates, ("*",))


# Certificates.


def test_a_certificate_is_one_that_browsers_let_pages_pin(tmp_path: Path) -> None:
    kept = ShortLivedCertificates(tmp_path / "certificates", lambda: NOW)
    for each in kept._kept:
        public = each.certificate.public_key()
        assert isinstance(public, ec.EllipticCurvePublicKey)
        assert isinstance(public.curve, ec.SECP256R1)
        assert each.certificate.not_valid_after_utc - each.certificate.not_valid_before_utc <= 14 * DAY
    assert stat.S_IMODE((tmp_path / "certificates").stat().st_mode) == 0o700
    assert {stat.S_IMODE(key.stat().st_mode) for key in (tmp_path / "certificates").glob("*.key")} == {0o600}
    assert json.loads((tmp_path / "certificates" / "pins.json").read_text()) == kept.pins


def test_the_next_certificate_is_known_long_before_it_is_shown(tmp_path: Path) -> None:
    """Over months, looked at every few hours and by servers that begin again: what is shown is valid, also where clocks
    are hours off, was the next for eleven days, and no more than two are kept.
    """
    times = [NOW + datetime.timedelta(hours=hours) for hours in range(0, 24 * 100, 7)]
    now, shown = NOW, []
    known: dict[str, datetime.datetime] = {}
    clock = lambda: now  # noqa: E731
    kept = ShortLivedCertificates(tmp_path, clock)
    for number, now in enumerate(times):
        if number % 5 == 0:
            kept = ShortLivedCertificates(tmp_path, clock)
        kept.renew()
        assert len(kept.pins) == len(set(kept.pins)) == 2
        for pin in kept.pins:
            known.setdefault(pin, now)
        current = kept.current
        if current.pin not in shown:
            shown.append(current.pin)
            if len(shown) > 1:
                assert now - known[current.pin] > 11 * DAY
                assert now - current.certificate.not_valid_before_utc > DAY / 4
        assert current.certificate.not_valid_before_utc < now < current.certificate.not_valid_after_utc - DAY / 4
        assert len([*tmp_path.glob("*.pem"), *tmp_path.glob("*.key")]) == 4
        assert json.loads((tmp_path / "pins.json").read_text()) == kept.pins
    assert len(shown) == 9


@pytest.mark.parametrize("later", [-40, 20, 400])
def test_a_clock_that_jumps(tmp_path: Path, later: int) -> None:
    before = ShortLivedCertificates(tmp_path, lambda: NOW).pins
    after = ShortLivedCertificates(tmp_path, lambda: NOW + later * DAY)
    current = after.current.certificate
    assert current.not_valid_before_utc < NOW + later * DAY < current.not_valid_after_utc
    assert (after.pins[0] == before[1]) == (later == 20)


def test_files_that_are_not_certificates(tmp_path: Path) -> None:
    ShortLivedCertificates(tmp_path, lambda: NOW)
    for damage in (lambda path: path.write_bytes(b"no"), Path.unlink):
        damage(next(iter(sorted(tmp_path.glob("*.key")))))
        with pytest.raises(PpspeechError, match="remove both to have others made"):
            ShortLivedCertificates(tmp_path, lambda: NOW)


def test_a_server_shows_the_next_in_time(tmp_path: Path) -> None:
    """While it runs: the first certificate is over, and who comes meets the second."""
    days = tmp_path / "days"
    days.write_text("0")
    now = datetime.datetime.now(datetime.UTC)
    kept = ShortLivedCertificates(tmp_path / "kept", lambda: now + int(days.read_text()) * DAY)
    first, second = kept.pins

    def shown() -> str:
        transport = opened(server)
        transport.close()
        return transport.fingerprint()

    with transport_server(kept, capacity=Capacity(grace_seconds=2, handshakes=400)) as server:
        assert shown() == first
        days.write_text("13")
        wait_until(lambda: shown() == second)
