"""Who may log in: sealed templates by name, and how often each has failed. The server can open none of them."""

import math
import time
from collections.abc import Callable
from pathlib import Path

from ppspeech.errors import PpspeechError
from ppspeech.service.tasks.speakers import check_speaker
from ppspeech.storage import SharedTable

MOST_ACCOUNTS = 100_000  # of one store; a client that fills the disk is a client too many
TRIES = 5
LOCKED_SECONDS = 900.0
ACCOUNTS = "accounts.sqlite"
COLUMNS = (
    "space TEXT, name TEXT, sealed BLOB NOT NULL, failed INTEGER NOT NULL, last REAL NOT NULL,"
    " PRIMARY KEY (space, name)"
)


class Accounts:
    """Names of one space with sealed templates, in a file that sessions share.

    An attempt is counted as failed before it begins, and forgiven when it succeeds: whoever hangs up has failed. After
    `tries` failures in a row a name is locked for `locked_seconds`, and again after each that follows. Only who has the
    right key is counted (without it nothing can hold), so that a stranger cannot lock anybody out.

    Raises PpspeechError for limits that cannot be, or a file that cannot hold accounts.
    """

    def __init__(
        self,
        path: Path,
        space: str,
        tries: int = TRIES,
        locked_seconds: float = LOCKED_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if tries < 1 or not 0 < locked_seconds < math.inf:
            raise PpspeechError(f"a name has one try or more, and is locked for a time, got {tries}, {locked_seconds}")
        self._table = SharedTable(path, "accounts", COLUMNS, "accounts")
        self._space, self._tries, self._seconds, self._clock = space, tries, locked_seconds, clock

    def enroll(self, name: str, sealed: bytes) -> bool:
        """Keep a sealed template; False where the name is taken, or there is no room: which is not said.

        Raises RangeError for a name that cannot be.
        """
        check_speaker(name)
        with self._table.transaction() as database:
            taken = database.execute(
                "SELECT COUNT(*), SUM(name = ?) FROM accounts WHERE space = ?", (name, self._space)
            ).fetchone()
            if taken[0] >= MOST_ACCOUNTS or taken[1]:
                return False
            database.execute("INSERT INTO accounts VALUES (?, ?, ?, 0, 0)", (self._space, name, sealed))
        return True

    def sealed(self, name: str) -> bytes | None:
        """What is kept for a name."""
        found = self._table.rows("SELECT sealed FROM accounts WHERE space = ? AND name = ?", self._space, name)
        return found[0][0] if found else None

    def begin(self, name: str) -> int:
        """Count an attempt of whoever has the key: 0 where it may go on, or else for how many seconds it may not. Of
        a name that was removed a moment ago nothing is counted.
        """
        with self._table.transaction() as database:
            key = self._space, name
            found = database.execute("SELECT failed, last FROM accounts WHERE space = ? AND name = ?", key).fetchone()
            if found is None:
                return 0
            failed, last = found
            now = self._clock()
            left = float(self._seconds - (now - last))
            if failed >= self._tries and left > 0:
                return min(math.ceil(left), math.ceil(self._seconds))  # a clock that was set back locks no longer
            database.execute(
                "UPDATE accounts SET failed = failed + 1, last = ? WHERE space = ? AND name = ?", (now, *key)
            )
        return 0

    def succeeded(self, name: str) -> None:
        """Forgive what was counted."""
        with self._table.transaction() as database:
            database.execute("UPDATE accounts SET failed = 0 WHERE space = ? AND name = ?", (self._space, name))
