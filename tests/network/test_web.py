"""The door for pages: the sessions that TCP has, nothing but fixed files, and refusals that hurt nobody else."""

import contextlib
import http.client
import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ppspeech.errors import PeerGoneError
from ppspeech.network import (
    Address,
    Capacity,
    Limits,
    RunningServer,
    Server,
    StreamChannel,
    Transcript,
    WebDoor,
    WebFile,
    connect,
    in_background,
)
from ppspeech.network.channel.frames import pack_header
from ppspeech.network.channel.hello import Hello
from tests.network.conftest import QUICK, Identity
from tests.network.test_server import LOCAL, SERVICES, ask, children, counted, descriptors, wait_until
from tests.network.web_client import (
    HANDSHAKE,
    raw_socket,
    said_to,
    trusting,
    web_connect,
    web_socket,
    ws_frame,
)

FILES = {
    "/": WebFile(b"<!doctype html>", "text/html; charset=utf-8"),
    "/page.js": WebFile(b"export {};" + bytes(200_000), "text/javascript; charset=utf-8"),
}
SMALL = replace(QUICK, message_bytes=5000)


@contextlib.contextmanager
def web_server(
    limits: Limits = QUICK, origins: tuple[str, ...] = (), capacity: Capacity | None = None, **options: Any
) -> Iterator[RunningServer]:
    options = options or {"insecure": True}
    capacity = capacity or Capacity(grace_seconds=2)
    door = WebDoor(LOCAL, FILES, origins)
    with in_background(Server(LOCAL, SERVICES, limits=limits, capacity=capacity, web=door, **options)) as server:
        yield server


def at(server: RunningServer) -> Address:
    assert server.web_address is not None
    return server.web_address


def add_up(channel: StreamChannel | Transcript, numbers: list[int]) -> list[int]:
    answers = []
    for number in numbers:
        channel.send(1, number.to_bytes(8, "big"))
        answers.append(int.from_bytes(channel.receive(2, size=9)[1:], "big"))
    return answers


def by_web(server: RunningServer, numbers: list[int], **options: Any) -> list[int]:
    with web_connect(at(server), "compare", {"steps": len(numbers)}, **options) as channel:
        return add_up(channel, numbers)


@pytest.fixture(scope="module")
def small() -> Iterator[RunningServer]:
    """One server, with small limits, for whatever is refused: if any of it hurt, the next would notice."""
    plenty = Capacity(handshakes=400, grace_seconds=2)  # or else who fails so often would have to wait
    with web_server(SMALL, ("https://pages.example",), plenty) as server:
        yield server


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, Identity]]:
    from tests.network.conftest import make_identity

    identity = make_identity(tmp_path_factory.mktemp("web"), "server")
    with web_server(tls=identity.server) as server:
        yield server, identity


# Sessions.


@pytest.mark.parametrize("cut", [None, 1, 30])
def test_a_session_however_it_is_cut(small: RunningServer, cut: int | None) -> None:
    assert by_web(small, [400, 600, 1], cut=cut) == [400, 1000, 1001]


