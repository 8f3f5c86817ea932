"""A server under load and under attack: sessions are apart, bounded, counted, and nothing stays behind."""

import contextlib
import inspect
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ppspeech.channel import Channel
from ppspeech.errors import PeerGoneError, ProtocolError
from ppspeech.network import (
    Address,
    Capacity,
    Counters,
    Limits,
    RunningServer,
    Server,
    Service,
    StreamChannel,
    connect,
    in_background,
)
from ppspeech.network.server import server as server_module
from ppspeech.network.server.load import Tries
from tests.network.conftest import QUICK, Identity, raw_hello

LOCAL = Address("127.0.0.1", 0)
STEPS = 4


def compare(channel: Channel, params: Any) -> None:
    """A toy with several steps: at each the client sends a number and learns whether the sum so far is above ours."""
    total = 0
    for _ in range(params["steps"]):
        total += int.from_bytes(channel.receive(1, size=8), "big")
        channel.send(2, bytes([total > 1000]) + total.to_bytes(8, "big"))


def hang(channel: Channel, params: Any) -> None:
    channel.send(1, b"")
    time.sleep(60)


def crash(channel: Channel, params: Any) -> None:
    os._exit(139)


def greedy(channel: Channel, params: Any) -> None:
    taken = bytearray(params["bytes"])
    channel.send(1, len(taken).to_bytes(8, "big"))


def faulty(channel: Channel, params: Any) -> None:
    secret = channel.receive(1, at_most=100)
    raise RuntimeError(f"SECRET {secret!r}")


def forks(channel: Channel, params: Any) -> None:
    """A program that leaves a process behind, which holds everything open."""
    left = os.fork()
    if left == 0:
        time.sleep(60)
        os._exit(0)
    channel.send(1, left.to_bytes(8, "big"))


SERVICES = {
    "compare": Service(compare),
    "fixed": Service(lambda channel, params: channel.send(1, b""), params={"steps": 1}),
    "hang": Service(hang),
    "crash": Service(crash),
    "greedy": Service(greedy),
    "faulty": Service(faulty),
    "forks": Service(forks),
}


def make_server(limits: Limits = QUICK, capacity: Capacity | None = None, **options: Any) -> Server:
    options = options or {"insecure": True}
    return Server(LOCAL, SERVICES, limits=limits, capacity=capacity or Capacity(grace_seconds=2), **options)


def ask(address: Address, numbers: list[int], **options: Any) -> list[bool]:
    """Run a whole session and check the sums, which would show a session mixed up with another."""
    options = options or {"insecure": True}
    found, total = [], 0
    with connect(address, "compare", {"steps": len(numbers)}, limits=QUICK, **options) as channel:
        for number in numbers:
            channel.send(1, number.to_bytes(8, "big"))
            answer = channel.receive(2, size=9)
            total += number
            assert int.from_bytes(answer[1:], "big") == total
            found.append(bool(answer[0]))
    return found


def say_and_hear(address: Address, protocol: str, params: dict[str, int]) -> bytes:
    with connect(address, protocol, params, insecure=True, limits=QUICK) as channel:
        channel.send(1, b"mine")
        return channel.receive(1, size=8)


def children(server: RunningServer) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]


def descriptors(server: RunningServer) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def settled(server: RunningServer) -> int:
    """Descriptors a server holds between sessions, once it has had its first."""
    assert ask(server.address, [1]) == [False]
    wait_until(lambda: not children(server))
    return descriptors(server)


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)


def counted(server: RunningServer) -> Counters:
    assert server.counters is not None
    return server.counters


def test_sessions_one_after_another() -> None:
    with in_background(make_server()) as server:
        for _ in range(3):
            assert ask(server.address, [400, 600, 1]) == [False, False, True]
        with connect(server.address, "fixed", {"steps": 1}, insecure=True) as channel:
            channel.receive(1, size=0)
    counts = counted(server)
    assert (counts.started, counts.finished, counts.refused, dict(counts.failed)) == (4, 4, 0, {})
    assert counts.bytes_received > 9 * (28 + 8)
    assert "4 finished, failed: none" in str(counts)


