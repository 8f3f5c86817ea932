"""Corpora and tables by name: loaders enter with a decorator, people ask with `load_corpus` and `load_table`."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ppspeech.data.utterance import Corpus
from ppspeech.errors import CorpusError

if TYPE_CHECKING:  # the tables import this file to register themselves
    from ppspeech.data.tables.table import Table

Loaded = TypeVar("Loaded")
Loader = TypeVar("Loader", bound=Callable[..., Any])


class Registry(Generic[Loaded]):
    """Loaders by name.

    The package's own loaders register when their modules are imported, and that happens at the first
    question, so that importing this file stays light and no module has to import its own users.

    Args:
        kind: what is registered, for the errors: `corpus` or `table`.
        modules: the modules that hold the package's own loaders.
    """

    def __init__(self, kind: str, modules: tuple[str, ...]) -> None:
        self.kind = kind
        self._modules = modules
        self._loaders: dict[str, Callable[..., Loaded]] = {}

    def register(self, name: str) -> Callable[[Loader], Loader]:
        """A decorator that enters a loader under `name`, which must not be taken."""

        def enter(loader: Loader) -> Loader:
            if name in self._loaders:
                raise CorpusError(f"a {self.kind} called {name!r} is registered already; choose another name")
            self._loaders[name] = loader
            return loader

        return enter

    def names(self) -> tuple[str, ...]:
        """The registered names, sorted."""
        for module in self._modules:
            import_module(module)
        return tuple(sorted(self._loaders))

    def load(self, name: str, options: dict[str, Any]) -> Loaded:
        """Call the loader called `name`.

        Raises:
            CorpusError: if there is none, or it does not take these options.
        """
        names = self.names()
        if name not in self._loaders:
            close = get_close_matches(name, names, n=2)
            hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
            raise CorpusError(f"no {self.kind} called {name!r}: {hint}known are {', '.join(names)}")
        loader = self._loaders[name]
        try:
            inspect.signature(loader).bind(**options)
        except TypeError as error:
            raise CorpusError(f"{self.kind} {name!r} cannot be loaded with these options: {error}") from None
        return loader(**options)


CORPORA: Registry[Corpus] = Registry(
    "corpus",
    (
        "ppspeech.data.audiomnist",
        "ppspeech.data.emodb",
        "ppspeech.data.folder",
        "ppspeech.data.fsdd",
        "ppspeech.data.librispeech",
        "ppspeech.data.music",
        "ppspeech.data.speech_commands",
        "ppspeech.data.wakewords",
        "ppspeech.data.yesno",
    ),
)
TABLES: "Registry[Table]" = Registry(
    "table",
    (
        "ppspeech.data.tables.adult",
        "ppspeech.data.tables.breast_cancer",
        "ppspeech.data.tables.genki",
        "ppspeech.data.tables.har",
    ),
)


def register_corpus(name: str) -> Callable[[Loader], Loader]:
    """Enter a function that returns a `Corpus` under `name`; a name that is taken is refused."""
    return CORPORA.register(name)


def register_table(name: str) -> Callable[[Loader], Loader]:
    """Enter a function that returns a `Table` under `name`; a name that is taken is refused."""
    return TABLES.register(name)


def corpus_names() -> tuple[str, ...]:
    """The corpora that `load_corpus` knows by name, sorted."""
    return CORPORA.names()


def table_names() -> tuple[str, ...]:
    """The tables that `load_table` knows, sorted."""
    return TABLES.names()


def load_corpus(name_or_path: str | Path, **options: Any) -> Corpus:
    """Load a corpus by its registered name, or from a folder.

    A name goes before a folder of the same name in the current one (write `./music` for that). A folder is
    read by its `manifest.csv`, or else as Speech Commands if it is laid out so.

    Args:
        name_or_path: such as `fsdd`, or the path of a folder.
        **options: what the loader takes; every one but `synthetic` takes `folder`.

    Raises:
        CorpusError: if it is neither, or the corpus is damaged or incomplete.
    """
    name = str(name_or_path)
    # The empty string is no name, and as a path it would be the current folder.
    if not name or name in corpus_names() or not Path(name).is_dir():
        return CORPORA.load(name, options)
    from ppspeech.data.folder import MANIFEST
    from ppspeech.data.speech_commands import has_speech_commands_layout

    folder = Path(name)
    if (folder / MANIFEST).is_file():
        return CORPORA.load("folder", {"folder": folder, **options})
    if has_speech_commands_layout(folder):
        return CORPORA.load("speech_commands", {"folder": folder, **options})
    raise CorpusError(
        f"the folder {folder} has no {MANIFEST} and is not laid out as Speech Commands: "
        f"write a {MANIFEST} with the columns path and speaker"
    )


def load_table(name: str, **options: Any) -> "Table":
    """Load a table by its registered name.

    Args:
        name: such as `adult`.
        **options: what the loader takes.

    Raises:
        CorpusError: if there is no such table, or its file is damaged.
    """
    return TABLES.load(name, options)


@register_corpus("synthetic")
def load_synthetic(**fields: Any) -> Corpus:
    """Make the corpus of built-in voices; `fields` are those of `SyntheticCorpus`."""
    from ppspeech.data.synthetic import SyntheticCorpus

    try:
        inspect.signature(SyntheticCorpus).bind(**fields)
    except TypeError as error:
        raise CorpusError(f"corpus 'synthetic' cannot be made with these options: {error}") from None
    return SyntheticCorpus(**fields).build()
