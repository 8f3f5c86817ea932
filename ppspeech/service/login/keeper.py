"""What whoever keeps the accounts may do with one of them, by its name: forgive its failures, and forget it.

Both hold at once, also for a server that is running. An account is of one space; a name that was enrolled in several,
because a store served several cohorts, is meant in all of them.
"""

from collections.abc import Callable
from pathlib import Path

from ppspeech.errors import PpspeechError
from ppspeech.service.login.accounts import ACCOUNTS, COLUMNS
from ppspeech.service.store import Place, PostgresStore, table_at, tagged
from ppspeech.service.tasks.speakers import check_speaker
from ppspeech.storage import Ask


def remove_account(store: Place, name: str) -> None:
    """Forget a name with its sealed template; the name may be enrolled again. `store` is a folder or a database.

    No byte of the template stays in the file of a folder; a database clears what it deletes in its own time. Who came
    before is still written in `logins.jsonl`. An attempt that has begun goes on. Raises PpspeechError for a store
    without accounts, and a name that has none; RangeError for one that cannot be.
    """

    def forget(ask: Ask, space: str, kept: str) -> None:
        if isinstance(store, Path):
            ask("PRAGMA secure_delete = ON")  # what is deleted is written over
        ask("DELETE FROM accounts WHERE space = ? AND name = ?", space, kept)

    _do(store, name, forget)


def unlock_account(store: Place, name: str) -> None:
    """Forgive the failures of a name, so that it is not locked. Raises as `remove_account`."""
    query = "UPDATE accounts SET failed = 0 WHERE space = ? AND name = ?"
    _do(store, name, lambda ask, space, kept: ask(query, space, kept))


def _do(store: Place, name: str, work: Callable[[Ask, str, str], object]) -> None:
    check_speaker(name)
    where = "the database" if isinstance(store, PostgresStore) else str(store)
    place = store / ACCOUNTS if isinstance(store, Path) else store
    if isinstance(place, Path) and not place.is_file():
        raise PpspeechError(f"{where} keeps no accounts: give the --store of `ppspeech login serve`")
    table = table_at(place, "accounts", COLUMNS, "accounts")
    found = False
    for (space,) in table.rows("SELECT DISTINCT space FROM accounts"):
        key = space, tagged(place, name, "accounts", space)

        def done(ask: Ask, key: tuple[str, str] = key) -> bool:
            there = bool(ask("SELECT 1 FROM accounts WHERE space = ? AND name = ?", *key))
            if there:
                work(ask, *key)
            return there

        found |= table.alone(done, " ".join(key))
    if not found:
        raise PpspeechError(f"{where} has no account of {name!r}: names are told apart by upper and lower case too")
