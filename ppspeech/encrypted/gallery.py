"""Enrolled speakers of one model: names and templates in numbered places, in a file that session processes share.

A template is one vector of unit length that says how a speaker's voice differs from everybody's. It is computed by the
speaker's own device; the recording never comes here. The server does see templates, and must keep this file as it
would keep a password file; `ppspeech.protocols.templates` is for servers that must not see them.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppspeech.encrypted.budget import PATIENCE_SECONDS
from ppspeech.errors import PpspeechError, RangeError

Reals = NDArray[np.floating]

LONGEST_NAME = 21
"""Bytes of a name: three words of the share engine."""
UNIT = 1e-3
"""How far a template's length may be from 1."""


@dataclass(frozen=True, slots=True)
class Gallery:
    """Speakers by place.

    Attributes:
        path: of the database.
        model: fingerprint of the bundle that templates were computed with.
        places: how many there is room for.
        features: numbers of a template.

    Raises:
        PpspeechError: for a file that is no such database, or places out of range.
    """

    path: Path
    model: str
    places: int
    features: int

    def __post_init__(self) -> None:
        if not 1 <= self.places <= 10_000:
            raise PpspeechError(f"a gallery has 1 to 10,000 places, got {self.places}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(self._open()) as database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS speakers (model TEXT, place INTEGER, name TEXT, template BLOB,"
                    " PRIMARY KEY (model, place), UNIQUE (model, name))"
                )
        except sqlite3.Error as damaged:
            raise PpspeechError(f"{self.path} cannot hold a gallery: {damaged}") from None

    def enrol(self, name: str, template: Reals) -> int | None:
        """Put a speaker in the next place.

        Returns:
            The place; None where the name is taken or there is no room, which of the two is not said.

        Raises:
            RangeError: for a name or template that cannot be.
        """
        vector = self.check(name, template)
        with closing(self._open()) as database:
            database.execute("BEGIN IMMEDIATE")
            taken = database.execute("SELECT name FROM speakers WHERE model = ?", (self.model,)).fetchall()
            if (name,) in taken or len(taken) >= self.places:
                database.execute("ROLLBACK")
                return None
            row = (self.model, len(taken), name, vector.astype("<f4").tobytes())
            database.execute("INSERT INTO speakers VALUES (?, ?, ?, ?)", row)
            database.execute("COMMIT")
        return len(taken)

    def load(self) -> tuple[list[str], Reals]:
        """Names and templates in the order of their places, `(speakers, features)`."""
        with closing(self._open()) as database:
            rows = database.execute(
                "SELECT name, template FROM speakers WHERE model = ? ORDER BY place", (self.model,)
            ).fetchall()
        templates = np.zeros((len(rows), self.features))
        for row, (_, data) in zip(templates, rows, strict=True):
            row[:] = np.frombuffer(data, "<f4")
        return [name for name, _ in rows[: self.places]], templates[: self.places]

    def check(self, name: str, template: Reals) -> Reals:
        """A template that can be enrolled under this name.

        Raises:
            RangeError: for a name that is empty, too long or unprintable, or a vector that is not of unit length.
        """
        if not name.strip() or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
            raise RangeError(f"a name is printable and has 1 to {LONGEST_NAME} bytes, got {name!r:.40}")
        vector = np.asarray(template, np.float64)
        if vector.shape != (self.features,) or not abs(float(np.linalg.norm(vector)) - 1) <= UNIT:
            raise RangeError(f"a template is a vector of {self.features} numbers and of length 1, got {vector.shape}")
        return vector / np.linalg.norm(vector)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)
