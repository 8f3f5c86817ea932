"""Any table or corpus as columns of text, with whose each row is: what questions are asked of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ppspeech.data.corpora.folder import MANIFEST
from ppspeech.data.corpus import Corpus, Utterance
from ppspeech.data.layout import read_rows
from ppspeech.data.registry import corpus_names, load_corpus, load_table, table_names
from ppspeech.data.tables.adult import load_adult_raw
from ppspeech.data.tables.predicate import Predicate
from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError
from ppspeech.storage import state_folder

WHO = "speaker"  # the column that says whose a row is, where there is one and nothing else was said
ASKED = ".asked.sqlite"


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows by column. `who` `(rows,)` numbers the units whose rows they are: people, or the rows themselves.

    `kept`: where the budget of questions about them is.
    """

    name: str
    columns: Mapping[str, Sequence[str]]
    unit: Literal["record", "utterance", "speaker"]
    who: torch.Tensor
    kept: Path

    @property
    def key(self) -> str:
        """What the budget is kept under: the same for a file, links to it, and the folder whose manifest it is."""
        return self.kept.name.removesuffix(ASKED)

    @property
    def units(self) -> int:
        """How many people, or rows where these are the units."""
        return int(self.who.max()) + 1 if len(self.who) else 0

    def rows_that(self, are_so: Predicate) -> torch.Tensor:
        """Which rows are so, bool `(rows,)`."""
        return torch.from_numpy(are_so(self.columns))

    def units_that(self, have: Predicate) -> NDArray[np.bool_]:
        """Which units have a row that is so, bool `(units,)`."""
        found = torch.zeros(self.units, dtype=torch.bool)
        found[self.who[self.rows_that(have)]] = True
        return found.numpy()


def read_columns(where: str, who: str = "", *, rows: bool = False) -> Columns:
    """A CSV file, a folder with a manifest, or a corpus or table by name.

    Rows are of people by the column `who`, by default `speaker` where there is one; else, or with `rows`, each is a
    unit of its own. A manifest is read with all its columns. What was asked is kept beside a file or in its folder, and
    for names in the user's state folder. Raises CorpusError for what is not there, or a column that is not.
    """
    path = Path(where)
    if where in table_names() or where in corpus_names():
        name, kept = where, state_folder() / f"{where}{ASKED}"
        found = _of_table(where) if where in table_names() else _of_corpus(load_corpus(where))
    elif path.suffix == ".csv":
        if not path.is_file():
            raise CorpusError(f"there is no file {path}: give a CSV file with a header, a corpus or a table")
        name, kept = path.stem, path.resolve().with_suffix(ASKED)  # one for all links to it
        found = _by_column(read_rows(path, ()))
    elif (path / MANIFEST).is_file():
        load_corpus(path)  # refuses what is wrong with it
        name, kept = path.resolve().name, path.resolve() / f"manifest{ASKED}"
        found = _by_column(read_rows(path / MANIFEST, ()))
    else:
        raise CorpusError(
            f"{where} is no CSV file, no folder with a {MANIFEST}, and no corpus or table of those that "
            "`ppspeech corpus list` has"
        )
    if who and who not in found:
        raise CorpusError(f"{where} has no column {who!r} that says whose a row is; it has {', '.join(found)}")
    of = "" if rows else who or (WHO if WHO in found else "")
    count = len(next(iter(found.values())))
    if not of:
        return Columns(name, found, "utterance" if WHO in found else "record", torch.arange(count), kept)
    places = {person: place for place, person in enumerate(dict.fromkeys(found[of]))}
    return Columns(name, found, "speaker", torch.tensor([places[person] for person in found[of]]), kept)


def _by_column(rows: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _of_corpus(corpus: Corpus) -> dict[str, list[str]]:
    """What is known about each recording, without its path; no speaker where every recording has one of its own."""
    found = {
        field.name: ["" if (value := getattr(each, field.name)) is None else str(value) for each in corpus]
        for field in fields(Utterance)
        if field.name != "path"
    }
    if not corpus.speakers_known:
        del found[WHO]
    return found


def _of_table(name: str) -> dict[str, list[str]]:
    """The columns of a table and its label; of Adult the census's own."""
    if name == "adult":
        census = load_adult_raw()
        found = {name: list(map(str, values.tolist())) for name, values in census.numbers.items()}
        found |= {name: [value or "" for value in values] for name, values in census.categories.items()}
        return found | {"income": [">50K" if label else "<=50K" for label in census.labels.tolist()]}
    table: Table = load_table(name)
    found = {
        column: [f"{value:g}" for value in table.features[:, place].tolist()]
        for place, column in enumerate(table.feature_names)
    }
    found |= {more: list(map(str, values.tolist())) for more, values in table.extra.items()}
    if table.groups is not None:
        found[WHO] = list(map(str, table.groups.tolist()))
    return found | {"label": [table.label_names[label] for label in table.labels.tolist()]}
