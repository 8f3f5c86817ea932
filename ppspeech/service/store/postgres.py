"""A store in PostgreSQL: tables that servers on several machines share, and transactions that are alone.

A connection is opened for each use and closed after it: none is carried over a fork, and a session that waits for its
client holds none. A transaction is serializable: where somebody was in between, the database says so and it is done
again. Those that are about the same thing wait for a lock first, so that this is rare.

When a connection is lost while a transaction is being ended, nobody here knows whether it counts. Its number is the
receipt: the database is asked what became of it. If it counts it is not done again, if it does not it is, and if the
database cannot be asked StoreLostError is raised: a question whose budget may or may not be spent is not answered.
"""

import hashlib
import importlib
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from ppspeech.errors import MissingPackageError, PpspeechError
from ppspeech.service.store.address import StoreAddress
from ppspeech.service.store.schema import SCHEMA, TABLES, migrate
from ppspeech.service.store.seal import StoreSeal
from ppspeech.storage import Ask, Given

PATIENCE_SECONDS = 10.0  # for an answer, for a place among its connections, for others to be done
PAUSE_SECONDS = 0.02
IN_BETWEEN = {"40001", "40P01"}  # somebody else was; do it again
FULL = {"53300", "57P03"}  # no more connections at the moment, or it is starting: wait
VANISHED = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "idle_in_transaction_session_timeout": "20s",
}
"""A machine that loses its power says no goodbye: what it held is free again half a minute later."""
TOLD = ("28", "3D", "42501")  # classes of errors whose words say what to do: wrong password, no database, not allowed


class StoreLostError(PpspeechError):
    """The database of this server cannot be reached: what cannot be counted is not answered."""


@dataclass(frozen=True, slots=True)
class PostgresStore:
    """A database that servers share, and the key by which they keep it from reading what it keeps."""

    address: StoreAddress
    seal: StoreSeal

    @classmethod
    def open(cls, address: StoreAddress, seal: StoreSeal) -> "PostgresStore":
        """Reach a database, bring it to the newest schema, and see that it is of the same key.

        Raises PpspeechError if it cannot be reached, is of a later version, or was begun under another key.
        """
        store = cls(address, seal)
        with store._connected() as ask:
            ask("BEGIN")
            migrate(ask)
            ask("INSERT INTO facts VALUES ('key', ?) ON CONFLICT DO NOTHING", seal.fingerprint)
            ((held,),) = ask("SELECT value FROM facts WHERE name = 'key'")
            if held != seal.fingerprint:
                raise PpspeechError(f"{address} was begun under another key: all its servers have one --store-key")
            ask("COMMIT")
        return store

    def table(self, name: str) -> "PostgresTable":
        """One of its tables."""
        if name not in TABLES:
            raise PpspeechError(f"a store has {', '.join(sorted(TABLES))}, got {name!r}")
        return PostgresTable(self, name)

    def is_up(self) -> bool:
        """Whether it can be reached now."""
        try:
            with self._connected(patience=1.0) as ask:
                return ask("SELECT 1") == [[1]]
        except PpspeechError:
            return False

    @contextmanager
    def _connected(self, patience: float = PATIENCE_SECONDS) -> Iterator[Ask]:
        """A connection while the block lasts, as what asks. Raises StoreLostError where there is none, or it ends."""
        driver = _driver()
        until = time.monotonic() + patience
        while True:
            try:
                connection = self._open(driver, patience)
                break
            except driver.DatabaseError as error:
                if _code(error) not in FULL or time.monotonic() > until:
                    raise self._said(error) from None
                time.sleep(PAUSE_SECONDS)
            except (driver.InterfaceError, OSError, struct.error) as error:
                raise self._lost(error) from None
        try:
            yield lambda query, *values: _rows(connection, query, values)
        except driver.DatabaseError as error:
            raise (Interrupted() if _code(error) in IN_BETWEEN else self._said(error)) from None
        except (driver.InterfaceError, OSError, struct.error) as error:
            raise self._lost(error) from None
        finally:
            with suppress(Exception):  # it is gone already; what it did not commit is undone
                connection.close()

    def _open(self, driver: Any, patience: float) -> Any:
        at = self.address
        local = at.host.startswith("/")
        return driver.Connection(
            at.user,
            host=None if local else at.host,
            port=at.port,
            unix_sock=f"{at.host}/.s.PGSQL.{at.port}" if local else None,
            database=at.database,
            password=at.password,
            ssl_context=at.context(),
            timeout=patience,
            application_name="ppspeech",
            startup_params={"search_path": SCHEMA, **VANISHED},
        )

    def _lost(self, error: BaseException) -> StoreLostError:
        return StoreLostError(f"the store at {self.address} cannot be reached ({type(error).__name__})")

    def _said(self, error: BaseException) -> PpspeechError:
        """An error of the database: its words where they are about coming in, else its code, as they may hold rows."""
        code = _code(error)
        if code[:2] in ("08", "53", "57"):
            return StoreLostError(f"the store at {self.address} does not answer now (SQLSTATE {code})")
        words = f": {error.args[0].get('M')}" if code.startswith(TOLD) else ""
        return PpspeechError(f"the store at {self.address} refuses with SQLSTATE {code}{words}")


