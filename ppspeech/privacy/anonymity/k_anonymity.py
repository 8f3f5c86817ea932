"""k-anonymity: every row is equal to k - 1 others in what is known from elsewhere (Samarati and Sweeney 1998).

Limit 4.14 in docs/theory/filters.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import NonPrivateEvent
from ppspeech.privacy.anonymity.hierarchy import Hierarchy, Ladder
from ppspeech.privacy.anonymity.lattice import combinations, search
from ppspeech.privacy.anonymity.mondrian import boxes, described
from ppspeech.privacy.anonymity.records import Records
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_choice, check_count, check_probability
from ppspeech.privacy.relation import ONE_ROW, Relation

Method = Literal["auto", "lattice", "mondrian"]

MOST_COMBINATIONS = 20_000
"""Of levels, that are searched for the best; beyond, boxes are cut."""


@dataclass(frozen=True, eq=False)
class Generalized:
    """A table whose rows are equal to others, in the order they were in.

    Attributes:
        records: what is left; columns that are no quasi-identifiers are as they were.
        left_out: how many rows are not.
        loss: mean over rows and quasi-identifiers of (values that a cell may be - 1) / (values there are - 1); 1 for
            the cells of rows that were left out.
        method: by which it was found.
        levels: of each quasi-identifier, where all rows have the same.
    """

    records: Records
    left_out: int
    loss: float
    method: Method
    levels: Mapping[str, int] = field(default_factory=dict)


@mechanism("k_anonymity")
@dataclass(frozen=True, kw_only=True, eq=False)
class KAnonymity:
    """Makes rows equal in the quasi-identifiers, in classes of at least k.

    **No guarantee.** A class whose rows share a sensitive value tells it; whoever knows more columns than were thought
    of names people; two tables about the same people, each k-anonymous, together are not. What is generalized depends
    on everybody's rows.

    `quasi`: columns that others may know; `hierarchies`: by column, else numbers become intervals and words are left
    out; `leave_out`: the largest share of rows that may be; `method`: `lattice` finds the least loss that one level a
    column can have, `mondrian` cuts boxes, `auto` takes the first while there are few combinations of levels.
    """

    k: int
    quasi: tuple[str, ...]
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    leave_out: float = 0.0
    method: Method = "auto"
    relation: Relation = ONE_ROW

    def __post_init__(self) -> None:
        check_count("k", self.k, least=2)
        check_probability("leave_out", self.leave_out, zero=True)
        check_choice("method", self.method, get_args(Method))
        if not self.quasi or len(set(self.quasi)) < len(self.quasi):
            raise PrivacyError(f"quasi names columns, each once, got {', '.join(self.quasi) or 'none'}")
        unknown = sorted(set(self.hierarchies) - set(self.quasi))
        if unknown:
            raise PrivacyError(f"hierarchies are of quasi-identifiers, got one of {', '.join(unknown)}")

    @property
    def event(self) -> NonPrivateEvent:
        """Infinite epsilon."""
        return NonPrivateEvent(f"{self.k}-anonymous rows", self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        caveat = (
            f"{self.k} rows are equal in {', '.join(self.quasi)}; what they have in common is told, who knows more "
            "columns names people, and several such tables together are not anonymous"
        )
        return Guarantee(kind="none", relation=self.relation, caveat=caveat)

    def release(self, records: Records) -> Released[Generalized]:
        """The table made k-anonymous. Raises PrivacyError for columns that are missing, or fewer than k rows."""
        if len(records) < self.k:
            raise PrivacyError(f"{len(records)} rows cannot be made {self.k}-anonymous: choose a smaller k")
        columns = {name: records.coded(name) for name in self.quasi}
        ladders = [
            Ladder.of(column, self.hierarchies.get(name) or Hierarchy.usual(column)) for name, column in columns.items()
        ]
        many = combinations(ladders) > MOST_COMBINATIONS
        if self.method == "lattice" and many:
            raise PrivacyError(
                f"{combinations(ladders):,} combinations of levels are too many to search (at most "
                f"{MOST_COMBINATIONS:,}): name fewer columns, or take method 'mondrian'"
            )
        made = self._by_boxes(records) if self.method == "mondrian" or many else self._by_levels(records, ladders)
        return Released(made, self.event, self.guarantee)

    def _by_levels(self, records: Records, ladders: list[Ladder]) -> Generalized:
        best = search(ladders, self.k, int(self.leave_out * len(records)))
        chosen = dict(zip(self.quasi, best.levels, strict=True))
        coarse = {name: ladder.column(chosen[name]) for name, ladder in zip(self.quasi, ladders, strict=True)}
        left_out = len(records) - len(best.kept)
        return Generalized(records.replaced(coarse).select(best.kept), left_out, best.loss, "lattice", chosen)

    def _by_boxes(self, records: Records) -> Generalized:
        columns = [records.coded(name) for name in self.quasi]
        texts = [np.empty(len(records), dtype=object) for _ in columns]
        lost = 0.0
        for box in boxes(columns, self.k):
            for column, text in zip(columns, texts, strict=True):
                text[box], loss = described(column, column.codes[box])
                lost += loss * len(box)
        coarse = {name: tuple(text.tolist()) for name, text in zip(self.quasi, texts, strict=True)}
        return Generalized(records.replaced(coarse), 0, lost / (len(records) * len(columns)), "mondrian")
