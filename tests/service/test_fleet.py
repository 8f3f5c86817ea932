"""Real servers, a real PostgreSQL: one budget, servers that are killed, a database that is lost, an end in order."""

import contextlib
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.evidence.bench.local_postgres import LocalPostgres
from ppspeech.evidence.bench.scale_store import FleetServer, counted, fleet_server, spend_through_two
from ppspeech.network import Limits, make_certificate
from ppspeech.service import BudgetSpentError, Client, NotNowError, connect, open_door, server_health
from ppspeech.service.client.session import ClientSession
from ppspeech.service.requests import Ask, Request, send_request
from tests.service.database import database, emptied, key_file

PATIENT = Limits(handshake_seconds=60, message_seconds=3600)


@pytest.fixture(scope="module")
def running() -> Iterator[LocalPostgres]:
    with database() as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path, running: LocalPostgres) -> Path:
    with emptied(running)._connected() as ask:
        ask("DROP SCHEMA ppspeech CASCADE")  # its servers have a key of their own
    (tmp_path / "text.txt").write_text("seven nine\nfour two\n")
    key_file(tmp_path)
    make_certificate(tmp_path / "certificate.pem", tmp_path / "key.pem")
    return tmp_path


def server(folder: Path, running: LocalPostgres, *more: str) -> contextlib.AbstractContextManager[FleetServer]:
    shared = ("--store", running.address, "--store-key", folder / "store.key", "--metrics", "127.0.0.1:0")
    return fleet_server(folder, folder / "text.txt", *shared, *more)


def client_of(at: FleetServer) -> Client:
    return connect(at.address, pin=at.pin, task="text", limits=PATIENT)


def look(at: FleetServer, path: str) -> tuple[int, str]:
    where = at.said[-1].split()[2].removesuffix(",").removesuffix("/metrics")
    try:
        with urllib.request.urlopen(f"{where}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def begun(client: Client) -> ClientSession:
    """A session in which the server has counted a question and waits for it."""
    client.search("two")
    session = client.session(lambda _: None)  # the one that there is
    send_request(session._channel, Request(Ask.SEARCH))
    return session


def until(said: Callable[[], bool]) -> None:
    """Wait for what must come, however busy the machine is."""
    ends = time.monotonic() + 120
    while not said():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_one_budget_through_two_servers_and_a_kill(folder: Path, running: LocalPostgres) -> None:
    """An interrupted question counts as spent; nothing else is missing, and nothing is answered that was not paid."""
    with (
        server(folder, running, "--budget", "6") as first,
        server(folder, running, "--budget", "6") as second,
        client_of(first) as asking,
    ):
        session = begun(asking)  # one answered, one begun
        assert look(first, "/healthz")[0] == 200
        assert look(first, "/elsewhere")[0] == 404
        with client_of(second) as other:
            assert other.search("nine").value == [0]
            assert counted(running) == 3
            first.kill()
            with pytest.raises(ProtocolError):
                session._channel.receive(1, at_most=1000)
            assert [other.search("nine").value for _ in range(3)] == [[0]] * 3
            with pytest.raises(BudgetSpentError):
                other.search("nine")
        assert counted(running) == 6
        health = server_health(open_door(second.address, pin=second.pin))
        assert health["all_servers"]["queries"] >= health["queries"] == 4
        until(lambda: is_gone(first))


def is_gone(killed: FleetServer) -> bool:
    """Whether who watches has gone with the server that was killed."""
    try:
        look(killed, "/healthz")
    except (urllib.error.URLError, ConnectionError):
        return True
    return False


@pytest.mark.slow
def test_many_sessions_lose_nothing(running: LocalPostgres, folder: Path) -> None:
    assert folder.is_dir()
    spent = spend_through_two(running, sessions=8, budget=12)
    assert spent.counted == spent.budget == 12
    assert (spent.lost, spent.unpaid) == (0, 0)
    assert spent.answered + spent.interrupted >= 12
    assert spent.refused > 0


def test_a_lost_database_is_told_and_an_end_is_in_order(running: LocalPostgres, folder: Path) -> None:
    with server(folder, running, "--budget", "5", "--drain", "60") as at, client_of(at) as client:
        assert client.search("nine").value == [0]
        assert look(at, "/readyz") == (200, "ok\n")
        running.stop()
        try:
            with pytest.raises(NotNowError, match="cannot count"):
                client.search("nine")
            with pytest.raises(NotNowError, match="try again in a while"):
                client_of(at)
            assert look(at, "/healthz")[0] == 200
            assert "ppspeech_store_up 0.0" in look(at, "/metrics")[1]
            until(lambda: look(at, "/readyz") == (503, "the store cannot be reached\n"))
        finally:
            running.start()
        assert client.search("nine").value == [0]  # in the same session
        assert counted(running) == 2
        assert 'ppspeech_queries_unable_total{outcome="finished",protocol="describe"} 1.0' in look(at, "/metrics")[1]
        end_in_order(at, client)
    log = "".join(path.read_text() for path in folder.glob("log-*"))
    assert running.passfile.read_text().split(":")[4].strip() not in log + "".join(at.said)


def end_in_order(at: FleetServer, client: Client) -> None:
    """Not ready first, nobody new, who is inside is answered, and then it ends, and well."""
    at.process.send_signal(signal.SIGTERM)
    until(lambda: look(at, "/readyz") == (503, "draining\n"))
    assert look(at, "/healthz") == (200, "ok\n")
    with pytest.raises((ProtocolError, OSError, PpspeechError)):
        client_of(at)
    assert client.search("two").value == [1]
    assert at.process.poll() is None
    client.close()
    assert at.process.wait(60) == 0


def test_an_end_has_a_bound(running: LocalPostgres, folder: Path) -> None:
    """A client that stays is ended."""
    with server(folder, running, "--drain", "0") as at, client_of(at) as client:
        client.search("nine")
        at.process.send_signal(signal.SIGTERM)
        assert at.process.wait(60) == 0
        with pytest.raises(ProtocolError):
            client.search("nine")
