"""Things by name: whoever has one enters it with a decorator, whoever wants one asks for it."""

import ast
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from ppspeech.errors import PpspeechError

Entry = TypeVar("Entry")
Decorated = TypeVar("Decorated")


class Registry(Mapping[str, Entry]):
    """A closed list that grows only by registration; a name is given once, and unknown ones are refused with a hint.

    The package's own entries register when their modules are imported, and that happens at the first question: a
    registry is light to import, and no module has to know who enters it. An entry named after its file is found
    without importing the others.

    Args:
        kind: what is registered, in one word, for the errors.
        packages: whose modules hold entries; further ones come with `look_in`.
        error: what a wrong name raises.

    >>> coins = Registry("coin")
    >>> @coins.register("cent")
    ... def cent() -> int:
    ...     return 1
    >>> coins["cent"]()
    1
    >>> coins["sent"]
    Traceback (most recent call last):
    ...
    ppspeech.errors.PpspeechError: no coin called 'sent': did you mean 'cent'? known are cent
    """

    def __init__(self, kind: str, *packages: str, error: type[PpspeechError] = PpspeechError) -> None:
        self.kind = kind
        self.error = error
        self._packages = list(packages)
        self._entries: dict[str, Entry] = {}

    def look_in(self, package: str) -> None:
        """Also ask the modules of `package`, such as those of a room that this one may not import."""
        if package not in self._packages:
            self._packages.append(package)

    def register(self, name: str) -> Callable[[Decorated], Decorated]:
        """A decorator that enters something under `name`, which must not be taken."""

        def enter(entry: Decorated) -> Decorated:
            self.enter(name, entry)  # type: ignore[arg-type]
            return entry

        return enter

    def enter(self, name: str, entry: Entry) -> Entry:
        """Enter something under `name`, which must not be taken."""
        if name in self._entries:
            raise self.error(f"a {self.kind} called {name!r} is registered already; choose another name")
        self._entries[name] = entry
        return entry

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        for package in self._packages:
            for module in _modules(package):
                import_module(module)
        return tuple(sorted(self._entries))

    def name_of(self, entry: object) -> str:
        """The name that something is registered under.

        Raises:
            PpspeechError: if it is not.
        """
        for name in self.names():
            if self._entries[name] is entry:
                return name
        raise self.error(f"{getattr(entry, '__name__', entry)!r:.80} is not a registered {self.kind}")

    def __getitem__(self, name: str) -> Entry:
        """What is called `name`; whoever asks for something else gets an error that helps."""
        if name not in self._entries:
            self._import_namesake(name)
        if name not in self._entries:
            names = self.names()
            if name not in self._entries:
                close = get_close_matches(str(name), names, n=2)
                hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
                raise self.error(f"no {self.kind} called {name!r:.80}: {hint}known are {', '.join(names) or 'none'}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        """Whether something has this name."""
        return name in self._entries or name in self.names()

    def __iter__(self) -> Iterator[str]:
        """All names, sorted."""
        return iter(self.names())

    def __len__(self) -> int:
        """How many there are."""
        return len(self.names())

    def _import_namesake(self, name: Any) -> None:
        for package in self._packages:
            for module in _modules(package):
                if module.rpartition(".")[2] == str(name).replace("-", "_"):
                    import_module(module)
                    return


@dataclass(frozen=True, slots=True)
class Listed:
    """What can be said of an entry without importing it: what it is, and what it needs where its file says so."""

    about: str
    needs: str = ""


def listed(package: str, by: str = "register") -> dict[str, Listed]:
    """What the files below a package enter under which name, found without importing any of them.

    An entry is a call of `by` with a name. It is described by the first further text in the call (`functionality` of
    a protocol), else by the first paragraph of its file; a paragraph of the file that begins with "Needs" says so.
    """
    top, *inner = package.split(".")
    found_at = find_spec(top)
    assert found_at is not None
    assert found_at.origin is not None
    place = Path(found_at.origin).parent.joinpath(*inner)
    found = {}
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
        text = path.read_text(encoding="utf-8")
        if f"{by}(" not in text:
            continue  # most files: reading is quick, parsing is not
        tree = ast.parse(text)
        paragraphs = [" ".join(part.split()) for part in (ast.get_docstring(tree) or "").split("\n\n")]
        needs = next((part[6:].rstrip(".") for part in paragraphs if part.startswith("Needs ")), "")
        for node in ast.walk(tree):
            match node:
                case ast.Call(args=[ast.Constant(value=str(name)), *more]) if _called(node.func) == by:
                    texts = [*more, *(keyword.value for keyword in node.keywords if keyword.arg == "functionality")]
                    said = [each.value for each in texts if isinstance(each, ast.Constant)]
                    found[name] = Listed(str(said[0]) if said else paragraphs[0], needs)
    return dict(sorted(found.items()))


def _called(function: ast.expr) -> str:
    """The last name of what is called."""
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _modules(package: str) -> list[str]:
    """The modules below a package, or the module itself."""
    path = getattr(import_module(package), "__path__", None)
    if path is None:
        return [package]
    return sorted(module.name for module in pkgutil.walk_packages(path, f"{package}."))
