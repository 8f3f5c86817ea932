"""What session processes share: query budgets, enrolled speakers, and galleries that this server cannot read.

A template says how a speaker's voice differs from everybody's: a direction, which is one vector of unit length, or the
means of the speaker's mixture. It is computed by the speaker's own device; the recording never comes here. The server
does see the templates of a `Gallery`, and must keep that file as it would keep a password file; a database that servers
share is given them, and every name and client, in a form that it cannot read. `SealedGalleries` is for templates that
the server must not see:

    keeper   enrolls voices, holds the key and the templates, answers probes
    store    this server: ciphertexts, and who may replace them
    prober   takes a gallery from the store, multiplies its voice into it, and settles the bit with the keeper
"""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bits, Reals
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.speakers import EncryptedGallery, GalleryPlan, Prober
from ppspeech.service.store import Place, opened, sealed, table_at, tagged
from ppspeech.service.tasks.speakers import MOST_CROWD, check_speaker
from ppspeech.storage import Ask

Template = Literal["direction", "means"]

LARGEST_BUDGET = 1_000_000  # beyond it, serve without one
MOST_CLIENTS = 100_000  # of one model that have a row each: some ten megabytes
NEWCOMERS = "newcomers"
DRAWS = 32  # of a place, before all that are free are listed
AT_A_TIME = 4096  # speakers of a crowd that are read together
STRETCH = 4096  # places that are counted together, to see who is new
UNIT = 1e-3  # how far a direction's length may be from 1
LARGEST_MEAN = 1e3  # no feature comes near it
MOST_GALLERIES = 256  # of one model; a client that fills the disk is a client too many


def note(path: Path, learned: Mapping[str, Any]) -> None:
    """Write down what whoever serves learns, a line of JSON: in a file that only they can read, not in the log.

    Raises PpspeechError where the file cannot hold more.
    """
    line = (json.dumps(learned, ensure_ascii=False) + "\n").encode()
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        if os.write(opened, line) != len(line):
            raise PpspeechError(f"{path} cannot hold more")
    finally:
        os.close(opened)


class QueryBudget:
    """Queries by client and model: many answers together give a model away, so they are counted and limited.

    A query is counted before it is answered: one that fails on the way has been paid for, or else a client could look
    at part of an answer and hang up, and a server that is killed has lost no count. Servers that share a database have
    one budget, exactly. What is counted outlives the server. A limit of None only counts; `usual` is each model's
    own, which `expect` tells. Whoever has many addresses is many clients, but not more than the file holds: once
    100,000 have asked, all who are new share one budget, and certificates (`--client-ca`) are the remedy.

    Raises PpspeechError for a limit out of range, or a file that cannot hold budgets.
    """

    def __init__(self, place: Place, limit: int | Literal["usual"] | None = None) -> None:
        if isinstance(limit, int) and not 0 <= limit <= LARGEST_BUDGET:
            raise PpspeechError(f"a budget is 0 to {LARGEST_BUDGET:,} queries, got {limit}")
        columns = "model TEXT, client TEXT, used INTEGER NOT NULL, PRIMARY KEY (model, client)"
        self._table = table_at(place, "queries", columns, "query budgets")
        self._place = place
        self._limit = limit
        self._usual: dict[str, int] = {}

    def expect(self, model: str, usual: int) -> int | None:
        """Hear of a model before it is served, and of its usual budget: the one that it will have, None without."""
        self._usual[model] = min(usual, LARGEST_BUDGET)
        return self._limit_of(model)

    def _limit_of(self, model: str) -> int | None:
        return self._usual[model] if self._limit == "usual" else self._limit

    def spend(self, model: str, client: str, queries: int) -> tuple[bool, int | None]:
        """Count `queries` if so many are left: whether they may be answered; how many are left, None without limit.

        Raises StoreLostError where it is not certain that they are counted.
        """
        limit, whose = self._limit_of(model), self._tag(model, client)

        def work(ask: Ask) -> tuple[bool, int]:
            row, used = self._row_of(ask, model, whose)
            allowed = limit is None or used + queries <= limit
            if allowed:
                used += queries
                ask(_COUNT, model, row, used)
            return allowed, used

        allowed, used = self._table.alone(work, f"{model} {whose}")
        return allowed, None if limit is None else max(0, limit - used)

    def left(self, model: str, client: str) -> int | None:
        """Queries left; None without a limit."""
        limit = self._limit_of(model)
        if limit is None:
            return None
        return max(0, limit - self._row_of(self._table.rows, model, self._tag(model, client))[1])

    def sums(self, model: str) -> tuple[int, int, int]:
        """Of all clients together: queries counted, clients, and how many of these have none left."""
        limit = self._limit_of(model)
        most = LARGEST_BUDGET + 1 if limit is None else limit
        ((used, clients, spent),) = self._table.rows(_SUMS, most, model)
        return int(used or 0), int(clients), int(spent)

    def _row_of(self, ask: Ask, model: str, client: str) -> tuple[str, int]:
        """Whose row counts the queries of a client, its own while there is room, and how many it has counted."""
        found = ask(_USED, model, client)
        if not found and ask(_CLIENTS, model)[0][0] >= MOST_CLIENTS:
            client = self._tag(model, NEWCOMERS)
            found = ask(_USED, model, client)
        return client, found[0][0] if found else 0

    def _tag(self, model: str, client: str) -> str:
        return tagged(self._place, client, "queries", model)