def test_the_transcript_is_that_of_tcp() -> None:
    shapes = []
    with web_server() as server:
        for channel in (
            connect(server.address, "compare", {"steps": 3}, insecure=True),
            web_connect(at(server), "compare", {"steps": 3}),
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


def test_sessions_over_tls_side_by_side(secure: tuple[RunningServer, Identity]) -> None:
    server, identity = secure
    with ThreadPoolExecutor(4) as pool:
        tls = trusting(identity)
        by_page = [pool.submit(by_web, server, [990, i], tls=tls) for i in range(6)]
        by_tcp = [pool.submit(ask, server.address, [990, i], tls=identity.client) for i in range(6)]
        assert [job.result() for job in by_page] == [[990, 990 + i] for i in range(6)]
        assert [job.result() for job in by_tcp] == [[False, False]] * 6


def test_large_messages_both_ways_at_once() -> None:
    """Both send before they read: neither waits for the other for ever."""
    with web_server(replace(QUICK, message_bytes=2**22)) as server:
        with web_connect(at(server), "greedy", {"bytes": 2**21}) as channel:
            assert int.from_bytes(channel.receive(1, size=8), "big") == 2**21
        steps = 400
        with web_connect(at(server), "compare", {"steps": steps}) as channel:
            for _ in range(steps):
                channel.send(1, bytes(8))
            for _ in range(steps):
                channel.receive(2, size=9)


def test_pings_are_answered_and_nothing_is_compressed(small: RunningServer) -> None:
    connection = web_socket(at(small), compression="deflate")
    try:
        assert connection.subprotocol == "ppspeech.1"
        assert connection.protocol.extensions == []
        assert connection.ping(b"there?").wait(60)
    finally:
        connection.close()


def test_a_server_that_ends_a_session_says_so_and_not_why(small: RunningServer) -> None:
    connection = web_socket(at(small))
    data = Hello("nonesuch", {}, bytes(16)).encode()
    connection.send(pack_header(0, bytes(16), 0, len(data)) + data)
    said = connection.recv(timeout=60)
    assert said == pack_header(255, bytes(16), 0, 1) + b"\0"
    with pytest.raises(ConnectionClosed) as ended:
        connection.recv(timeout=60)
    assert ended.value.rcvd is not None
    assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (1000, "")


# Files.


def test_files_have_headers_that_protect_and_heads() -> None:
    with web_server() as server:
        for path, file in FILES.items():
            for method in ("GET", "HEAD"):
                connection = http.client.HTTPConnection(at(server).host, at(server).port, timeout=60)
                connection.request(method, path)
                answer = connection.getresponse()
                assert answer.status == 200
                assert answer.read() == (file.body if method == "GET" else b"")
                headers = {name.lower(): value for name, value in answer.getheaders()}
                assert headers["content-length"] == str(len(file.body))
                assert headers["content-type"] == file.media_type
                assert headers["x-content-type-options"] == "nosniff"
                assert headers["referrer-policy"] == "no-referrer"
                assert headers["cross-origin-opener-policy"] == "same-origin"
                policy = headers["content-security-policy"]
                assert policy.startswith("default-src 'none'; script-src 'self' 'wasm-unsafe-eval';")
                assert "unsafe-inline" not in policy
                assert "http" not in policy
                connection.close()
        wait_until(lambda: not children(server))
    assert (counted(server).started, counted(server).finished, dict(counted(server).failed)) == (4, 4, {})


@pytest.mark.parametrize(
    "line",
    [
        "GET /nonesuch", "GET /../pyproject.toml", "GET //etc/passwd", "GET /page.js?x=1", "GET /%70age.js",
        "GET http://127.0.0.1/page.js", "GET *", "GET /\xff", "POST /", "PUT /page.js", "OPTIONS *", "CONNECT a:1",
        "PRI *",
    ],
)  # fmt: skip
def test_everything_else_is_not_found(small: RunningServer, line: str) -> None:
    heard = said_to(at(small), line.encode("latin-1") + b" HTTP/1.1\r\nHost: localhost:1\r\n\r\n")
    assert heard.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert b"default-src 'none'" in heard


# Handshakes.


def shaken(change: tuple[str, str] = ("", ""), more: str = "") -> bytes:
    assert change[0] in HANDSHAKE
    return (HANDSHAKE.replace(*change) + more + "\r\n").encode("latin-1")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (shaken(("Upgrade: websocket", "Upgrade: h2c")), 400),
        (shaken(("Connection: Upgrade", "Connection: close")), 400),
        (shaken(("AAAA==", "AA")), 400),
        (shaken(("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", "")), 400),
        (shaken(("Version: 13", "Version: 8")), 400),
        (shaken(("ppspeech.1", "ppspeech.2")), 400),
        (shaken(("Sec-WebSocket-Protocol: ppspeech.1\r\n", "")), 400),
        (shaken(("Host: 127.0.0.1\r\n", "")), 403),
        (shaken(more="Host: 127.0.0.1\r\n"), 400),
        (shaken(more="Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"), 400),
        (shaken(more="Content-Length: 5\r\n") + b"abcde", 400),
        (shaken(more="Transfer-Encoding: chunked\r\n"), 400),
        (shaken(more="No colon\r\n"), 400),
        (shaken(("GET /ws", "HEAD /ws")), 400),
        (shaken(("HTTP/1.1", "HTTP/1.0")), 400),
        (b"GET\r\n\r\n", 404),
        (b"GET /\r\n\r\n", 400),
        (b"PS\x01\x00" + bytes(24) + b"\r\n\r\n", 404),
        # Pages of others, and names that others let point here.
        (shaken(more="Origin: https://evil.example\r\n"), 403),
        (shaken(more="Origin: null\r\n"), 403),
        (shaken(more="Origin: https://127.0.0.1\r\n"), 403),
        (shaken(more="Origin: http://127.0.0.1:1\r\n"), 403),
        (shaken(more="Origin: https://pages.example.evil.example\r\n"), 403),
        (shaken(more="Origin: http://pages.example\r\n"), 403),
        (shaken(more="Origin: http://127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"), 400),
        (shaken(("Host: 127.0.0.1", "Host: evil.example"), "Origin: http://evil.example\r\n"), 403),
        (shaken(("Host: 127.0.0.1", "Host: 127.0.0.1.evil.example")), 403),
        (shaken(("Host: 127.0.0.1", "Host: [")), 403),
        # And who may.
        (shaken(more="Origin: http://127.0.0.1\r\n"), 101),
        (shaken(more="Origin: https://pages.example\r\n"), 101),
        (shaken(("Host: 127.0.0.1", "Host: localhost:99"), "Origin: http://localhost:99\r\n"), 101),
        (shaken(("Host: 127.0.0.1", "Host: [::1]:99")), 101),
        (shaken(("Host: 127.0.0.1", "Host: pages.example"), "Origin: https://pages.example\r\n"), 101),
    ],
)  # fmt: skip
def test_handshakes(small: RunningServer, said: bytes, status: int) -> None:
    heard = said_to(at(small), said)
    assert heard.startswith(f"HTTP/1.1 {status} ".encode()), heard[:60]
    assert b"evil" not in heard


