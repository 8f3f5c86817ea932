"""Data swapping: values change hands among people who are alike (Dalenius and Reiss 1982)."""

from dataclasses import dataclass

import numpy as np

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import NonPrivateEvent
from ppspeech.privacy.anonymity.records import Records
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_probability
from ppspeech.privacy.relation import ONE_ROW, Relation
from ppspeech.privacy.samplers.randomness import random_order


@mechanism("swapping")
@dataclass(frozen=True, kw_only=True, eq=False)
class Swapping:
    """Permutes the values of `columns`, together, among a random share of the rows that are equal in `key`.

    Kept exactly: every table of counts of columns that are not swapped, and every one of columns out of `columns` and
    `key`. Counts of a swapped column with any other column move. **No guarantee**: what is kept exactly can never be
    private, and a row that was not swapped is as it was. `rate`: of the rows of each class of the key, rounded. Proof:
    Proposition 4.15 in docs/theory/filters.md.
    """

    columns: tuple[str, ...]
    rate: float
    key: tuple[str, ...] = ()
    relation: Relation = ONE_ROW

    def __post_init__(self) -> None:
        check_probability("rate", self.rate, one=True)
        if not self.columns or set(self.columns) & set(self.key):
            raise PrivacyError(
                f"columns are swapped among rows that are equal in other columns, got {', '.join(self.columns)} "
                f"and the key {', '.join(self.key)}"
            )

    @property
    def event(self) -> NonPrivateEvent:
        """Infinite epsilon."""
        return NonPrivateEvent(f"{', '.join(self.columns)} swapped", self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        alike = f" and of these with {', '.join(self.key)}" if self.key else ""
        caveat = f"counts of {', '.join(self.columns)}{alike}, and of all other columns, are as they were, exactly"
        return Guarantee(kind="none", relation=self.relation, caveat=caveat)

    def release(self, records: Records) -> Released[Records]:
        """The table with values swapped; rows stay in their order."""
        columns = {name: records.column(name) for name in self.columns}
        member = records.classes(self.key)
        source = np.arange(len(records))
        for rows in np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1]):
            chosen = rows[random_order(len(rows))[: round(self.rate * len(rows))]]
            source[np.sort(chosen)] = chosen  # in a random order, as they were drawn
        places = source.tolist()
        swapped = {name: tuple(values[at] for at in places) for name, values in columns.items()}
        return Released(records.replaced(swapped), self.event, self.guarantee)