def test_sessions_over_tls(identity: Identity) -> None:
    with in_background(make_server(tls=identity.server)) as server, ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(ask, server.address, [990, i], tls=identity.client) for i in range(20)]
        assert [job.result() for job in jobs] == [[False, i > 10] for i in range(20)]
    assert counted(server).finished == 20


@pytest.mark.parametrize(
    ("protocol", "params"), [("nonesuch", {}), ("fixed", {"steps": 2}), ("fixed", {}), ("fixed", {"steps": True})]
)
def test_what_is_not_served_is_refused_without_a_reason(protocol: str, params: dict[str, object]) -> None:
    with in_background(make_server()) as server, pytest.raises(PeerGoneError):
        connect(server.address, protocol, params, insecure=True)
    assert dict(counted(server).failed) == {"WrongSessionError": 1}


def test_a_session_that_fails_hurts_no_other(capfd: pytest.CaptureFixture[str]) -> None:
    with in_background(make_server(capacity=Capacity(session_bytes=2**28))) as server:
        bystander = connect(server.address, "compare", {"steps": 2}, insecure=True, limits=QUICK)
        with bystander:
            bystander.send(1, bytes(8))
            bystander.receive(2, size=9)
            for protocol, params in [("crash", {}), ("greedy", {"bytes": 2**30}), ("faulty", {})]:
                with pytest.raises(PeerGoneError):
                    say_and_hear(server.address, protocol, params)
            assert int.from_bytes(say_and_hear(server.address, "greedy", {"bytes": 2**20}), "big") == 2**20
            bystander.send(1, bytes(8))
            bystander.receive(2, size=9)
    counts = counted(server)
    assert dict(counts.failed) == {"Killed": 1, "MemoryError": 1, "RuntimeError": 1}
    assert counts.finished == 2
    heard = capfd.readouterr()
    assert "SECRET" not in heard.out + heard.err


def test_what_is_new_is_taken_in_between_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all sessions that follow, seldom, and an error of it ends nothing."""
    monkeypatch.setattr(server_module, "REFRESH_SECONDS", 0.0)
    taken = [0]

    def refresh() -> None:
        taken[0] += 1
        if taken[0] == 2:
            raise RuntimeError("SECRET")

    def tell(channel: Channel, _: Any) -> None:
        channel.send(1, bytes(taken))

    def heard(server: RunningServer) -> int:
        with connect(server.address, "tell", {}, insecure=True, limits=QUICK) as channel:
            return channel.receive(1, size=1)[0]

    services = {"tell": Service(tell, {}, refresh), "hang": Service(hang)}
    with in_background(Server(Address("127.0.0.1", 0), services, insecure=True, limits=QUICK)) as server:
        assert [heard(server) for _ in range(3)] == [1, 2, 3]
    assert counted(server).finished == 3
    monkeypatch.setattr(server_module, "REFRESH_SECONDS", 100.0)
    taken[0] = 4
    with in_background(Server(Address("127.0.0.1", 0), services, insecure=True, limits=QUICK)) as server:
        assert [heard(server) for _ in range(3)] == [5, 5, 5]


def test_what_a_session_leaves_behind_is_ended() -> None:
    with in_background(make_server()) as server:
        with connect(server.address, "forks", {}, insecure=True) as channel:
            left = Path(f"/proc/{int.from_bytes(channel.receive(1, size=8), 'big')}/stat")
        wait_until(lambda: not left.exists() or left.read_text().rsplit(")", 1)[1].split()[0] == "Z")
        wait_until(lambda: not children(server))
    assert counted(server).finished == 1


CLIENT = """
import sys, time
from ppspeech.network import Address, connect
stop = int(sys.argv[2])
def pause(step):
    if step == stop:
        print("here", flush=True)
        time.sleep(60)
address = Address.parse(sys.argv[1])
if stop == 0:
    import socket
    connection = socket.create_connection((address.host, address.port))
    connection.sendall(b"P")
    pause(0)
channel = connect(address, "compare", {"steps": 3}, insecure=True)
for number in range(3):
    pause(2 * number + 1)
    channel.send(1, bytes(8))
    pause(2 * number + 2)
    channel.receive(2, size=9)
