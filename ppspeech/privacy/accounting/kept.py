"""A budget in a file: what one process spent, the next one has not."""

import json
import sqlite3
from pathlib import Path

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.budget import Budget
from ppspeech.privacy.accounting.events import Event, event_from_json, event_to_json
from ppspeech.privacy.relation import Relation, relation_from_json, relation_to_json
from ppspeech.storage import SharedTable

_COLUMNS = "place INTEGER PRIMARY KEY, data TEXT NOT NULL, count INTEGER NOT NULL, written TEXT NOT NULL"
_OF = "SELECT place, count, written FROM spent WHERE data = ? AND place > ? ORDER BY place"
_ADD = "INSERT INTO spent (data, count, written) VALUES (?, ?, ?)"


class KeptBudget(Budget):
    """A `Budget` of the data called `data`, in a file that its owner keeps beside them.

    Formal guarantee: that of `Budget`, for all processes that go through the file, one after the other and at the same
    time. What a release costs is written, to the disk, before the value is looked at: a process that dies in between
    has spent. The budget is fixed by whoever comes first; `epsilon` and `relation` may be left out after that, and
    others are refused. Only public numbers are in the file: terms and events, no data, no noise and no answer.

    Raises PrivacyError for other terms, none, or a file that was written by something else.
    """

    def __init__(
        self,
        path: Path,
        data: str,
        relation: Relation | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> None:
        self.path, self.data = path, data
        self._table = SharedTable(path, "spent", _COLUMNS, "what was spent of a budget")
        self._seen = 0
        with self._table.transaction() as database:
            found = database.execute(_OF, (data, 0)).fetchone()
            if found is None:
                if relation is None or epsilon is None:
                    raise PrivacyError(f"nothing was asked of {data} before: give the epsilon that it may cost in all")
                super().__init__(relation, epsilon=epsilon, delta=delta or 0.0)
                terms = relation_to_json({"epsilon": self.epsilon, "delta": self.delta, "relation": relation})
                self._seen = database.execute(_ADD, (data, 0, json.dumps(terms))).lastrowid or 0
                return
        self._begin(found)
        given = {"epsilon": epsilon, "delta": delta, "relation": relation}
        kept = {"epsilon": self.epsilon, "delta": self.delta, "relation": self.account.relation}
        for name, value in given.items():
            if value is not None and value != kept[name]:
                raise PrivacyError(
                    f"the budget of {data} has {name} = {kept[name]}, as it was fixed at first, not {value}: leave "
                    f"{name} out; or, if the data are new and nobody of them was asked about before, remove {path}"
                )
        self.refresh()

    def _begin(self, found: tuple[int, int, str]) -> None:
        try:
            terms = relation_from_json(json.loads(found[2]))
            super().__init__(terms["relation"], epsilon=terms["epsilon"], delta=terms["delta"])
        except (ValueError, KeyError, TypeError) as wrong:
            raise PrivacyError(f"{self.path} does not begin with the terms of a budget: {wrong}") from None
        self._seen = found[0]

    @property
    def releases(self) -> int:
        """How many were booked, by all processes."""
        return sum(count for _, count in self.account.events)

    def refresh(self) -> None:
        """Hear of what others have spent."""
        self._read(self._table.rows(_OF, self.data, self._seen))

    def spend(self, event: Event, count: int = 1) -> None:
        """Book an event, on the disk. Raises PrivacyError, and books nothing, if it is more than all have left."""
        with self._table.transaction() as database:
            self._read(database.execute(_OF, (self.data, self._seen)).fetchall())
            super().spend(event, count)
            self._write(database, event, count)

    def _write(self, database: sqlite3.Connection, event: Event, count: int) -> None:
        written = json.dumps(event_to_json(event))
        self._seen = database.execute(_ADD, (self.data, count, written)).lastrowid or self._seen

    def _read(self, rows: list[tuple[int, int, str]]) -> None:
        for place, count, written in rows:
            try:
                Budget.spend(self, event_from_json(json.loads(written)), count)
            except (ValueError, TypeError) as wrong:
                raise PrivacyError(f"{self.path}, row {place}, is no cost that fits the budget: {wrong}") from None
            self._seen = place
