"""Who may log in: sealed templates by name, and how often each has failed. The server can open none of them.

A database that servers share has them under the key of the store too, bound to the name: what opens them is each
person's own key, so that whoever writes the database could else put a template under a key of its own in their place.
"""

import math
import time
from collections.abc import Callable

from ppspeech.errors import PpspeechError
from ppspeech.service.store import Place, opened, sealed, table_at, tagged
from ppspeech.service.tasks.speakers import check_speaker
from ppspeech.storage import Ask

MOST_ACCOUNTS = 100_000  # of one store; a client that fills the disk is a client too many
TRIES = 5
LOCKED_SECONDS = 900.0
LONGEST_LOCK = 10**9  # thirty years; whoever is locked out is told for how long, in 32 bits
ACCOUNTS = "accounts.sqlite"
COLUMNS = (
    "space TEXT, name TEXT, sealed BLOB NOT NULL, failed INTEGER NOT NULL, last REAL NOT NULL,"
    " PRIMARY KEY (space, name)"
)


class Accounts:
    """Names of one space with sealed templates, in a file that sessions share, or a database that servers do.

    An attempt is counted as failed before it begins, and forgiven when it succeeds: whoever hangs up has failed. After
    `tries` failures in a row a name is locked for `locked_seconds`, and again after each that follows. Only who has the
    right key is counted (without it nothing can hold), so that a stranger cannot lock anybody out.

    Times are those of the servers' clocks. While one is behind the time of a failure, since it was set back, the name
    stays locked, and for `locked_seconds` more, unless somebody unlocks it: a failure that were taken for one of now
    could be so again and again, by servers of one store whose clocks differ, and the lock would never hold.

    Raises PpspeechError for limits that cannot be, or a file that cannot hold accounts.
    """

    def __init__(
        self,
        place: Place,
        space: str,
        tries: int = TRIES,
        locked_seconds: float = LOCKED_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if tries < 1 or not 0 < locked_seconds <= LONGEST_LOCK:
            raise PpspeechError(
                f"a name has one try or more, and is locked for up to {LONGEST_LOCK:,} s, got {tries}, {locked_seconds}"
            )
        self._table = table_at(place, "accounts", COLUMNS, "accounts")
        self._place = place
        self._space, self._tries, self._seconds, self._clock = space, tries, locked_seconds, clock

    def enroll(self, name: str, template: bytes) -> bool:
        """Keep a sealed template; False where the name is taken, or there is no room: which is not said.

        Raises RangeError for a name that cannot be.
        """
        check_speaker(name)
        kept = self._tag(name)
        row = sealed(self._place, template, self._about(name))

        def work(ask: Ask) -> bool:
            ((held, taken),) = ask(_TAKEN, kept, self._space)
            if held >= MOST_ACCOUNTS or taken:
                return False
            ask("INSERT INTO accounts VALUES (?, ?, ?, 0, 0)", self._space, kept, row)
            return True

        return self._table.alone(work, self._space)

    def sealed(self, name: str) -> bytes | None:
        """What is kept for a name. Raises PpspeechError where a database gives something else."""
        query = "SELECT sealed FROM accounts WHERE space = ? AND name = ?"
        found = self._table.rows(query, self._space, self._tag(name))
        return opened(self._place, found[0][0], self._about(name)) if found else None

    def begin(self, name: str) -> int:
        """Count an attempt of whoever has the key: 0 where it may go on, or else for how many seconds it may not. Of
        a name that was removed a moment ago nothing is counted.
        """
        key = self._space, self._tag(name)

        def work(ask: Ask) -> int:
            found = ask("SELECT failed, last FROM accounts WHERE space = ? AND name = ?", *key)
            if not found:
                return 0
            ((failed, last),) = found
            now = self._clock()
            left = float(self._seconds - (now - last))
            if failed >= self._tries and left > 0:
                return min(math.ceil(left), math.ceil(self._seconds))  # where a clock was set back it is more
            ask("UPDATE accounts SET failed = failed + 1, last = ? WHERE space = ? AND name = ?", now, *key)
            return 0

        return self._table.alone(work, " ".join(key))

    def succeeded(self, name: str) -> None:
        """Forgive what was counted."""
        key = self._space, self._tag(name)
        query = "UPDATE accounts SET failed = 0 WHERE space = ? AND name = ?"
        self._table.alone(lambda ask: ask(query, *key), " ".join(key))

    def _tag(self, name: str) -> str:
        return tagged(self._place, name, "accounts", self._space)

    def _about(self, name: str) -> str:
        return f"accounts {self._space} {name}"


_TAKEN = "SELECT COUNT(*), COUNT(*) FILTER (WHERE name = ?) FROM accounts WHERE space = ?"