"""


def test_a_client_killed_at_each_step() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with in_background(make_server(replace(QUICK, message_seconds=60))) as server:
        before = settled(server)
        with connect(server.address, "compare", {"steps": 2}, insecure=True, limits=QUICK) as bystander:
            bystander.send(1, bytes(8))
            bystander.receive(2, size=9)
            clients = []
            for step in range(7):
                command = [sys.executable, "-c", CLIENT, str(server.address), str(step)]
                clients.append(subprocess.Popen(command, stdout=subprocess.PIPE, env=environment))
            for client in clients:
                assert client.stdout is not None
                assert client.stdout.readline() == b"here\n"
                client.kill()
                client.wait()
                client.stdout.close()
            wait_until(lambda: len(children(server)) == 1)
            bystander.send(1, bytes(8))
            bystander.receive(2, size=9)
        wait_until(lambda: not children(server))
        assert descriptors(server) == before
    counts = counted(server)
    assert counts.finished + sum(counts.failed.values()) == counts.started
    assert counts.started + counts.refused == 9
    assert counts.refused <= 1  # the one that had said a byte may be gone before it has a process
    # Killed before it reads the last answer, a client may leave the server content.
    assert counts.finished in {2, 3}
    assert set(counts.failed) <= {"PeerGoneError", "BadLengthError"}


def test_silent_slow_and_shouting_clients() -> None:
    limits = replace(QUICK, handshake_seconds=1.5, message_seconds=1.5)
    with in_background(make_server(limits)) as server:
        before = settled(server)
        where = (server.address.host, server.address.port)
        silent = [socket.create_connection(where) for _ in range(20)]
        stalled = [socket.create_connection(where) for _ in range(5)]
        for connection in stalled:
            connection.sendall(b"PS\x01")
        quiet = [socket.create_connection(where) for _ in range(5)]
        for connection in quiet:  # they say hello and then nothing
            raw_hello(connection, "compare", {"steps": 1})
        shouting = [socket.create_connection(where) for _ in range(5)]
        for connection in shouting:
            try:
                for _ in range(100):
                    connection.sendall(os.urandom(4096))
            except OSError:
                pass  # the server has hung up
        assert ask(server.address, [2000]) == [True]
        wait_until(lambda: not children(server) and descriptors(server) == before)
        for connection in silent + stalled + quiet + shouting:
            connection.close()
        assert ask(server.address, [2000]) == [True]
    counts = counted(server)
    assert counts.refused == 20
    assert counts.finished == 3
    assert dict(counts.failed) == {"PeerTimeoutError": 10, "BadTypeError": 5}


def test_a_session_keeps_no_connection_of_another() -> None:
    limits = Limits(handshake_seconds=1.5)
    with in_background(make_server(limits)) as server:
        before = settled(server)
        silent = socket.create_connection((server.address.host, server.address.port), timeout=10)
        wait_until(lambda: descriptors(server) == before + 1)
        with connect(server.address, "compare", {"steps": 1}, insecure=True) as running:
            assert silent.recv(1) == b""  # given up in time, though a younger process still runs
            running.send(1, bytes(8))
            running.receive(2, size=9)
        silent.close()


def call_from(host: str, server: RunningServer, said: bytes) -> socket.socket:
    """A connection from another address of this machine, and what it says first."""
    where = (server.address.host, server.address.port)
    connection = socket.create_connection(where, timeout=10, source_address=(host, 0))
    connection.sendall(said)
    return connection


def begun_from(host: str, server: RunningServer) -> StreamChannel:
    """A session that has begun, from another address of this machine, and says nothing more."""
    channel = connect(server.address, "compare", {"steps": 2}, insecure=True, limits=QUICK, source=host)
    channel.send(1, bytes(8))
    channel.receive(2, size=9)
    return channel


def test_stalled_handshakes_leave_places_for_others() -> None:
    capacity = Capacity(sessions=4, handshakes=2, waiting=50)
    with in_background(make_server(replace(QUICK, handshake_seconds=2), capacity)) as server:
        with connect(server.address, "compare", {"steps": 2}, insecure=True, limits=QUICK) as running:
            running.send(1, bytes(8))
            running.receive(2, size=9)
            stalled = [call_from(host, server, b"PS") for host in ("127.0.0.2", "127.0.0.3", "127.0.0.2")]
            wait_until(lambda: len(children(server)) == 3)  # the session and two handshakes
            assert ask(server.address, [2000]) == [True]
            running.send(1, bytes(8))
            running.receive(2, size=9)
        for connection in stalled:
            connection.close()


def test_a_full_server_lets_wait_and_then_refuses() -> None:
    capacity = Capacity(sessions=2, waiting=3, grace_seconds=0)
    with in_background(make_server(capacity=capacity)) as server:
        before = settled(server)
        running = [connect(server.address, "compare", {"steps": 1}, insecure=True, limits=QUICK) for _ in range(2)]
        with ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(ask, server.address, [i]) for i in range(3)]
            wait_until(lambda: descriptors(server) == before + 2 + 3)  # two pipes to children, three connections
            time.sleep(1.0)  # and the three have said something, so that none makes room for a newcomer
            with pytest.raises(PeerGoneError):
                ask(server.address, [1])
            assert len(children(server)) == 2
            for channel in running:
                channel.send(1, bytes(8))
                channel.receive(2, size=9)
                channel.close()
            assert [job.result() for job in waiting] == [[False]] * 3
    assert (counted(server).refused, counted(server).finished) == (1, 6)


def test_the_handshakes_of_one_address_leave_places_for_another() -> None:
    capacity = Capacity(sessions=8, handshakes=4, waiting=50)
    with in_background(make_server(replace(QUICK, handshake_seconds=5), capacity)) as server:
        stalled = [call_from("127.0.0.2", server, b"PS") for _ in range(20)]
        wait_until(lambda: len(children(server)) == 2)
        time.sleep(1.2)  # it has tries left again
        assert len(children(server)) == 2
        assert ask(server.address, [2000]) == [True]
        for connection in stalled:
            connection.close()


def test_the_sessions_of_one_address_leave_places_for_another() -> None:
    with in_background(make_server(capacity=Capacity(sessions=3, per_address=2, grace_seconds=0))) as server:
        crowd = [begun_from("127.0.0.2", server) for _ in range(2)]
        wait_until(lambda: len(children(server)) == 2)
        waiting = [call_from("127.0.0.2", server, b"PS") for _ in range(5)]
        time.sleep(0.3)
        assert len(children(server)) == 2  # the third place is not theirs, however long they wait
        assert ask(server.address, [2000]) == [True]
        wait_until(lambda: len(children(server)) == 2)
        for connection in (*crowd, *waiting):
            connection.close()


def test_who_stalls_gives_way_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "STALLED_SECONDS", 0.2)
    capacity = Capacity(sessions=4, handshakes=2, grace_seconds=0)
    with in_background(make_server(Limits(handshake_seconds=60), capacity)) as server:
        hosts = ("127.0.0.2", "127.0.0.3")
        half = call_from(hosts[0], server, b"PS")
        greeted = connect(server.address, "compare", {"steps": 1}, insecure=True, source=hosts[1])
        assert ask(server.address, [2000]) == [True]  # long before a handshake of 60 seconds is over
        half.close()
        greeted.close()
        others = [begun_from(host, server) for host in hosts]
        time.sleep(0.5)
        assert ask(server.address, [2000]) == [True]
        for other in others:
            other.send(1, bytes(8))
            other.receive(2, size=9)  # who has begun is not ended for anyone
            other.close()


def test_who_begins_again_and_again_is_let_in_now_and_then() -> None:
    """Garbage costs its sender nothing, and the server a process: twenty at once, and others all the while."""
    capacity = Capacity(sessions=16, handshakes=8, waiting=200, grace_seconds=0)
    with in_background(make_server(QUICK, capacity)) as server:
        began = time.monotonic()
        crowd = [call_from("127.0.0.2", server, b"GET / HTTP/1.1\r\n\r\n" + bytes(50)) for _ in range(60)]
        for number in range(10):
            assert ask(server.address, [2000, number]) == [True, True]  # no try is used up by who goes on
        seconds = time.monotonic() - began
        for connection in crowd:
            connection.close()
    counts = counted(server)
    assert counts.finished == 10
    assert 4 <= counts.failed["BadTypeError"] <= 4 + 2 * seconds + 1
    assert counts.refused >= 60 - counts.failed["BadTypeError"] - 1


def test_who_has_left_is_given_no_process() -> None:
    with in_background(make_server(capacity=Capacity(sessions=1, waiting=50, grace_seconds=0))) as server:
        running = begun_from("127.0.0.1", server)
        for _ in range(20):
            call_from("127.0.0.3", server, b"PS").close()
        time.sleep(0.3)
        running.close()
        assert ask(server.address, [2000]) == [True]
    counts = counted(server)
    assert counts.started == 2
    assert counts.refused == 20


def test_tries_come_back() -> None:
    tries = Tries(burst=3, rate=2.0)
    for left in (2, 1, 0):
        tries.take("a", 10.0)
        assert tries.left("a", 10.0) == left
    assert tries.left("b", 10.0) == 3
    assert tries.left("a", 10.5) == 1
    assert tries.left("a", 99.0) == 3
    tries.give_back("a", 10.0)
    assert tries.left("a", 10.0) == 1
    for number in range(5000):
        tries.take(f"address {number}", 20.0 + number)
    assert len(tries._left) <= 1001


def test_a_full_waiting_room_gives_up_one_of_the_largest_crowd() -> None:
    capacity = Capacity(sessions=1, waiting=6, grace_seconds=0)
    with in_background(make_server(replace(QUICK, handshake_seconds=5), capacity)) as server:
        running = begun_from("127.0.0.1", server)
        crowd = [call_from("127.0.0.2", server, b"PS") for _ in range(6)]
        time.sleep(0.3)  # they have all spoken, so that no silent one makes room
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask, server.address, [2000])
            with contextlib.suppress(ConnectionResetError):  # what it said was never read
                assert crowd[-1].recv(1) == b""  # the last of the crowd, and not the one who came after it
            running.close()
            for connection in crowd:
                connection.close()
            assert waiting.result() == [True]


def test_a_session_that_says_nothing_after_hello_is_ended() -> None:
    with in_background(make_server(Limits(), Capacity(opening_seconds=0.3))) as server:
        with connect(server.address, "compare", {"steps": 1}, insecure=True) as idle:
            wait_until(lambda: not children(server))
            with pytest.raises(PeerGoneError):
                idle.receive(2, size=9)
        with connect(server.address, "compare", {"steps": 2}, insecure=True) as slow:
            for _ in range(2):
                slow.send(1, bytes(8))
                slow.receive(2, size=9)
                time.sleep(0.4)  # later messages have the usual time


def test_a_program_that_hangs_is_ended() -> None:
    limits = replace(QUICK, session_seconds=0.3)
    with in_background(make_server(limits)) as server:
        with connect(server.address, "hang", {}, insecure=True, limits=QUICK) as channel:
            channel.receive(1, size=0)
            with pytest.raises(PeerGoneError):
                channel.receive(1, size=0)
        wait_until(lambda: not children(server))
    assert dict(counted(server).failed) == {"Killed": 1}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_graceful_stop_lets_sessions_finish(number: signal.Signals) -> None:
    with in_background(make_server(capacity=Capacity(grace_seconds=10))) as server:
        channel = connect(server.address, "compare", {"steps": 2}, insecure=True, limits=QUICK)
        channel.send(1, bytes(8))
        channel.receive(2, size=9)
        os.kill(server.pid, number)

        def refused() -> bool:
            try:
                connect(server.address, "compare", {"steps": 1}, insecure=True, limits=QUICK).close()
            except ProtocolError:
                return True
            return False

        wait_until(refused)
        channel.send(1, bytes(8))
        channel.receive(2, size=9)
        channel.close()
    assert counted(server).finished >= 1
    assert "Stopped" not in counted(server).failed


def test_a_stop_aborts_what_does_not_finish() -> None:
    with in_background(make_server(capacity=Capacity(grace_seconds=0.1))) as server:
        channel = connect(server.address, "compare", {"steps": 2}, insecure=True, limits=QUICK)
        os.kill(server.pid, signal.SIGTERM)
        with pytest.raises(PeerGoneError, match="aborted"):
            channel.receive(2, size=9)
    assert dict(counted(server).failed) == {"Stopped": 1}


def lies(said: bytes) -> Callable[[Channel, Any], None]:
    """A session in a client's hands, which writes to its parent what it likes."""

    def program(channel: Channel, params: Any) -> None:
        channel.send(1, bytes(8))
        above = next(each for each in inspect.stack(0) if each.function == "be_worker")
        os.write(above.frame.f_locals["report"], said)
        os._exit(0)

    return program