def test_a_page_of_another_host_is_refused_over_tls_too(secure: tuple[RunningServer, Identity]) -> None:
    server, identity = secure
    own = f"https://{at(server)}"
    assert by_web(server, [1], tls=trusting(identity), origin=own) == [1]
    for other in ("https://evil.example", own.replace("https", "http"), f"https://{server.address}"):
        with pytest.raises(InvalidStatus) as refused:
            web_socket(at(server), trusting(identity), origin=other)
        assert refused.value.response.status_code == 403


def test_requests_without_an_end_are_cut_short(small: RunningServer) -> None:
    line = b"X: " + b"a" * 1000 + b"\r\n"
    for said in (b"GET / HTTP/1.1\r\n" + line * 100, b"G" * 100_000):
        assert said_to(at(small), said) == b""
    many = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 1000 + b"\r\n"
    assert said_to(at(small), many).startswith(b"HTTP/1.1 400")
    assert by_web(small, [5]) == [5]


# Frames.

HELLO = pack_header(0, bytes(16), 0, 4096)
HEAVY = b"\x82\xff" + (2**63 - 1).to_bytes(8, "big") + bytes(4)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (ws_frame(b"hello", 1), 1003),  # text
        (ws_frame(b"hello", masked=False), 1002),
        (ws_frame(b"hello", reserved=4), 1002),  # what compression would set
        (ws_frame(b"hello", 3), 1002),
        (ws_frame(b"hello", 0), 1002),  # continues nothing
        (ws_frame(b"a", fin=False) + ws_frame(b"b"), 1002),
        (ws_frame(b"a" * 126, 9), 1002),  # a ping that is too long
        (ws_frame(b"a", 9, fin=False), 1002),
        (ws_frame(bytes(5029)), 1009),
        (ws_frame(bytes(3000), fin=False) + ws_frame(bytes(2029), 0), 1009),
        (HEAVY, 1009),
        (b"\x82\xff" + b"\xff" * 12, 1009),
        (ws_frame(b"\x00\x01", 8), 1002),  # a reason that is none
    ],
)  # fmt: skip
def test_frames_that_may_not_come(small: RunningServer, said: bytes, code: int) -> None:
    with raw_socket(at(small)) as connection:
        connection.sendall(said)
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(65536):
                heard += data
    assert heard[:1] == b"\x88"
    assert int.from_bytes(heard[2:4], "big") == code
    assert by_web(small, [7]) == [7]


def test_before_a_session_little_is_taken() -> None:
    """However small the pieces: a frame of the largest size must not be waited for before HELLO."""
    flood = ws_frame(HELLO) + b"".join(ws_frame(b"", 0 if i else 2, fin=False) for i in range(5000))
    with web_server(replace(QUICK, message_bytes=2**26)) as server:
        for said in (ws_frame(bytes(2**20)), flood):
            with raw_socket(at(server)) as connection, contextlib.suppress(OSError):
                connection.sendall(said)
                while connection.recv(65536):
                    pass
        wait_until(lambda: not children(server))
    assert dict(counted(server).failed) == {"FrameTooLargeError": 2}


def test_fragments_and_pings_between_them(small: RunningServer) -> None:
    data = Hello("compare", {"steps": 1}, bytes(16)).encode()
    whole = pack_header(0, bytes(16), 0, len(data)) + data
    with raw_socket(at(small)) as connection:
        said = ws_frame(whole[:10], fin=False) + ws_frame(b"there?", 9) + ws_frame(b"", 0, fin=False)
        connection.sendall(said + ws_frame(whole[10:], 0))
        heard = b""
        while len(heard) < 8 + 4 + 28:
            heard += connection.recv(65536)
    assert heard.startswith(b"\x8a\x06there?\x82")


# What is left behind.


