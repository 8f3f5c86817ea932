"""Files of one machine and a database of many keep the same promises; a database is given nothing it could read."""

import contextlib
import multiprocessing
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench.local_postgres import LocalPostgres
from ppspeech.network import Board
from ppspeech.protocols.speakers import EncryptedGallery, GalleryPlan, Keeper, LoginTerms
from ppspeech.service import QueryBudget
from ppspeech.service.login.accounts import Accounts
from ppspeech.service.login.digits import kept_digits
from ppspeech.service.login.seal import Template, new_key, open_sealed, seal
from ppspeech.service.metrics import Exposition
from ppspeech.service.requests import NOT_NOW, Ask, Request
from ppspeech.service.server import stores
from ppspeech.service.server.book import SessionBook, Tally
from ppspeech.service.server.session import Handler, run_session
from ppspeech.service.server.stores import Gallery, SealedGalleries
from ppspeech.service.store import (
    MIGRATIONS,
    Place,
    PostgresStore,
    StoreAddress,
    StoreLostError,
    StoreSeal,
    open_store,
    refuse_password,
    table_at,
    write_store_key,
)
from ppspeech.service.store import postgres as postgres_file
from ppspeech.service.store.address import Tls
from ppspeech.service.store.schema import migrate
from ppspeech.storage import Ask as Asking
from tests.fuzz.door import Says
from tests.service.database import Way, database, emptied, key_file

ANN, BOB = np.eye(3)[0], np.eye(3)[1]


@pytest.fixture(scope="module")
def running() -> Iterator[LocalPostgres]:
    with database() as started:
        yield started


@pytest.fixture
def store(running: LocalPostgres) -> PostgresStore:
    return emptied(running)


