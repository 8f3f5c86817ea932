"""How many queries a client has left: many answers together give a model away, so they are counted and limited."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ppspeech.errors import PpspeechError

LARGEST = 1_000_000
"""The largest budget there is; beyond it, serve without one."""
PATIENCE_SECONDS = 30.0
"""How long a session waits for others that are counting."""


@dataclass(frozen=True, slots=True)
class QueryBudget:
    """Queries by client and model, kept in a file that all session processes share and that outlives the server.

    A query is counted before it is answered: one that fails on the way has been paid for, or else a client could look
    at part of an answer and hang up.

    Attributes:
        path: of the database (SQLite, which locks it between processes).
        limit: queries of one client to one model; None counts without limit.

    Raises:
        PpspeechError: for a limit out of range, or a file that is no such database.
    """

    path: Path
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and not 0 <= self.limit <= LARGEST:
            raise PpspeechError(f"a budget is 0 to {LARGEST:,} queries, got {self.limit}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(self._open()) as database, database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS queries"
                    " (model TEXT, client TEXT, used INTEGER NOT NULL, PRIMARY KEY (model, client))"
                )
        except sqlite3.Error as damaged:
            raise PpspeechError(f"{self.path} cannot hold query budgets: {damaged}") from None

    def spend(self, model: str, client: str, queries: int) -> tuple[bool, int | None]:
        """Count `queries` if that many are left.

        Returns:
            Whether they may be answered, and how many are left; None without a limit.
        """
        with closing(self._open()) as database:
            database.execute("BEGIN IMMEDIATE")  # takes the lock before reading: nobody spends in between
            used = _used(database, model, client)
            allowed = self.limit is None or used + queries <= self.limit
            if allowed:
                used += queries
                database.execute("INSERT OR REPLACE INTO queries VALUES (?, ?, ?)", (model, client, used))
            database.execute("COMMIT")
        return allowed, None if self.limit is None else max(0, self.limit - used)

    def left(self, model: str, client: str) -> int | None:
        """Queries left; None without a limit."""
        if self.limit is None:
            return None
        with closing(self._open()) as database:
            return max(0, self.limit - _used(database, model, client))

    def _open(self) -> sqlite3.Connection:
        # Opened anew in each session: a connection must not be carried over a fork.
        return sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)


def _used(database: sqlite3.Connection, model: str, client: str) -> int:
    found = database.execute("SELECT used FROM queries WHERE model = ? AND client = ?", (model, client)).fetchone()
    return int(found[0]) if found else 0