def left_at(server: RunningServer, step: int) -> None:
    """A page that closes: after connecting, in the handshake, after it, in HELLO, in a message, after some answers."""
    if step < 3:
        with socket.create_connection((at(server).host, at(server).port)) as connection:
            connection.sendall((b"", HANDSHAKE.encode()[:50], HANDSHAKE.encode() + b"\r\n")[step])
        return
    if step < 6:
        with raw_socket(at(server)) as connection:
            connection.sendall((b"", ws_frame(HELLO)[:20], ws_frame(HELLO))[step - 3])
        return
    connection = web_connect(at(server), "compare", {"steps": 9})
    add_up(connection, [1] * (step - 6))
    connection.send(1, bytes(8))
    connection._stream._connection.socket.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
    connection.close()


def test_a_page_that_closes_at_any_step_leaves_nothing_behind() -> None:
    with web_server() as server:
        assert by_web(server, [1]) == [1]
        wait_until(lambda: not children(server))
        before = descriptors(server)
        with web_connect(at(server), "compare", {"steps": 2}) as bystander:
            assert add_up(bystander, [3]) == [3]
            for step in range(9):
                left_at(server, step)
            wait_until(lambda: len(children(server)) == 1)
            assert add_up(bystander, [4]) == [7]
        wait_until(lambda: not children(server) and descriptors(server) == before)
    counts = counted(server)
    assert counts.finished == 2
    assert counts.started == 2 + sum(counts.failed.values())
    assert counts.started + counts.refused == 11
    assert set(counts.failed) <= {"PeerGoneError", "BadLengthError"}


def test_silent_and_slow_clients_are_given_up() -> None:
    """Bytes now and then keep nobody waiting: a request, a handshake and a HELLO share one time limit."""
    limits = replace(QUICK, handshake_seconds=3)
    with web_server(limits) as server:
        where = (at(server).host, at(server).port)
        half = [socket.create_connection(where, timeout=60) for _ in range(3)]
        for connection in half:
            connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        opened = [raw_socket(at(server)) for _ in range(3)]
        alive = [*half, *opened]
        while alive:
            for connection in list(alive):
                try:
                    connection.sendall(b"a" if connection in half else ws_frame(b"", 10))
                    connection.settimeout(0.02)
                    if not connection.recv(100):
                        alive.remove(connection)
                except TimeoutError:
                    pass
                except OSError:
                    alive.remove(connection)
        for connection in (*half, *opened):
            connection.close()
        assert by_web(server, [5]) == [5]
        wait_until(lambda: not children(server))
    assert counted(server).failed["PeerTimeoutError"] + counted(server).failed["Killed"] == 6


def test_a_session_that_takes_too_much_ends_alone() -> None:
    with web_server(capacity=Capacity(session_bytes=2**28, grace_seconds=2)) as server:
        bystander = web_connect(at(server), "compare", {"steps": 1})
        for protocol, params in (("greedy", {"bytes": 2**30}), ("crash", {})):
            with pytest.raises(PeerGoneError), web_connect(at(server), protocol, params) as channel:
                channel.receive(1, size=8)
        assert add_up(bystander, [5]) == [5]
        bystander.close()
    assert dict(counted(server).failed) == {"Killed": 1, "MemoryError": 1}


def test_no_payload_is_ever_logged(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """The library would write every frame, where logs are kept in detail."""
    root = logging.getLogger()
    handler, level = logging.StreamHandler(), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with web_server() as server, raw_socket(at(server)) as connection:
            connection.sendall(ws_frame(b"MY SECRET WORD") + ws_frame(b"MY SECRET WORD", 1))
            with contextlib.suppress(OSError):
                while connection.recv(1000):
                    pass
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    heard = capfd.readouterr()
    assert "session" in heard.err
    assert "SECRET" not in heard.out + heard.err + caplog.text


# Where it may listen.


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "localhost", "::"])
def test_plain_pages_are_for_loopback(host: str, identity: Identity) -> None:
    with pytest.raises(ValueError, match="plain TCP is for loopback addresses"):
        Server(LOCAL, SERVICES, insecure=True, web=WebDoor(Address(host, 0), FILES))
    with pytest.raises(ValueError, match="needs TLS"):
        Server(LOCAL, SERVICES, web=WebDoor(LOCAL, FILES))


@pytest.mark.parametrize("origin", ["*", "null", "http://pages.example", "https://a.b/", "https://A.b", "a.b", ""])
def test_origins_that_are_none(origin: str) -> None:
    with pytest.raises(ValueError, match="an origin is https://HOST:PORT"):
        WebDoor(LOCAL, FILES, (origin,))


def test_an_address_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        door = WebDoor(Address("127.0.0.1", taken.getsockname()[1]), FILES)
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(OSError, match="in use"):
            Server(LOCAL, SERVICES, insecure=True, web=door)
        assert len(list(Path("/proc/self/fd").iterdir())) == before