@pytest.fixture(params=["file", "database"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Place]:
    """Where a table of a name is."""
    if request.param == "file":
        return lambda name: tmp_path / f"{name}.sqlite"
    held = emptied(request.getfixturevalue("running"))
    return lambda _: held


# What both promise.


def test_budgets(place: Callable[[str], Place]) -> None:
    budget = QueryBudget(place("b"), limit=5)
    budget.expect("m", 3)
    assert budget.left("m", "ann") == 5
    assert budget.spend("m", "ann", 3) == (True, 2)
    assert budget.spend("m", "ann", 3) == (False, 2)
    assert budget.spend("m", "bob", 5) == (True, 0)
    again = QueryBudget(place("b"), limit=4)
    assert (again.left("m", "ann"), again.left("m", "bob")) == (1, 0)
    assert budget.sums("m") == (8, 2, 1)
    assert budget.sums("other") == (0, 0, 0)
    assert QueryBudget(place("b")).spend("m", "bob", 1000) == (True, None)


def test_newcomers_share_one_row(place: Callable[[str], Place], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MOST_CLIENTS", 3)
    budget = QueryBudget(place("b"), limit=2)
    answered = [budget.spend("m", f"address:{number}", 1)[0] for number in range(12)]
    assert sum(answered) == 3 + 2
    assert budget.left("m", "somebody") == 0


def _spend(place: Place, times: int) -> int:
    budget = QueryBudget(place, limit=40)
    return sum(budget.spend("m", "ann", 1)[0] for _ in range(times))


def test_processes_spend_one_budget_to_the_last_query(place: Callable[[str], Place]) -> None:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        spent = pool.starmap(_spend, [(place("b"), 20)] * 3)
    assert sum(spent) == 40
    assert QueryBudget(place("b"), limit=40).left("m", "ann") == 0


def test_transactions_are_alone_whatever_they_are_about(place: Callable[[str], Place]) -> None:
    """Two that read before either writes: both count, though they do not wait for one lock."""
    table = table_at(place("t"), "queries", "model TEXT, client TEXT, used INTEGER", "counts")
    table.alone(lambda ask: ask("INSERT INTO queries VALUES ('m', 'c', 0)"))
    meeting = threading.Barrier(2)

    def count(name: str) -> None:
        def work(ask: Asking) -> None:
            ((used,),) = ask("SELECT used FROM queries WHERE model = 'm'")
            if isinstance(place("t"), PostgresStore):  # a file lets the second wait before it reads
                with contextlib.suppress(threading.BrokenBarrierError):  # done again, alone
                    meeting.wait(20)
                meeting.abort()
            ask("UPDATE queries SET used = ? WHERE model = 'm'", used + 1)

        table.alone(work, name)

    threads = [threading.Thread(target=count, args=(name,)) for name in ("one", "another")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert table.rows("SELECT used FROM queries") == [(2,)] or table.rows("SELECT used FROM queries") == [[2]]


def test_an_error_undoes_all_of_it(place: Callable[[str], Place]) -> None:
    table = table_at(place("t"), "queries", "model TEXT, client TEXT, used INTEGER", "counts")

    def work(ask: Asking) -> None:
        ask("INSERT INTO queries VALUES ('m', 'c', 1)")
        raise PpspeechError("no")

    with pytest.raises(PpspeechError, match=r"^no$"):
        table.alone(work)
    assert not table.rows("SELECT * FROM queries")


def test_galleries(place: Callable[[str], Place]) -> None:
    gallery = Gallery(place("g"), "m", places=2, features=3)
    assert {gallery.enroll("ann", ANN), gallery.enroll("böb", BOB)} == {0, 1}
    assert gallery.enroll("ann", BOB) is None
    assert gallery.enroll("cy", BOB) is None
    known = Gallery(place("g"), "m", 2, 3).load()
    assert sorted(known.names) == ["ann", "böb"]
    assert known.templates[known.names.index("ann")].tolist() == ANN.tolist()
    assert not Gallery(place("g"), "other", 2, 3).load()


def made_gallery() -> EncryptedGallery:
    return Keeper(GalleryPlan(3, 2), np.eye(3)[:2], 0.5).publish()


def test_galleries_of_others(place: Callable[[str], Place]) -> None:
    kept, made = SealedGalleries(place("s"), "m", GalleryPlan(3, 2)), made_gallery()
    assert kept.put("family", "ann", made)
    assert not kept.put("family", "bob", made)
    assert kept.put("family", "ann", made)
    found = kept.get("family")
    assert found is not None
    assert (found.public_key, found.templates) == (made.public_key, made.templates)
    assert kept.get("others") is None


def test_accounts(place: Callable[[str], Place]) -> None:
    now = [1000.0]
    accounts = Accounts(place("a"), "space", 2, 100.0, lambda: now[0])
    assert accounts.enroll("ann", b"sealed")
    assert not accounts.enroll("ann", b"other")
    assert accounts.sealed("ann") == b"sealed"
    assert accounts.sealed("bob") is None
    assert [accounts.begin("ann") for _ in range(3)] == [0, 0, 100]
    now[0] += 101
    assert accounts.begin("ann") == 0
    accounts.succeeded("ann")
    assert accounts.begin("ann") == 0


def test_servers_hear_digits_alike(store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second server uses what the first has learned, to the last bit, and the database cannot read it."""
    learned = iter([(np.full(3, 0.25), np.eye(3)), (np.full(3, 0.5), np.eye(3))])
    monkeypatch.setattr("ppspeech.service.login.digits.learn_digits", lambda: next(learned))
    (tmp_path / "other").mkdir()
    first = kept_digits(tmp_path, store)
    second = kept_digits(tmp_path / "other", store)
    assert [each.tolist() for each in first] == [each.tolist() for each in second]
    assert first[0].tolist() == [0.25] * 3
    assert b"projection" not in everything(store)


# What a database learns.


def everything(store: PostgresStore) -> bytes:
    """All that is in it, as whoever runs it sees it."""
    tables = ("facts", "queries", "sessions", "speakers", "sealed", "accounts", "kept")
    with store._connected() as ask:
        rows = [ask(f"SELECT * FROM {table}") for table in tables]
    seen = b""
    for value in (value for table in rows for row in table for value in row):
        seen += value if isinstance(value, bytes) else str(value).encode()
    return seen


def test_a_database_sees_no_name_and_no_template(store: PostgresStore) -> None:
    template = np.array([0.36, 0.48, 0.8])
    Gallery(store, "m", 2, 3).enroll("annabelle", template)
    theirs = made_gallery()
    SealedGalleries(store, "m", GalleryPlan(3, 2)).put("familynames", "certificate:abcdef", theirs)
    Accounts(store, "space").enroll("annabelle", b"under her own key")
    QueryBudget(store, 5).spend("m", "address:192.0.2.77", 1)
    seen = everything(store)
    secret = (b"annabelle", b"familynames", b"abcdef", b"192.0.2.77", template.astype("<f4").tobytes()[:8])
    for each in (*secret, theirs.templates[:64], theirs.public_key[:64]):
        assert each not in seen


def test_a_database_does_not_see_who_is_the_same_elsewhere(store: PostgresStore) -> None:
    """One name in two tables, of two models, as a client and as an owner: no value comes twice."""
    for model in ("m", "n"):
        QueryBudget(store, 5).spend(model, "ann", 1)
        Gallery(store, model, 2, 3).enroll("ann", ANN)
        SealedGalleries(store, model, GalleryPlan(3, 2)).put("ann", "ann", made_gallery())
        Accounts(store, model).enroll("ann", b"under her own key")
    with store._connected() as ask:
        columns = ("client FROM queries", "name FROM speakers", "name FROM sealed", "owner FROM sealed")
        tags = [tag for each in (*columns, "name FROM accounts") for (tag,) in ask(f"SELECT {each}")]
    assert len(tags) == len(set(tags)) == 10


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE speakers SET template = set_byte(template, 40, get_byte(template, 40) # 1)",
        "UPDATE speakers SET place = 1 - place",
        "UPDATE speakers SET model = 'other'",
        "UPDATE speakers SET name = 'f00f'",
        "UPDATE speakers SET template = 'short'",
    ],
)
def test_a_row_that_a_database_changes_is_not_used(store: PostgresStore, change: str) -> None:
    Gallery(store, "m", 2, 3).enroll("ann", ANN)
    with store._connected() as ask:
        ask(change)
    with pytest.raises(PpspeechError, match="row of the store"):
        Gallery(store, "other" if "other" in change else "m", 2, 3).load()


def test_a_database_does_not_let_people_in(store: PostgresStore) -> None:
    """It knows how templates of log-ins are sealed, under each person's own key, and has a key of its own."""
    accounts, terms = Accounts(store, "space"), LoginTerms(2, 2)
    template = Template(np.eye(2)[0], np.ones((10, 2)) / np.sqrt(2))
    own, theirs = new_key(), new_key()
    assert accounts.enroll("ann", seal(own, "ann", "space", template))
    assert accounts.enroll("bob", seal(theirs, "bob", "space", template))
    kept = accounts.sealed("ann")
    assert kept is not None
    assert open_sealed(own, "ann", "space", kept, terms) is not None
    with store._connected() as ask:  # each has the other's row
        ask("UPDATE accounts AS a SET sealed = b.sealed FROM accounts AS b WHERE a.name <> b.name")
    with pytest.raises(PpspeechError, match="row of the store"):
        accounts.sealed("ann")
    with store._connected() as ask:
        ask("UPDATE accounts SET sealed = ?", seal(theirs, "ann", "space", template))
    with pytest.raises(PpspeechError, match="row of the store"):
        accounts.sealed("ann")


def test_another_key_is_refused(running: LocalPostgres, store: PostgresStore) -> None:
    with pytest.raises(PpspeechError, match="another key"):
        PostgresStore.open(store.address, StoreSeal.under(bytes(31) + b"1"))
    assert PostgresStore.open(store.address, store.seal).is_up()
    assert running.passfile.read_text().split(":")[4].strip() not in repr(store) + str(store.address)


# A schema with numbered steps.


def test_a_database_is_brought_up_step_by_step(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with store._connected() as ask:
        assert ask("SELECT number FROM migrations ORDER BY number") == [[n + 1] for n in range(len(MIGRATIONS))]
        ask("DROP SCHEMA ppspeech CASCADE")
    monkeypatch.setattr("ppspeech.service.store.schema.MIGRATIONS", MIGRATIONS[:1])
    early = PostgresStore.open(store.address, store.seal)
    QueryBudget(early, 5).spend("m", "ann", 2)
    monkeypatch.undo()
    later = PostgresStore.open(store.address, store.seal)
    assert QueryBudget(later, 5).left("m", "ann") == 3
    assert Gallery(later, "m", 2, 3).enroll("ann", ANN) is not None
    with later._connected() as ask:
        assert migrate(ask) == 0
        ask("INSERT INTO migrations (number) VALUES (99)")
    with pytest.raises(PpspeechError, match=r"schema 99.*newer"):
        PostgresStore.open(store.address, store.seal)


def _open(address: StoreAddress) -> bool:
    return PostgresStore.open(address, StoreSeal.under(bytes(32))).is_up()


def test_servers_that_start_together_bring_it_up_once(store: PostgresStore) -> None:
    with store._connected() as ask:
        ask("DROP SCHEMA ppspeech CASCADE")
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.map(_open, [store.address] * 4) == [True] * 4


def test_who_owns_the_schema_needs_no_other_right(store: PostgresStore) -> None:
    """Whoever runs the database makes the schema, for a user who may make none."""
    with store._connected() as ask:
        ask("DROP SCHEMA ppspeech CASCADE")
        ask("CREATE ROLE servers LOGIN PASSWORD 'hushhush'")
        ask("CREATE SCHEMA ppspeech AUTHORIZATION servers")
    for _ in range(2):
        theirs = PostgresStore.open(replace(store.address, user="servers", password="hushhush"), store.seal)
        assert QueryBudget(theirs, limit=5).spend("m", "ann", 1)[0]
    assert QueryBudget(store, limit=5).left("m", "ann") == 3


# A database that is lost.


def test_a_count_whose_end_was_not_heard_counts_once(store: PostgresStore) -> None:
    """The connection is cut after COMMIT has gone out and before the answer is in: the receipt says that it counts."""
    way = Way(store.address.port, cut_after=b"COMMIT")
    budget = QueryBudget(replace(store, address=replace(store.address, port=way.port)), limit=5)
    assert budget.spend("m", "ann", 2) == (True, 3)
    assert way.cuts == 1
    assert QueryBudget(store, limit=5).left("m", "ann") == 3
    way.close()


def test_a_count_that_was_cut_before_its_end_does_not_count(store: PostgresStore) -> None:
    way = Way(store.address.port, cut_after=b"INSERT INTO queries")
    budget = QueryBudget(replace(store, address=replace(store.address, port=way.port)), limit=5)
    with pytest.raises(StoreLostError):
        budget.spend("m", "ann", 2)
    assert way.cuts == 1
    assert QueryBudget(store, limit=5).left("m", "ann") == 5
    way.close()


def test_what_cannot_be_known_is_not_spent(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers any more when the receipt is asked for: no yes is made up."""
    monkeypatch.setattr(postgres_file, "PATIENCE_SECONDS", 0.3)
    way = Way(store.address.port, cut_after=b"COMMIT")
    table = replace(store, address=replace(store.address, port=way.port)).table("queries")

    def work(ask: Asking) -> int:
        way.shut()
        return len(ask("INSERT INTO queries VALUES ('m', 'c', 1)"))

    with pytest.raises(StoreLostError):
        table.alone(work)
    way.close()


def test_what_a_vanished_server_held_is_free_again(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without power says no goodbye: the database ends its transaction, and gives up its lock."""
    monkeypatch.setitem(postgres_file.VANISHED, "idle_in_transaction_session_timeout", "1s")
    begun, over = threading.Event(), threading.Event()

    def vanish(ask: Asking) -> None:
        ask("INSERT INTO queries VALUES ('m', 'c', 7)")
        begun.set()
        over.wait(60)

    def hold() -> None:
        with contextlib.suppress(StoreLostError):
            store.table("queries").alone(vanish, "ann")

    held = threading.Thread(target=hold)
    held.start()
    assert begun.wait(60)
    assert store.table("queries").alone(lambda ask: ask("SELECT used FROM queries"), "ann") == []
    over.set()
    held.join()


class Told(Says):
    """A client that says these messages, and keeps what it is told."""

    def __init__(self, *messages: bytes) -> None:
        super().__init__(*messages)
        self.heard: list[bytes] = []

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        self.heard.append(bytes(payload))


def test_what_cannot_be_counted_is_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise StoreLostError("gone")

    monkeypatch.setattr(QueryBudget, "spend", lost)
    answered: list[object] = []
    handlers = {Ask.WORDS: Handler(lambda *_: answered.append(1))}
    served: Any = SimpleNamespace(offer=SimpleNamespace(fingerprint="m"), meet=lambda *_: handlers)
    tally, client = Tally(), Told(Request(Ask.WORDS).encode(), Request(Ask.BYE).encode())
    run_session(served, client, tally, QueryBudget(tmp_path / "b.sqlite", 5))
    assert (answered, tally.unable, tally.queries) == ([], 1, 0)
    assert client.heard == [struct.pack(">BI", 0, NOT_NOW)]


def test_pings_do_not_ask_the_store_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They measure the way between client and server, by which the client chooses how to ask."""
    asked, left = [], QueryBudget.left

    def counted(*of: Any) -> int | None:
        asked.append(of)
        return left(*of)

    monkeypatch.setattr(QueryBudget, "left", counted)
    served: Any = SimpleNamespace(
        offer=SimpleNamespace(fingerprint="m"), meet=lambda *_: {Ask.WORDS: Handler(lambda *_: None)}
    )
    ping, word = Request(Ask.PING).encode(), Request(Ask.WORDS).encode()
    client = Told(ping, ping, ping, word, ping, word, Request(Ask.BYE).encode())
    run_session(served, client, Tally(), QueryBudget(tmp_path / "b.sqlite", 5))
    assert len(asked) == 1
    assert client.heard == [struct.pack(">BI", 1, left) for left in (5, 5, 5, 4, 4, 3)]


def test_who_watches_does_not_wait_for_a_store_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question to one that does not answer takes as long as Prometheus waits for all of them."""
    asked: list[str] = []

    def sums(_: QueryBudget, model: str) -> tuple[int, int, int]:
        asked.append(model)
        return 0, 0, 0

    monkeypatch.setattr(QueryBudget, "sums", sums)
    book, budget = SessionBook(tmp_path / "s.sqlite"), QueryBudget(tmp_path / "b.sqlite")
    for is_up in (False, True):
        exposition = Exposition(Board(), book, budget, [("words", "m")], lambda: is_up)  # noqa: B023 - asked at once
        found = {each.name: [sample.value for sample in each.samples] for each in exposition.collect()}
        assert found["ppspeech_store_up"] == [is_up]
        assert len(asked) == ("ppspeech_budget_spent" in found) == is_up


def test_a_full_database_is_waited_for(store: PostgresStore) -> None:
    """40 connections, and 60 who want one at a time."""
    results: list[tuple[bool, int | None]] = []
    budget = QueryBudget(store, limit=50)
    threads = [threading.Thread(target=lambda: results.append(budget.spend("m", "ann", 1))) for _ in range(60)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(done for done, _ in results) == 50
    assert len(results) == 60


# Addresses.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("postgresql://ann@db.example:5433/words", "postgresql://ann@db.example:5433/words verify-full"),
        ("postgres://ann@127.0.0.1/words", "postgresql://ann@127.0.0.1:5432/words disable"),
        ("postgresql://ann@[::1]/words", "postgresql://ann@[::1]:5432/words disable"),
        ("postgresql://a%40b:p%2Fw@db/words?sslmode=require", "postgresql://a@b@db:5432/words require"),
        ("postgresql://ann@/words?host=/run/postgresql", "postgresql://ann@/run/postgresql:5432/words disable"),
        ("postgresql://ann@db", "postgresql://ann@db:5432/ann verify-full"),
        ("postgresql://ann@db?sslmode=verify-ca&sslrootcert=ca.pem", "postgresql://ann@db:5432/ann verify-ca"),
        ("postgresql://ann@127.0.0.1?sslrootcert=ca.pem", "postgresql://ann@127.0.0.1:5432/ann verify-full"),
    ],
)
def test_addresses(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "hushhush")
    read = StoreAddress.parse(text)
    assert f"{read} {read.tls}" == said
    assert read.password == ("p/w" if "p%2Fw" in text else "hushhush")
    assert "hushhush" not in repr(read)
    assert "p/w" not in repr(read)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mysql://ann:hushhush@db/words", "postgresql://USER"),
        ("postgresql://ann:hushhush@db:port/words", "cannot be read"),
        ("postgresql://ann:hushhush@db:99999/words", "cannot be read"),
        ("postgresql://ann:hushhush@db/words?sslmode=prefer", "falls back"),
        ("postgresql://ann:hushhush@db/words?options=-c", "not known: 'options'"),
        ("postgresql://ann:hushhush@db/words?sslmode=verify-ca", "give one to anybody: say whose"),
        ("postgresql://ann:hushhush@db/words?sslmode=require&sslrootcert=ca.pem", "require looks at no certificate"),
        ("postgresql://ann:hushhush@[::1]/words?sslmode=disable&sslrootcert=ca.pem", "disable looks at no certificate"),
        ("postgresql://ann:hushhush@db/words#there", "postgresql://USER"),
        ("postgresql://ann:hushhush@db/" + "w" * 64, "63 characters"),
        ("postgresql://ann:hushhush@[db/words", "cannot be read"),
        ("@no such file", "no such file"),
        ("", "postgresql://USER"),
    ],
)
def test_what_is_no_address_is_refused_without_its_password(text: str, words: str) -> None:
    with pytest.raises(PpspeechError, match=words) as refused:
        StoreAddress.parse(text)
    assert "hushhush" not in str(refused.value)


def test_passwords_come_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    passwords = tmp_path / "pgpass"
    passwords.write_text("# ours\nother:*:*:*:no\ndb:5432:*:ann:a\\:b\n*:*:*:*:last\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    assert StoreAddress.parse("postgresql://ann@db/words").password == "a:b"
    assert StoreAddress.parse("postgresql://bob@db/words").password == "last"
    whole = tmp_path / "address"
    whole.write_text("postgresql://ann:inside@db/words\n")
    whole.chmod(0o600)
    assert StoreAddress.parse(f"@{whole}").password == "inside"
    for each, text in ((passwords, "postgresql://ann@db/words"), (whole, f"@{whole}")):
        each.chmod(0o644)
        with pytest.raises(PpspeechError, match="everybody can read"):
            StoreAddress.parse(text)
        each.chmod(0o600)


def test_a_password_on_a_command_line_is_refused() -> None:
    with pytest.raises(PpspeechError, match="PGPASSFILE") as refused:
        refuse_password("postgresql://ann:hushhush@db/words")
    assert "hushhush" not in str(refused.value)
    assert refuse_password("postgresql://ann@db:5432/words") == "postgresql://ann@db:5432/words"


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_tls_that_is_asked_for_is_not_left_out(running: LocalPostgres, mode: Tls) -> None:
    """This database has none."""
    address = replace(StoreAddress.parse(running.address), tls=mode)
    with pytest.raises(StoreLostError) as refused:
        PostgresStore.open(address, StoreSeal.under(bytes(32)))
    assert running.passfile.read_text().split(":")[4].strip() not in str(refused.value)


def test_a_wrong_password_is_told_without_it(running: LocalPostgres) -> None:
    address = replace(StoreAddress.parse(running.address), password="hushhush")
    with pytest.raises(PpspeechError, match=r"28P01.*password authentication failed") as refused:
        PostgresStore.open(address, StoreSeal.under(bytes(32)))
    assert "hushhush" not in str(refused.value)


def test_keys(tmp_path: Path) -> None:
    write_store_key(tmp_path / "new" / "k")
    seal = StoreSeal.read(tmp_path / "new" / "k")
    assert seal.open(seal.seal(b"voice", "row 1"), "row 1") == b"voice"
    assert seal.seal(b"voice", "row 1") != seal.seal(b"voice", "row 1")
    with pytest.raises(PpspeechError, match="changed"):
        seal.open(seal.seal(b"voice", "row 1"), "row 2")
    assert (tmp_path / "new" / "k").read_text().strip() not in repr(seal)
    with pytest.raises(PpspeechError, match="already"):
        write_store_key(tmp_path / "new" / "k")
    (tmp_path / "new" / "k").chmod(0o604)
    with pytest.raises(PpspeechError, match="everybody can read"):
        StoreSeal.read(tmp_path / "new" / "k")
    (tmp_path / "no").write_text("no key")
    (tmp_path / "no").chmod(0o600)
    with pytest.raises(PpspeechError, match="holds no key"):
        StoreSeal.read(tmp_path / "no")


@pytest.mark.parametrize(
    ("address", "key", "words"),
    [
        ("folder", True, "--state"),
        ("postgresql://ann@127.0.0.1:1/words", False, "--store-key"),
        ("postgresql://ann@127.0.0.1:1/words", True, "cannot be reached"),
        (None, True, "--store postgresql"),
    ],
)
def test_what_cannot_be_opened(address: Any, key: bool, words: str, tmp_path: Path) -> None:
    with pytest.raises(PpspeechError, match=words):
        open_store(address, key_file(tmp_path) if key else None)