class Interrupted(PpspeechError):
    """Somebody was in between: a transaction is to be done again."""


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """One table of a store; see `ppspeech.storage.Table`."""

    store: PostgresStore
    name: str

    def rows(self, query: str, *values: Any) -> list[Any]:
        """What a question gives. Raises StoreLostError where it cannot be asked."""
        with self.store._connected() as ask:
            return ask(query, *values)

    def alone(self, work: Callable[[Ask], Given], about: str = "") -> Given:
        """What `work` gives when it is done with nobody in between, once; see `Table.alone`.

        Raises StoreLostError where the database cannot be asked, or it is not known whether it counts.
        """
        until = time.monotonic() + 3 * PATIENCE_SECONDS
        while True:
            receipt: list[str] = []
            try:
                return self._once(work, about, receipt)
            except Interrupted:
                pass
            except StoreLostError:
                if receipt and self._counts(receipt[0], until):
                    return receipt[1]  # type: ignore[return-value]
                if not receipt:
                    raise
            if time.monotonic() > until:
                raise StoreLostError(f"the store at {self.store.address} is too busy: others are always in between")
            time.sleep(PAUSE_SECONDS)

    def _once(self, work: Callable[[Ask], Given], about: str, receipt: list[Any]) -> Given:
        """One try. `receipt` is filled just before the end: the number of the transaction, and what was given."""
        with self.store._connected() as ask:
            ask("SELECT pg_advisory_lock(?)", _lock(f"{self.name} {about}"))  # held until the connection is closed
            ask("BEGIN ISOLATION LEVEL SERIALIZABLE")
            ((number,),) = ask("SELECT pg_current_xact_id()::text")
            given = work(ask)
            receipt += [number, given]
            ask("COMMIT")
            return given

    def _counts(self, number: str, until: float) -> bool:
        """What became of a transaction. Raises StoreLostError where the database cannot say."""
        while time.monotonic() < until:
            with suppress(StoreLostError):
                ((state,),) = self.rows("SELECT pg_xact_status(?::text::xid8)", number)
                if state in ("committed", "aborted"):
                    return bool(state == "committed")
                if state is None:
                    break
            time.sleep(PAUSE_SECONDS)
        raise StoreLostError(
            f"the store at {self.store.address} was lost while it counted: whether it did is not known"
        )


def _rows(connection: Any, query: str, values: tuple[Any, ...]) -> list[Any]:
    parts = query.split("?")
    text = "".join(f"{part}:v{at}" for at, part in enumerate(parts[:-1])) + parts[-1]
    return list(connection.run(text, **{f"v{at}": value for at, value in enumerate(values)}) or [])


def _lock(about: str) -> int:
    return int.from_bytes(hashlib.sha256(about.encode()).digest()[:8], "big", signed=True)


def _code(error: BaseException) -> str:
    said = error.args[0] if error.args else None
    return str(said.get("C", "?????")) if isinstance(said, dict) else "?????"


def _driver() -> Any:
    try:
        return importlib.import_module("pg8000.native")
    except ModuleNotFoundError:
        raise MissingPackageError("a store in PostgreSQL", "pg8000", "pip install 'ppspeech[scale]'") from None
