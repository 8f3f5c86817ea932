"""Budgets are shared by processes, counted before an answer, and kept from run to run."""

import multiprocessing
import resource
from pathlib import Path
from types import SimpleNamespace

import pytest

from ppspeech.errors import PeerGoneError, PpspeechError
from ppspeech.network import StreamChannel, Transcript, memory_pair
from ppspeech.network.channel.stream import Peer
from ppspeech.protocols import Kind
from ppspeech.service import QueryBudget
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server import stores
from ppspeech.service.server.book import Tally, Visitor
from ppspeech.service.server.session import Handler, run_session


def test_spending(tmp_path: Path) -> None:
    budget = QueryBudget(tmp_path / "deep" / "b.sqlite", limit=5)
    assert budget.left("m", "ann") == 5
    assert budget.spend("m", "ann", 3) == (True, 2)
    assert budget.spend("m", "ann", 3) == (False, 2)
    assert budget.spend("m", "bob", 5) == (True, 0)
    assert budget.spend("other", "ann", 5) == (True, 0)
    again = QueryBudget(tmp_path / "deep" / "b.sqlite", limit=4)
    assert again.left("m", "ann") == 1
    assert again.left("m", "bob") == 0
    free = QueryBudget(tmp_path / "deep" / "b.sqlite")
    assert free.spend("m", "bob", 1000) == (True, None)
    assert free.left("m", "bob") is None


class HangsUp:
    """A model whose clients leave in the middle of every answer."""

    offer = SimpleNamespace(fingerprint="m")

    def meet(self, _: object, __: object) -> dict[Ask, Handler]:
        return {Ask.VERIFY: Handler(lambda channel, _: channel.receive(1, 1))}


def test_an_answer_that_a_client_hangs_up_on_is_paid_for(tmp_path: Path) -> None:
    """Or else it looks at part of any number of answers."""
    budget = QueryBudget(tmp_path / "b.sqlite", limit=2)
    for left in (1, 0):
        here, there = memory_pair()
        here.send(Kind.REQUEST, Request(Ask.VERIFY).encode())
        here.close()
        with pytest.raises(PeerGoneError):
            run_session(HangsUp(), there, Tally(), budget)
        assert budget.left("m", "local") == left


def _run_without_room(path: Path) -> tuple[str, int]:
    """How a session ends, and how much its client is told, on a disk on which no file can grow or change."""
    budget = QueryBudget(path, limit=2)
    here, there = memory_pair()
    here.send(Kind.REQUEST, Request(Ask.VERIFY).encode())
    here.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
    record = Transcript(there)
    try:
        run_session(HangsUp(), record, Tally(), budget)
    except Exception as error:  # whatever it is: the point is that there is one
        return type(error).__name__, record.bytes_up
    return "finished", record.bytes_up


def test_what_cannot_be_counted_is_not_answered(tmp_path: Path) -> None:
    """A full disk is no free query."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        ended, told = pool.apply(_run_without_room, (tmp_path / "b.sqlite",))
    assert ended in ("OperationalError", "DatabaseError")
    assert told == 0
    assert QueryBudget(tmp_path / "b.sqlite", limit=2).left("m", "local") == 2


def _spend(path: Path, times: int) -> int:
    budget = QueryBudget(path, limit=100)
    return sum(budget.spend("m", "ann", 1)[0] for _ in range(times))


def test_processes_never_spend_more_than_there_is(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        spent = pool.starmap(_spend, [(tmp_path / "b.sqlite", 60)] * 3)
    assert sum(spent) == 100


def test_the_usual_budget_is_each_models_own(tmp_path: Path) -> None:
    budget = QueryBudget(tmp_path / "b.sqlite", limit="usual")
    assert budget.expect("small", 2) == 2
    assert budget.expect("large", 10**9) == 1_000_000
    assert budget.spend("small", "ann", 3) == (False, 2)
    assert budget.spend("large", "ann", 3) == (True, 999_997)
    assert budget.left("small", "ann") == 2
    assert QueryBudget(tmp_path / "c.sqlite").expect("small", 2) is None


def test_whoever_has_many_addresses_fills_no_disk_and_gains_no_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "MOST_CLIENTS", 10)
    budget = QueryBudget(tmp_path / "b.sqlite", limit=2)
    assert budget.spend("m", "ann", 1) == (True, 1)
    answered = [budget.spend("m", f"address:2001:db8:0:{number}::/64", 1)[0] for number in range(500)]
    assert sum(answered) == 9 + 2  # the rows that there were, and what all newcomers have together
    assert len(budget._table.rows("SELECT * FROM queries")) == 11
    assert budget.left("m", "bob") == 0
    assert budget.spend("m", "ann", 1) == (True, 0)  # who was here before is not touched
    assert budget.left("other", "bob") == 2


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        (Peer("2001:db8:0:7::1", None), "address:2001:db8:0:7::/64"),
        (Peer("2001:db8:0:7:ffff::2", None), "address:2001:db8:0:7::/64"),
        (Peer("::ffff:192.0.2.1", None), "address:192.0.2.1"),
        (Peer("192.0.2.1", "ab" * 32), f"certificate:{'ab' * 32}"),
        (Peer(None, None), "local"),
    ],
)
def test_a_subscriber_is_one_client(peer: Peer, client: str) -> None:
    """Else one IPv6 network of 2^64 addresses has as many budgets."""
    channel = object.__new__(StreamChannel)
    channel._stream = SimpleNamespace(peer=peer)  # type: ignore[assignment]
    channel.session = bytes(16)
    assert Visitor.of(channel).client == client


def test_what_cannot_be_a_budget(tmp_path: Path) -> None:
    for limit in (-1, 10**9):
        with pytest.raises(PpspeechError, match="budget"):
            QueryBudget(tmp_path / "b.sqlite", limit)
    (tmp_path / "no.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(PpspeechError, match="cannot hold"):
        QueryBudget(tmp_path / "no.sqlite")
