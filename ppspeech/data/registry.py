"""Corpora and tables by name: loaders enter with a decorator, people ask with `load_corpus` and `load_table`."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ppspeech.data.corpus import Corpus
from ppspeech.errors import CorpusError
from ppspeech.registry import Registry

if TYPE_CHECKING:  # the tables import this file to register themselves
    from ppspeech.data.tables.table import Table

Loaded = TypeVar("Loaded")

CORPORA: Registry[Callable[..., Corpus]] = Registry("corpus", "ppspeech.data.corpora", error=CorpusError)
TABLES: "Registry[Callable[..., Table]]" = Registry("table", "ppspeech.data.tables", error=CorpusError)


register_corpus = CORPORA.register
corpus_names = CORPORA.names
register_table = TABLES.register
table_names = TABLES.names


def load_corpus(name_or_path: str | Path, **options: Any) -> Corpus:
    """Load a corpus by its registered name, or from a folder.

    A name goes before a folder of the same name in the current one (write `./music` for that). A folder is read by its
    `manifest.csv`, or else, if it holds folders of recordings, as Speech Commands: a folder a word. `options` are what
    the loader takes; every one but `synthetic` takes `folder`. Raises CorpusError if it is neither, or the corpus is
    damaged or incomplete.
    """
    name = str(name_or_path)
    # The empty string is no name, and as a path it would be the current folder.
    if not name or name in corpus_names() or not Path(name).is_dir():
        return _load(CORPORA, name, options)
    from ppspeech.data.corpora.folder import MANIFEST
    from ppspeech.data.corpora.speech_commands import has_word_folders

    folder = Path(name)
    if (folder / MANIFEST).is_file():
        return _load(CORPORA, "folder", {"folder": folder, **options})
    if has_word_folders(folder):
        return _load(CORPORA, "speech_commands", {"folder": folder, **options})
    raise CorpusError(
        f"the folder {folder} has no {MANIFEST} and no folders of recordings: write a {MANIFEST} with the columns path "
        "and speaker, or put the recordings into one folder a word"
    )


def options_for(corpus: str | Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for a corpus's loader, which may be given by corpus: a recipe then takes any other corpus as well.

    >>> options_for("synthetic", {"synthetic": {"seed": 1}}), options_for("my_folder", {"synthetic": {"seed": 1}})
    ({'seed': 1}, {})
    >>> options_for("synthetic", {"seed": 1})
    {'seed': 1}
    """
    by_corpus = options and all(isinstance(value, Mapping) for value in options.values())
    return dict(options.get(str(corpus), {})) if by_corpus else dict(options)


def load_table(name: str, **options: Any) -> "Table":
    """Load a table by its registered name, or from a CSV file with a header (see `read_table`).

    `options` are what the loader takes.
    """
    if not name.endswith(".csv"):
        return _load(TABLES, name, options)
    from ppspeech.data.tables.own import read_table

    return read_table(name, **options)


def _load(registry: Registry[Callable[..., Loaded]], name: str, options: dict[str, Any]) -> Loaded:
    loader = registry[name]
    try:
        inspect.signature(loader).bind(**options)
    except TypeError as error:
        raise CorpusError(f"{registry.kind} {name!r} cannot be loaded with these options: {error}") from None
    return loader(**options)
