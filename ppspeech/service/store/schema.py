"""The tables of a store in PostgreSQL, by numbered steps: each is applied once, in order, and never changed again.

Where a column is called `client`, `owner` or `name` it holds a tag, and where it is `bytea` what is sealed
(`ppspeech.service.store.seal`); in `accounts.sealed` is what is sealed under the person's own key before.
"""

from collections.abc import Callable
from typing import Any

from ppspeech.errors import PpspeechError

SCHEMA = "ppspeech"

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE facts (name text PRIMARY KEY, value text NOT NULL);
    CREATE TABLE queries (
        model text, client text, used bigint NOT NULL CHECK (used >= 0), PRIMARY KEY (model, client));
    CREATE TABLE sessions (
        protocol text, outcome text, count bigint NOT NULL, queries bigint NOT NULL, refused bigint NOT NULL,
        unable bigint NOT NULL, rounds bigint NOT NULL, seconds double precision NOT NULL,
        meeting double precision NOT NULL, answering double precision NOT NULL, bytes_up bigint NOT NULL,
        bytes_down bigint NOT NULL, PRIMARY KEY (protocol, outcome))
    """,
    """
    CREATE TABLE speakers (
        model text, kind text, place integer, name text NOT NULL, template bytea NOT NULL,
        PRIMARY KEY (model, kind, place), UNIQUE (model, kind, name));
    CREATE TABLE sealed (
        model text, name text, places integer NOT NULL, owner text NOT NULL, public_key bytea NOT NULL,
        templates bytea NOT NULL, PRIMARY KEY (model, name))
    """,
    """
    CREATE TABLE accounts (
        space text, name text, sealed bytea NOT NULL, failed bigint NOT NULL, last double precision NOT NULL,
        PRIMARY KEY (space, name));
    CREATE TABLE kept (name text PRIMARY KEY, data bytea NOT NULL)
    """,
)
"""1: budgets and sums of sessions. 2: galleries. 3: accounts, and what servers have learned and share."""

TABLES = frozenset({"facts", "queries", "sessions", "speakers", "sealed", "accounts", "kept"})


def migrate(ask: Callable[..., list[Any]]) -> int:
    """Bring a database to the newest schema, within one transaction of the caller's: how many steps there were to do.

    Raises PpspeechError for a database of a later version.
    """
    ask("SELECT pg_advisory_xact_lock(hashtext(?))", f"{SCHEMA} schema")
    if not ask("SELECT 1 FROM pg_namespace WHERE nspname = ?", SCHEMA):  # IF NOT EXISTS asks for the right to make one
        ask(f"CREATE SCHEMA {SCHEMA}")
    ask("CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY, applied timestamptz DEFAULT now())")
    done = ask("SELECT COALESCE(MAX(number), 0) FROM migrations")[0][0]
    if done > len(MIGRATIONS):
        raise PpspeechError(
            f"the store has schema {done}, this version of ppspeech knows {len(MIGRATIONS)}: install a newer one"
        )
    for number, step in enumerate(MIGRATIONS[done:], start=done + 1):
        for statement in step.split(";"):
            ask(statement)
        ask("INSERT INTO migrations (number) VALUES (?)", number)
    return len(MIGRATIONS) - int(done)
