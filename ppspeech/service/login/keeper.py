"""What whoever keeps the accounts may do with one of them, by its name: forgive its failures, and forget it.

Both hold at once, also for a server that is running. An account is of one space; a name that was enrolled in several,
because a store served several cohorts, is meant in all of them.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from ppspeech.errors import PpspeechError
from ppspeech.service.login.accounts import ACCOUNTS, COLUMNS
from ppspeech.service.tasks.speakers import check_speaker
from ppspeech.storage import SharedTable


def remove_account(store: Path, name: str) -> None:
    """Forget a name with its sealed template, of which no byte stays in the file; the name may be enrolled again.

    Who came before is still written in `logins.jsonl`. An attempt that has begun goes on. Raises PpspeechError for a
    store without accounts, and a name that has none; RangeError for one that cannot be.
    """

    def forget(database: sqlite3.Connection) -> int:
        database.execute("PRAGMA secure_delete = ON")  # what is deleted is written over
        return database.execute("DELETE FROM accounts WHERE name = ?", (name,)).rowcount

    _do(store, name, forget)


def unlock_account(store: Path, name: str) -> None:
    """Forgive the failures of a name, so that it is not locked. Raises as `remove_account`."""
    _do(store, name, lambda at: at.execute("UPDATE accounts SET failed = 0 WHERE name = ?", (name,)).rowcount)


def _do(store: Path, name: str, work: Callable[[sqlite3.Connection], int]) -> None:
    check_speaker(name)
    path = store / ACCOUNTS
    if not path.is_file():
        raise PpspeechError(f"{store} keeps no accounts: give the --store of `ppspeech login serve`")
    with SharedTable(path, "accounts", COLUMNS, "accounts").transaction() as database:
        if not work(database):
            raise PpspeechError(f"{store} has no account of {name!r}: names are told apart by upper and lower case too")