@pytest.mark.parametrize(
    "said",
    [
        b"[" * 4000 + b'"failure"',
        b'{"failure": null, "sent": 1e999, "received": 1}\n',
        b'{"failure": null, "sent": ' + b"9" * 4000 + b"}\n",
        b'{"failure": "rm -rf /\\n", "sent": 1, "received": 1}\n',
        b"\xff\n",
        b"\n",
    ],
)
def test_a_session_that_lies_to_its_server_ends_no_other(said: bytes) -> None:
    services = SERVICES | {"lies": Service(lies(said))}
    with in_background(Server(LOCAL, services, insecure=True, limits=QUICK)) as server:
        with connect(server.address, "lies", {}, insecure=True, limits=QUICK) as channel:
            channel.receive(1, size=8)
        assert ask(server.address, [2000]) == [True]
    assert dict(counted(server).failed) == {"Killed": 1}


def test_a_server_can_be_run_and_stopped_in_this_process() -> None:
    server = make_server()
    threading.Timer(0.2, server.stop).start()
    assert server.run().started == 0
    with pytest.raises(PeerGoneError):
        connect(server.address, "compare", {}, insecure=True)


@pytest.mark.parametrize("field", [{"sessions": 0}, {"waiting": 0}, {"handshakes": 0}, {"grace_seconds": -1}])
def test_capacity_must_be_positive(field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(field))):
        Capacity(**field)


