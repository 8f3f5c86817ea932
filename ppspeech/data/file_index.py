"""What is known about sound files without opening them again: hash, samples and rate, by path, size and times."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import soundfile

from ppspeech.errors import AudioError, PpspeechError
from ppspeech.storage import SharedTable, cache_folder, private_folder


class Header(NamedTuple):
    """What a sound file says about its length."""

    samples: int
    sample_rate: int


class FileIndex:
    """Facts about files that stay true while path, size, time of change and time of status stay.

    One SQLite file that several processes may use at once. It is only ever a shortcut: where it cannot be read or
    written, files are opened as if it were empty. `path` is that of the SQLite file, in which paths stand as their
    hashes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def in_cache(cls) -> "FileIndex":
        """The one beside the cached features."""
        return cls(cache_folder() / "features" / "files.sqlite")

    def digests(self, files: Sequence[Path]) -> list[bytes]:
        """SHA-256 of each file's bytes; those that have changed since they were last asked about are read."""
        return [bytes.fromhex(digest) for digest in self.facts("digest", files, _digest)]

    def headers(self, files: Sequence[Path]) -> list[Header]:
        """Samples and rate of each file, zeros where it is no sound; headers of those that have changed are read."""
        return [Header(*map(int, told.split())) for told in self.facts("header", files, _header)]

    def facts(self, kind: str, files: Sequence[Path], read: Callable[[Path], str]) -> list[str]:
        """A fact of some kind about each file; `read` finds it out where the file has changed since."""
        keys = [(hashlib.sha256(os.fsencode(file.absolute())).hexdigest(), _stamp(file)) for file in files]
        known = self._look_up(kind, keys)
        found = [known[key] if key in known else read(file) for key, file in zip(keys, files, strict=True)]
        self._remember([(path, kind, stamp, fact) for (path, stamp), fact in zip(keys, found, strict=True)
                        if (path, stamp) not in known])  # fmt: skip
        return found

    def _look_up(self, kind: str, keys: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
        question = "SELECT path, stamp, fact FROM facts WHERE kind = ? AND path IN (SELECT value FROM json_each(?))"
        try:
            rows = self._table.rows(question, kind, json.dumps([path for path, _ in keys])) if self._table else []
        except sqlite3.Error:
            return {}
        return {(path, stamp): fact for path, stamp, fact in rows}

    def _remember(self, rows: list[tuple[str, str, str, str]]) -> None:
        if not rows or not self._table:
            return
        with suppress(sqlite3.Error), self._table.transaction() as database:  # else they are opened again next time
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?)", rows)

    @cached_property
    def _table(self) -> SharedTable | None:
        columns = "path TEXT, kind TEXT, stamp TEXT, fact TEXT, PRIMARY KEY (path, kind)"
        try:
            private_folder(self.path.parent)
            return SharedTable(self.path, "facts", columns, "what is known about sound files")
        except (PpspeechError, OSError):
            return None


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
    except soundfile.LibsndfileError:
        return "0 0"  # what is wrong with it is said when it is read
    return f"{told.frames} {told.samplerate}"