_USED = "SELECT used FROM queries WHERE model = ? AND client = ?"
_CLIENTS = "SELECT COUNT(*) FROM queries WHERE model = ?"
_COUNT = "INSERT INTO queries VALUES (?, ?, ?) ON CONFLICT (model, client) DO UPDATE SET used = excluded.used"
_SUMS = "SELECT SUM(used), COUNT(*), COUNT(*) FILTER (WHERE used >= ?) FROM queries WHERE model = ?"


@dataclass(frozen=True, eq=False)
class Enrolled:
    """Who is enrolled, in the order of places: names, templates `(speakers, features)` and places `(speakers,)`."""

    names: list[str]
    templates: Reals
    places: NDArray[np.int64]

    @staticmethod
    def nobody() -> "Enrolled":
        """An empty gallery."""
        return Enrolled([], np.zeros((0, 0)), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.names)


class Gallery:
    """Enrolled speakers of one model, told by its fingerprint: names and templates in numbered places.

    A speaker's place is drawn among those that are free, so that it does not tell how many are taken. Every kind of
    template has speakers of its own. Raises PpspeechError for a file that cannot hold a gallery, or places out of
    range.
    """

    def __init__(self, place: Place, model: str, places: int, features: int, kind: Template = "direction") -> None:
        if not 1 <= places <= MOST_CROWD:
            raise PpspeechError(f"a gallery has 1 to {MOST_CROWD:,} places, got {places}")
        columns = (
            "model TEXT, kind TEXT, place INTEGER, name TEXT,"
            " template BLOB, PRIMARY KEY (model, kind, place), UNIQUE (model, kind, name)"
        )
        self._table = table_at(place, "speakers", columns, "a gallery")
        self._place = place
        self._own = model, kind
        self._places = places
        self._features = features
        self._loaded: Enrolled | None = None

    def enroll(self, name: str, template: Reals) -> int | None:
        """A free place, now the speaker's; None where the name is taken or there is no room: which is not said.

        Whoever may enroll others under random names sees which of the two it was: a name that is taken is refused.
        """
        vector = self.check(name, template)
        kept = self._tag(name)

        def work(ask: Ask) -> int | None:
            if ask("SELECT 1 FROM speakers WHERE model = ? AND kind = ? AND name = ?", *self._own, kept):
                return None
            place = self._free(ask)
            if place is not None:
                row = self._row(name, vector, place)
                ask("INSERT INTO speakers VALUES (?, ?, ?, ?, ?)", *self._own, place, kept, row)
            return place

        return self._table.alone(work, " ".join(self._own))

    def _free(self, ask: Ask) -> int | None:
        """Any of the free places, each as likely: drawn until one is free, or else, where few are, among those."""
        for _ in range(DRAWS):
            place = secrets.randbelow(self._places)
            if not ask("SELECT 1 FROM speakers WHERE model = ? AND kind = ? AND place = ?", *self._own, place):
                return place
        taken = {place for (place,) in ask("SELECT place FROM speakers WHERE model = ? AND kind = ?", *self._own)}
        free = sorted(set(range(self._places)) - taken)
        return secrets.choice(free) if free else None

    def count(self) -> int:
        """How many are enrolled."""
        query = "SELECT COUNT(*) FROM speakers WHERE model = ? AND kind = ?"
        return int(self._table.rows(query, *self._own)[0][0])

    def is_up(self) -> bool:
        """Whether it can be read now."""
        return isinstance(self._place, Path) or self._place.is_up()

    def load(self) -> Enrolled:
        """Everybody. Raises PpspeechError if somebody's place is beyond those there are."""
        if self._loaded is not None and len(self._loaded) == self.count():  # galleries only grow: a size is a state
            return self._loaded
        query = "SELECT name, place, template FROM speakers WHERE model = ? AND kind = ? ORDER BY place"
        rows = self._table.rows(query, *self._own)
        self._check_places([place for _, place, _ in rows[-1:]])
        self._loaded = self._enrolled(rows)
        return self._loaded

    def newcomers(self, known: Bits) -> Iterator[Enrolled]:
        """Who is at no known place, of `(places,)`, some at a time: what is too much to be held twice. Of a million who
        are known no list is made: stretches of places are counted. Raises PpspeechError if somebody's place is beyond
        those there are.
        """
        if self.count() == int(known.sum()):
            return
        query = f"SELECT place / {STRETCH}, COUNT(*) FROM speakers WHERE model = ? AND kind = ? GROUP BY 1 ORDER BY 1"  # noqa: S608
        new: list[int] = []
        for stretch, count in self._table.rows(query, *self._own):
            start = int(stretch) * STRETCH
            if count != int(known[start : start + STRETCH].sum()):
                those = "SELECT place FROM speakers WHERE model = ? AND kind = ? AND place >= ? AND place < ?"
                there = sorted(place for (place,) in self._table.rows(those, *self._own, start, start + STRETCH))
                new += [place for place in there if place >= len(known) or not known[place]]
        self._check_places(new[-1:])
        for start in range(0, len(new), AT_A_TIME):
            some = new[start : start + AT_A_TIME]
            marks = ", ".join("?" * len(some))
            query = "SELECT name, place, template FROM speakers WHERE model = ? AND kind = ?"
            yield self._enrolled(self._table.rows(f"{query} AND place IN ({marks}) ORDER BY place", *self._own, *some))

    def _enrolled(self, rows: list[Any]) -> Enrolled:
        templates = np.zeros((len(rows), self._features))
        names = []
        for template, (name, place, data) in zip(templates, rows, strict=True):
            own, template[:] = self._read(name, place, data)
            names.append(own)
        return Enrolled(names, templates, np.array([place for _, place, _ in rows], np.int64))

    def _check_places(self, last: list[int]) -> None:
        if last and last[0] >= self._places:
            raise PpspeechError(
                f"somebody is enrolled at place {last[0]}, and there are {self._places} places: serve "
                f"places={last[0] + 1} or more"
            )

    def _row(self, name: str, vector: Reals, place: int) -> bytes:
        """A template as it is kept: sealed with its name where a database keeps it."""
        data = vector.astype("<f4").tobytes()
        if isinstance(self._place, Path):
            return data
        return sealed(self._place, name.encode() + b"\0" + data, self._about(place))

    def _read(self, name: str, place: int, data: bytes) -> tuple[str, Reals]:
        """A name and a template from a row. Raises PpspeechError where it is not what was kept."""
        if not isinstance(self._place, Path):
            spelled, _, data = opened(self._place, data, self._about(place)).partition(b"\0")
            if self._tag(spelled.decode()) != name:
                raise PpspeechError("a row of the store is another speaker's: it is not used")
            name = spelled.decode()
        return name, np.frombuffer(data, "<f4").astype(np.float64)

    def _tag(self, name: str) -> str:
        return tagged(self._place, name, "speakers", *self._own)

    def _about(self, place: int) -> str:
        return f"speakers {' '.join(self._own)} {place}"

    def check(self, name: str, template: Reals) -> Reals:
        """A template that can be enrolled under this name.

        Raises RangeError for a name that is empty, too long or unprintable, a direction that is not of unit length, or
        means that are not finite or beyond any feature.
        """
        check_speaker(name)
        vector = np.asarray(template, np.float64)
        if vector.shape != (self._features,):
            raise RangeError(f"a template is a vector of {self._features} numbers, got {vector.shape}")
        if self._own[1] == "means":
            if not (np.abs(vector) <= LARGEST_MEAN).all():
                raise RangeError(f"the means of a mixture are within ±{LARGEST_MEAN:g}")
            return vector
        if not abs(float(np.linalg.norm(vector)) - 1) <= UNIT:
            raise RangeError(f"a direction has length 1, got {float(np.linalg.norm(vector)):.4g}")
        return vector / np.linalg.norm(vector)