def test_a_server_stopped_at_once_still_reports() -> None:
    for _ in range(5):
        with in_background(make_server()) as server:
            pass
        assert counted(server).started == 0


def test_a_server_refuses_nothing_to_serve_and_plain_tcp() -> None:
    with pytest.raises(ValueError, match="service"):
        Server(LOCAL, {}, insecure=True)
    with pytest.raises(ValueError, match="TLS"):
        Server(LOCAL, SERVICES)


def rss(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.slow
def test_two_hundred_sessions_at_once_are_not_mixed_up(identity: Identity) -> None:
    count, rounds = 200, 5
    limits = Limits(handshake_seconds=60, message_seconds=60)
    capacity = Capacity(handshakes=2 * count, per_address=count, opening_seconds=60)  # all from one address
    with in_background(make_server(limits, capacity, tls=identity.server)) as server:
        ask(server.address, [1], tls=identity.client)
        wait_until(lambda: not children(server))
        before, open_before = rss(server.pid), descriptors(server)
        for _ in range(2):
            with ThreadPoolExecutor(20) as pool:
                channels = list(
                    pool.map(
                        lambda _: connect(
                            server.address, "compare", {"steps": rounds}, tls=identity.client, limits=limits
                        ),
                        range(count),
                    )
                )
            wait_until(lambda: len(children(server)) == count)
            for step in range(rounds):  # every session is in the middle while all the others take a step
                for number, channel in enumerate(channels):
                    channel.send(1, (number * 10 + step).to_bytes(8, "big"))
                for number, channel in enumerate(channels):
                    total = sum(number * 10 + past for past in range(step + 1))
                    assert channel.receive(2, size=9) == bytes([total > 1000]) + total.to_bytes(8, "big")
            for channel in channels:
                channel.close()
            wait_until(lambda: not children(server))
        assert descriptors(server) == open_before
        assert rss(server.pid) - before < 2 * 2**20
    assert counted(server).finished == 2 * count + 1
