"""Adult: does a person earn more than 50,000 dollars? As the binary table a9a and as the census records."""

import lzma
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ppspeech.data.layout import Published, corpus_folder
from ppspeech.data.registry import register_table
from ppspeech.data.tables.files import read_libsvm
from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError

PUBLISHED = Published(
    "https://archive.ics.uci.edu/dataset/2/adult (adult.data, adult.test) and "
    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html (a9a, a9a.t)",
    "adult",
    "a9a and a9a.t, adult.data and adult.test, plain or compressed by xz",
)
FEATURES = 123
QUESTIONS = 14  # of the census: a row has one 1 for each at most
LABEL_NAMES = ("at most 50K", "more than 50K")
NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship"),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country"),
)


@dataclass(frozen=True)
class Part:
    """What one half of the official split must hold."""

    binary: str
    raw: str
    rows: int
    positive: int
    entries: int
    with_missing: int


PARTS = (
    Part("a9a", "adult.data", rows=32_561, positive=7_841, entries=451_592, with_missing=2_399),
    Part("a9a.t", "adult.test", rows=16_281, positive=3_846, entries=225_731, with_missing=1_221),
)


@register_table("adult")
def load_adult(folder: Path | str | None = None) -> Table:
    """Load a9a, Adult as 123 binary features: 32,561 rows to train on and 16,281 to test on.

    Label 1 is an income of more than 50,000 dollars. Each row is a person of its own. `folder` holds `a9a` and
    `a9a.t`, plain or as `.xz`; by default `adult` in the data folder. Raises CorpusError if a file is missing or
    damaged, or its rows, labels or entries are not as published.
    """
    folder = _folder(folder)
    features, labels = [], []
    for part in PARTS:
        path = _file(folder, part.binary)
        values, signs = read_libsvm(_lines(path), FEATURES, str(path))
        _check(path, "rows", len(signs), part.rows)
        if not np.isin(signs, (-1, 1)).all():
            raise CorpusError(f"{path}: labels must be +1 or -1")
        _check(path, "positive labels", int((signs > 0).sum()), part.positive)
        _check(path, "entries", int(np.count_nonzero(values)), part.entries)
        features.append(torch.from_numpy(values))
        labels.append(torch.from_numpy((signs > 0).astype(np.int64)))
    return Table(
        name="adult",
        features=torch.cat(features),
        labels=torch.cat(labels),
        feature_names=tuple(f"a9a_{index}" for index in range(1, FEATURES + 1)),
        label_names=LABEL_NAMES,
        is_test=_is_test(),
        norm=math.sqrt(QUESTIONS),
    )


@dataclass(frozen=True, eq=False)
class AdultRecords:
    """The census records behind a9a, column by column, 48,842 rows."""

    numbers: dict[str, torch.Tensor]  # int64 `(rows,)` for each column of numbers
    categories: dict[str, tuple[str | None, ...]]  # text for each other column; None where the census taker left `?`
    labels: torch.Tensor  # int64 `(rows,)`, 1 for an income of more than 50,000 dollars
    is_test: torch.Tensor  # bool `(rows,)`, the official split; train rows are in the order of a9a's

    @property
    def has_missing(self) -> torch.Tensor:
        """bool `(rows,)`: whether any value of the row is missing."""
        return torch.tensor([None in row for row in zip(*self.categories.values(), strict=True)])


def load_adult_raw(folder: Path | str | None = None) -> AdultRecords:
    """Load the raw Adult files: 14 typed columns and the label; a missing value stays missing.

    `folder` holds `adult.data` and `adult.test`, plain or as `.xz`; by default `adult` in the data folder. Raises
    CorpusError naming the line that is wrong, or a count that is not as published.
    """
    folder = _folder(folder)
    rows: list[list[str]] = []
    labels: list[int] = []
    for part in PARTS:
        path = _file(folder, part.raw)
        read = [_record(line, f"{path}, line {n}") for n, line in enumerate(_lines(path), 1) if _is_record(line)]
        _check(path, "rows", len(read), part.rows)
        _check(path, "positive labels", sum(label for _, label in read), part.positive)
        _check(path, "rows with a missing value", sum("?" in values for values, _ in read), part.with_missing)
        rows += [values for values, _ in read]
        labels += [label for _, label in read]
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    return AdultRecords(
        numbers={name: torch.tensor([int(value) for value in columns[name]]) for name in NUMBERS},
        categories={
            name: tuple(None if value == "?" else value for value in values)
            for name, values in columns.items()
            if name not in NUMBERS
        },
        labels=torch.tensor(labels),
        is_test=_is_test(),
    )


def _is_record(line: str) -> bool:
    """The test file opens with a comment, and both end in an empty line."""
    return bool(line.strip()) and not line.startswith("|")


def _record(line: str, where: str) -> tuple[list[str], int]:
    *values, label = (value.strip() for value in line.split(","))
    if len(values) != len(COLUMNS):
        raise CorpusError(f"{where}: a record has {len(COLUMNS) + 1} values, got {len(values) + 1}")
    for name, value in zip(COLUMNS, values, strict=True):
        if not (value.isdecimal() if name in NUMBERS else value):
            raise CorpusError(f"{where}: {name} cannot be {value!r}")
    # The labels of the test file end in a full stop.
    label = label.removesuffix(".")
    if label not in {"<=50K", ">50K"}:
        raise CorpusError(f"{where}: the label must be <=50K or >50K, got {label!r}")
    return values, int(label == ">50K")


def _folder(folder: Path | str | None) -> Path:
    return corpus_folder("adult", folder, PUBLISHED)


def _file(folder: Path, name: str) -> Path:
    """A file, or the same compressed."""
    packed = folder / f"{name}.xz"
    return packed if packed.is_file() else folder / name


def _is_test() -> torch.Tensor:
    return torch.arange(sum(part.rows for part in PARTS)) >= PARTS[0].rows


def _lines(path: Path) -> list[str]:
    try:
        plain = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        return plain.decode("ascii").splitlines()
    except FileNotFoundError:
        raise CorpusError(f"{path} is missing: {PUBLISHED}") from None
    except (lzma.LZMAError, EOFError, UnicodeDecodeError, OSError) as error:
        raise CorpusError(f"{path} is damaged: {error}; copy it again") from error


def _check(path: Path, what: str, found: int, expected: int) -> None:
    if found != expected:
        raise CorpusError(f"{path} has {found} {what} where {expected} were published; copy it again")
