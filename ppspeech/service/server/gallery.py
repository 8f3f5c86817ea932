"""Enrolled speakers of one model: names and templates in numbered places, in a file that session processes share.

A template says how a speaker's voice differs from everybody's: a direction, which is one vector of unit length, or the
means of the speaker's mixture. It is computed by the speaker's own device; the recording never comes here. The server
does see these templates, and must keep this file as it would keep a password file; `sealed_galleries` is for templates
that it must not see.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.service.names import LONGEST_NAME, MOST_SPEAKERS
from ppspeech.service.server.budget import PATIENCE_SECONDS

Template = Literal["direction", "means"]

UNIT = 1e-3
"""How far a direction's length may be from 1."""
LARGEST_MEAN = 1e3
"""No feature comes near it."""


@dataclass(frozen=True, slots=True)
class Gallery:
    """Speakers by place.

    Attributes:
        path: of the database.
        model: fingerprint of the bundle that templates were computed with.
        places: how many there is room for.
        features: numbers of a template.
        kind: what a template is; the kinds have speakers of their own.

    Raises:
        PpspeechError: for a file that is no such database, or places out of range.
    """

    path: Path
    model: str
    places: int
    features: int
    kind: Template = "direction"

    def __post_init__(self) -> None:
        if not 1 <= self.places <= MOST_SPEAKERS:
            raise PpspeechError(f"a gallery has 1 to {MOST_SPEAKERS:,} places, got {self.places}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(self._open()) as database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS speakers (model TEXT, kind TEXT, place INTEGER, name TEXT,"
                    " template BLOB, PRIMARY KEY (model, kind, place), UNIQUE (model, kind, name))"
                )
        except sqlite3.Error as damaged:
            raise PpspeechError(f"{self.path} cannot hold a gallery: {damaged}") from None

    def enroll(self, name: str, template: Reals) -> int | None:
        """Put a speaker in the next place.

        Returns:
            The place; None where the name is taken or there is no room, which of the two is not said.

        Raises:
            RangeError: for a name or template that cannot be.
        """
        vector = self.check(name, template)
        with closing(self._open()) as database:
            database.execute("BEGIN IMMEDIATE")
            taken = database.execute(
                "SELECT name FROM speakers WHERE model = ? AND kind = ?", (self.model, self.kind)
            ).fetchall()
            if (name,) in taken or len(taken) >= self.places:
                database.execute("ROLLBACK")
                return None
            row = (self.model, self.kind, len(taken), name, vector.astype("<f4").tobytes())
            database.execute("INSERT INTO speakers VALUES (?, ?, ?, ?, ?)", row)
            database.execute("COMMIT")
        return len(taken)

    def load(self) -> tuple[list[str], Reals]:
        """Names and templates in the order of their places, `(speakers, features)`."""
        with closing(self._open()) as database:
            rows = database.execute(
                "SELECT name, template FROM speakers WHERE model = ? AND kind = ? ORDER BY place",
                (self.model, self.kind),
            ).fetchall()
        templates = np.zeros((len(rows), self.features))
        for row, (_, data) in zip(templates, rows, strict=True):
            row[:] = np.frombuffer(data, "<f4")
        return [name for name, _ in rows[: self.places]], templates[: self.places]

    def check(self, name: str, template: Reals) -> Reals:
        """A template that can be enrolled under this name.

        Raises:
            RangeError: for a name that is empty, too long or unprintable, a direction that is not of unit length, or
                means that are not finite or beyond any feature.
        """
        check_speaker(name)
        vector = np.asarray(template, np.float64)
        if vector.shape != (self.features,):
            raise RangeError(f"a template is a vector of {self.features} numbers, got {vector.shape}")
        if self.kind == "means":
            if not (np.abs(vector) <= LARGEST_MEAN).all():
                raise RangeError(f"the means of a mixture are within ±{LARGEST_MEAN:g}")
            return vector
        if not abs(float(np.linalg.norm(vector)) - 1) <= UNIT:
            raise RangeError(f"a direction has length 1, got {float(np.linalg.norm(vector)):.4g}")
        return vector / np.linalg.norm(vector)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)


def check_speaker(name: str) -> str:
    """Refuse what cannot be the name of a speaker, or of a gallery.

    Raises:
        RangeError: unless it is printable and has 1 to 21 bytes.
    """
    if not name.strip() or not name.isprintable() or len(name.encode()) > LONGEST_NAME:
        raise RangeError(f"a name is printable and has 1 to {LONGEST_NAME} bytes, got {name!r:.40}")
    return name
