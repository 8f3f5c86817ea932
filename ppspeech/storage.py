"""Where files go and how they get there: data and cache folders, writes that are whole or absent, shared tables."""

import fcntl
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ppspeech.errors import CorpusError, PpspeechError

PATIENCE_SECONDS = 30.0  # how long a process waits for others that write to the same table or folder


def cache_folder() -> Path:
    """The folder for what can be made again: `PPSPEECH_CACHE`, else `ppspeech` in the user's cache folder."""
    chosen = os.environ.get("PPSPEECH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ppspeech"


def data_folder() -> Path:
    """The real corpora: `PPSPEECH_DATA`, else `../shared/data` beside the project. Raises CorpusError without."""
    chosen = os.environ.get("PPSPEECH_DATA")
    folder = Path(chosen) if chosen else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        raise CorpusError(
            f"no data folder at {folder}: set PPSPEECH_DATA to the folder that holds the corpora, "
            "or use the built-in voices (corpus 'synthetic'), which need no file"
        )
    return folder


def state_folder() -> Path:
    """The folder for what must not be lost: `PPSPEECH_STATE`, else `ppspeech` in the user's state folder."""
    chosen = os.environ.get("PPSPEECH_STATE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ppspeech"


def private_folder(folder: Path) -> Path:
    """Make a folder that only its owner can look into, or close one that others could."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


@contextmanager
def atomic_write(path: Path, *, durable: bool = True, private: bool = False) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it becomes `path`, on any failure it is removed.

    A reader sees the old file, the new file or no file, never part of one, also after Ctrl-C, on a full disk, and with
    several writers of the same path. The temporary name keeps the suffix of `path`, which many writers choose their
    format by; missing parent folders are made. `durable` waits until the bytes are on the disk; False is for caches of
    many small files, which a power failure may empty. A `private` file is its owner's alone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if durable:
            flush(temporary)
        if not private:
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        if error.filename in {None, str(temporary)}:
            error.filename = str(path)  # what was asked for: a full disk names no file
        raise
    finally:
        temporary.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Wait until the bytes of a file are on the disk."""
    with path.open("rb") as written:
        os.fsync(written.fileno())


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Be the only process in here that holds this folder; missing ones are made, and nothing is left in it.

    What is read inside is still true when it is written back. The lock ends with its process, however that ends. Raises
    PpspeechError if others hold it for longer than `PATIENCE_SECONDS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        patient_until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > patient_until:
                    raise PpspeechError(f"another process holds {folder}: try again when it has ended") from None
                time.sleep(0.02)
        yield
    finally:
        os.close(handle)


Given = TypeVar("Given")

Ask = Callable[..., list[Any]]
"""A question in SQL with its values, one for each `?`: the rows that it gives."""


class Table(Protocol):
    """One table that processes share: in a file of its own (`SharedTable`), or in a database that machines share."""

    def alone(self, work: Callable[[Ask], Given], about: str = "") -> Given:
        """Read and write with nobody in between, and give what `work` gave; an error undoes all of it.

        `work` may be done again where somebody was in between, and counts once: it must do nothing but ask. Those who
        say the same in `about` wait for one another instead; it holds whatever they say.
        """
        ...

    def rows(self, query: str, *values: Any) -> list[Any]:
        """What a question gives."""
        ...


@dataclass(frozen=True, slots=True)
class SharedTable:
    """One table in a file of its own that processes read and write at the same time, and that outlives them.

    A connection is opened for each use, since none may be carried over a fork. Only the file's owner can read it.
    SQLite locks it between processes; missing parent folders are made; `fresh` drops what an earlier process left.

    Raises PpspeechError for a file that is no database, or that has a table of this name with other columns.
    """

    path: Path
    name: str
    columns: str
    what: str
    fresh: bool = False

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        definition = f"CREATE TABLE {self.name} ({self.columns})"
        try:
            with self.transaction() as database:
                if self.fresh:
                    database.execute(f"DROP TABLE IF EXISTS {self.name}")
                found = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (self.name,)).fetchone()
                if found is None:
                    database.execute(definition)
        except sqlite3.Error as damaged:
            raise PpspeechError(f"{self.path} cannot hold {self.what}: {damaged}") from None
        if found is not None and found[0].split() != definition.split():
            raise PpspeechError(f"{self.path} cannot hold {self.what}: its table {self.name} has other columns")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Read and write with nobody in between; an error undoes all of it."""
        with closing(self._open()) as database, database:
            database.execute("BEGIN IMMEDIATE")  # takes the lock before reading
            yield database

    def alone(self, work: Callable[[Ask], Given], about: str = "") -> Given:  # noqa: ARG002 - a file has one lock
        """What `work` gives when it is done with nobody in between; see `Table.alone`."""
        with self.transaction() as database:
            return work(lambda query, *values: database.execute(query, values).fetchall())

    def rows(self, query: str, *values: Any) -> list[Any]:
        """What a question in SQL gives."""
        with closing(self._open()) as database:
            return database.execute(query, values).fetchall()

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)
