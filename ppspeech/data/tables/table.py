"""What a table is: rows of numbers with a label each, and who or what each row comes from."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import torch

from ppspeech.data.splits import share_of
from ppspeech.errors import CorpusError


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of features with labels.

    >>> table = Table("tiny", torch.zeros(3, 1), torch.tensor([0, 1, 1]), ("x",), ("no", "yes"),
    ...               groups=torch.tensor([7, 7, 8]))
    >>> train, test = table.split_by_group(test=[8])
    >>> len(train), len(test)
    (2, 1)
    """

    name: str
    features: torch.Tensor  # float32 `(rows, features)`; the motion windows alone are `(rows, channels, samples)`
    labels: torch.Tensor  # int64 `(rows,)`, an index into `label_names`
    feature_names: tuple[str, ...]  # one for each position of the second axis of `features`
    label_names: tuple[str, ...]
    groups: torch.Tensor | None = None  # int64 `(rows,)`, whom each row is from: privacy's unit; None: each its own
    is_test: torch.Tensor | None = None  # bool `(rows,)`, the official split; None where there is none
    extra: Mapping[str, torch.Tensor] = field(default_factory=dict)  # more int64 labels `(rows,)` by name
    norm: float | None = None  # what no row's norm exceeds, known from how the columns are coded and not from the rows
    overlapping: bool = False  # rows of one group share measurements: `split_by_row` refuses, as it would leak

    def __post_init__(self) -> None:
        rows = len(self.labels)
        if self.features.ndim < 2 or self.features.shape[:2] != (rows, len(self.feature_names)):
            raise CorpusError(
                f"table {self.name!r}: features must have shape ({rows}, {len(self.feature_names)}), "
                f"got {tuple(self.features.shape)}"
            )
        wanted = {"features": torch.float32, "labels": torch.int64, "groups": torch.int64, "is_test": torch.bool}
        columns = {"features": self.features, "labels": self.labels, "groups": self.groups, "is_test": self.is_test}
        for name, values in (columns | dict(self.extra)).items():
            if values is None:
                continue
            dtype = wanted.get(name, torch.int64)
            if values.shape[0] != rows or (name != "features" and values.ndim != 1) or values.dtype != dtype:
                raise CorpusError(
                    f"table {self.name!r}: {name} must be {dtype} with {rows} rows, "
                    f"got {values.dtype} {tuple(values.shape)}"
                )
        if rows and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < len(self.label_names):
            raise CorpusError(f"table {self.name!r}: labels must be 0 to {len(self.label_names) - 1}")

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: torch.Tensor) -> "Table":
        """The rows of a bool mask `(rows,)` or of int64 indices, in order."""
        return replace(
            self,
            features=self.features[rows],
            labels=self.labels[rows],
            groups=None if self.groups is None else self.groups[rows],
            is_test=None if self.is_test is None else self.is_test[rows],
            extra={name: values[rows] for name, values in self.extra.items()},
        )

    def train_test(self) -> tuple["Table", "Table"]:
        """The official split. Raises CorpusError if the table has none."""
        if self.is_test is None:
            raise CorpusError(f"table {self.name!r} has no official split: use split_by_group or split_by_row")
        return self._divide(self.is_test)

    def split_by_group(
        self, test: float | Collection[int], *, by: str = "groups", seed: int = 0
    ) -> tuple["Table", "Table"]:
        """Test on groups of rows, such as people, that were not trained on.

        `test` holds groups, or is their share of all, more than 0 and less than 1; `by` is `groups` or one of `extra`,
        such as `recording`. Raises CorpusError if there is no such column, a group is unknown, or a part would be
        empty.
        """
        column = self.groups if by == "groups" else self.extra.get(by)
        if column is None:
            known = [*(["groups"] if self.groups is not None else []), *self.extra]
            raise CorpusError(f"table {self.name!r} has no column {by!r} to split by; it has {known}")
        there = sorted(set(column.tolist()))
        if isinstance(test, int | float):
            order = torch.randperm(len(there), generator=torch.Generator().manual_seed(seed))
            chosen = [there[index] for index in order[: share_of(test, len(there))].tolist()]
        else:
            chosen = sorted(set(test))
            unknown = sorted(set(chosen) - set(there))
            if unknown:
                raise CorpusError(f"table {self.name!r} has no {by} {unknown}; it has {there[:40]}")
        return self._divide(torch.isin(column, torch.tensor(chosen, dtype=torch.int64, device=column.device)))

    def split_by_row(self, test: float, *, seed: int = 0) -> tuple["Table", "Table"]:
        """Test on a random share of the rows, between 0 and 1; refused where rows of this table overlap."""
        if self.overlapping:
            raise CorpusError(
                f"rows of table {self.name!r} overlap: a split by row would test on what was trained on; "
                f"use split_by_group, by groups or by {' or '.join(self.extra)}"
            )
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        is_test = torch.zeros(len(self), dtype=torch.bool)
        is_test[order[: share_of(test, len(self))]] = True
        return self._divide(is_test.to(self.labels.device))

    def _divide(self, is_test: torch.Tensor) -> tuple["Table", "Table"]:
        held_out = int(is_test.sum())
        if not 0 < held_out < len(self):
            raise CorpusError(f"table {self.name!r}: {held_out} of {len(self)} rows to test on leave a part empty")
        # A part has no official split of its own.
        whole = replace(self, is_test=None)
        return whole.select(~is_test), whole.select(is_test)
