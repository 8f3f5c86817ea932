"""What is known about sound files without opening them again: hash, samples and rate, by path, size and times."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import soundfile

from ppspeech.cluster import HERE, Pool
from ppspeech.errors import AudioError, PpspeechError
from ppspeech.storage import SharedTable, cache_folder, private_folder

AT_ONCE = 64
"""Files between two entries in the index, and that a worker is given at a time."""

SAID = {"digest": "Reading", "header": "Reading headers", "sound": "Listening"}


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

    def digests(self, files: Sequence[Path], workers: Pool = HERE) -> list[bytes]:
        """SHA-256 of each file's bytes; those that have changed since they were last asked about are read."""
        return [bytes.fromhex(digest) for digest in self.facts("digest", files, _digest, workers)]

    def headers(self, files: Sequence[Path]) -> list[Header]:
        """Samples and rate of each file, zeros where it is no sound; headers of those that have changed are read."""
        return [Header(*map(int, told.split())) for told in self.facts("header", files, _header)]

    def facts(self, kind: str, files: Sequence[Path], read: Callable[[Path], str], workers: Pool = HERE) -> list[str]:
        """A fact of some kind about each file; `read` finds it out where the file has changed since, by `workers`.

        What was found out is remembered every so often: whoever is stopped goes on from there.
        """
        keys = [(hashlib.sha256(os.fsencode(file.absolute())).hexdigest(), _stamp(file)) for file in files]
        known = self._look_up(kind, keys)
        new = {key: file.absolute() for key, file in zip(keys, files, strict=True) if key not in known}
        asked = [list(islice(new, at, at + AT_ONCE)) for at in range(0, len(new), AT_ONCE)]
        read_them = partial(_read_all, read)
        for place, found in workers.each(read_them, [[new[key] for key in part] for part in asked], SAID[kind]):
            known |= zip(asked[place], found, strict=True)
            self._remember([(path, kind, stamp, known[path, stamp]) for path, stamp in asked[place]])
        return [known[key] for key in keys]

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


def _read_all(read: Callable[[Path], str], files: Sequence[Path]) -> list[str]:
    return [read(file) for file in files]


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