class SealedGalleries:
    """Encrypted galleries by name, of one plan and bundle. Raises PpspeechError for a file that cannot hold them."""

    def __init__(self, place: Place, model: str, plan: GalleryPlan) -> None:
        columns = (
            "model TEXT, name TEXT, places INTEGER, owner TEXT,"
            " public_key BLOB, templates BLOB, PRIMARY KEY (model, name)"
        )
        self._table = table_at(place, "sealed", columns, "galleries")
        self._place = place
        self._model = model
        self._plan = plan

    def put(self, name: str, owner: str, gallery: EncryptedGallery) -> bool:
        """Keep a gallery, and say whether it is kept: not where the name is another's, or there is no room.

        One that is there already is replaced by its owner alone: a certificate, or an address, which others may share;
        a store for strangers asks for certificates (`--client-ca`). Raises RangeError for a name that cannot be;
        ProtocolError for bytes that are no such gallery.
        """
        check_speaker(name)
        Prober(gallery)  # what could not be probed is not kept
        kept, whose = self._tag("name", name), self._tag("owner", owner)
        parts = [sealed(self._place, part, self._about(name, at)) for at, part in enumerate(_parts(gallery))]

        def work(ask: Ask) -> bool:
            found = ask("SELECT owner FROM sealed WHERE model = ? AND name = ?", self._model, kept)
            held = ask("SELECT COUNT(*) FROM sealed WHERE model = ?", self._model)[0][0]
            if (not found and held >= MOST_GALLERIES) or (found and found[0][0] != whose):
                return False
            ask(_KEEP, self._model, kept, self._plan.places, whose, *parts)
            return True

        return self._table.alone(work, self._model)

    def get(self, name: str) -> EncryptedGallery | None:
        """The gallery of a name; None where there is none of this size."""
        query = "SELECT public_key, templates FROM sealed WHERE model = ? AND name = ? AND places = ?"
        found = self._table.rows(query, self._model, self._tag("name", name), self._plan.places)
        if not found:
            return None
        parts = (opened(self._place, part, self._about(name, at)) for at, part in enumerate(found[0]))
        return EncryptedGallery(self._plan, *parts)

    def _tag(self, column: str, name: str) -> str:
        return tagged(self._place, name, "sealed", self._model, column)

    def _about(self, name: str, part: int) -> str:
        return f"sealed {self._model} {self._plan.places} {part} {name}"


_KEEP = (
    "INSERT INTO sealed VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (model, name) DO UPDATE SET places = excluded.places,"
    " owner = excluded.owner, public_key = excluded.public_key, templates = excluded.templates"
)


def _parts(gallery: EncryptedGallery) -> tuple[bytes, bytes]:
    return gallery.public_key, gallery.templates
