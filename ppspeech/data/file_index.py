"""What is known about sound files without opening them again: hash, samples and rate, by path, size and times."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import soundfile

from ppspeech.errors import AudioError


class Header(NamedTuple):
    """What a sound file says about its length."""

    samples: int
    sample_rate: int


class FileIndex:
    """Facts about files that stay true while path, size, time of change and time of status stay.

    One SQLite file that several processes may use at once. It is only ever a shortcut: where it cannot be read or
    written, files are opened as if it were empty.

    Args:
        path: of the SQLite file, which holds the paths of what was asked about.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def digests(self, files: Sequence[Path]) -> list[bytes]:
        """SHA-256 of each file's bytes; those that have changed since they were last asked about are read.

        Raises:
            AudioError: naming a file that cannot be read.
        """
        return [bytes.fromhex(digest) for digest in self._facts("digest", files, _digest)]

    def headers(self, files: Sequence[Path]) -> list[Header]:
        """Samples and rate of each file; headers of those that have changed since are read.

        Raises:
            AudioError: naming a file that cannot be read.
        """
        return [Header(*map(int, told.split())) for told in self._facts("header", files, _header)]

    def _facts(self, kind: str, files: Sequence[Path], read: Callable[[Path], str]) -> list[str]:
        keys = [(str(file.absolute()), kind, _stamp(file)) for file in files]
        known = self._look_up(keys)
        found = [read(file) if fact is None else fact for fact, file in zip(known, files, strict=True)]
        self._remember([(*key, new) for key, new, old in zip(keys, found, known, strict=True) if old is None])
        return found

    def _look_up(self, keys: list[tuple[str, str, str]]) -> list[str | None]:
        if not self.path.is_file():
            return [None] * len(keys)
        question = "SELECT fact FROM facts WHERE path = ? AND kind = ? AND stamp = ?"
        try:
            with closing(self._open()) as database:
                rows = [database.execute(question, key).fetchone() for key in keys]
        except sqlite3.Error:
            return [None] * len(keys)
        return [None if row is None else str(row[0]) for row in rows]

    def _remember(self, rows: list[tuple[str, str, str, str]]) -> None:
        if not rows:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as database, database:
                columns = "(path TEXT, kind TEXT, stamp TEXT, fact TEXT, PRIMARY KEY (path, kind))"
                database.execute(f"CREATE TABLE IF NOT EXISTS facts {columns}")
                database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?)", rows)
        except (sqlite3.Error, OSError):
            return  # the files are opened again next time

    def _open(self) -> sqlite3.Connection:
        # A connection must not cross a fork, and loaders fork: each question opens its own.
        database = sqlite3.connect(self.path, timeout=30)
        database.execute("PRAGMA synchronous = OFF")  # what a power failure takes is looked up again
        return database


def _stamp(path: Path) -> str:
    try:
        status = path.stat()
    except OSError as missing:
        raise AudioError(f"cannot read {path}: {missing.strerror}") from missing
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as missing:
        raise AudioError(f"cannot read {path}: {missing.strerror}") from missing


def _header(path: Path) -> str:
    try:
        told = soundfile.info(path)
    except soundfile.LibsndfileError as unreadable:
        raise AudioError(f"{path} is not a readable sound file: {unreadable.error_string}") from None
    return f"{told.frames} {told.samplerate}"
