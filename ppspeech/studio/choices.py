"""What pages may choose from, and what they asked for: only what the studio was told of, within bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

from ppspeech.errors import PpspeechError

MOST_BUNDLES = 200


@dataclass(frozen=True)
class Places:
    """Where a studio looks and writes. `folders`: bundles, or folders of bundles. `corpora`: folders of recordings.
    `work`: what it makes, a folder a run.
    """

    work: Path
    folders: tuple[Path, ...] = ()
    corpora: tuple[Path, ...] = ()
    tables: tuple[str, ...] = field(default=("breast_cancer", "adult"))

    @property
    def made(self) -> Path:
        """Where bundles that are released here are."""
        return self.work / "bundles"

    def bundles(self) -> dict[str, Path]:
        """By a name of ours: pages never say a path. Those that are there now; what was made here last."""
        found: dict[str, Path] = {}
        for folder in (*self.folders, self.made):
            inside = sorted(folder.iterdir()) if folder.is_dir() and not _is_bundle(folder) else [folder]
            for path in inside:
                if _is_bundle(path) and len(found) < MOST_BUNDLES:
                    found[_unused(path.resolve().name, found)] = path.resolve()
        return found

    def recordings(self) -> dict[str, str]:
        """Corpora by name: those that are known, and folders that were given."""
        from ppspeech.data import corpus_names

        found = {name: name for name in corpus_names() if name != "folder"}
        for path in self.corpora:
            found[_unused(path.resolve().name, found)] = str(path.resolve())
        return found


def _unused(name: str, found: Mapping[str, Any]) -> str:
    """The name, with a number where another one has it."""
    numbered = (f"{name} ({number})" for number in count(2))
    return next(each for each in chain([name], numbered) if each not in found)


def _is_bundle(path: Path) -> bool:
    return (path / "privacy.json").is_file() and (path / "config.json").is_file()


class Asked:
    """What a page asked for: fields that are known and of their kind, else a PpspeechError that names them."""

    def __init__(self, plain: Any, known: Sequence[str]) -> None:
        if not isinstance(plain, dict) or set(plain) - set(known):
            raise PpspeechError(f"this is asked for by {', '.join(known)}, got {_short(plain)}")
        self._plain: dict[str, Any] = plain

    def one_of(self, name: str, known: Mapping[str, Any] | Sequence[str]) -> str:
        """A name among those that are known."""
        value = self._plain.get(name)
        if not isinstance(value, str) or value not in known:
            raise PpspeechError(
                f"{name} must be one of {', '.join(known) or 'none: there are none yet'}, got {_short(value)}"
            )
        return value

    def number(self, name: str, least: float, most: float, *, whole: bool = False) -> float:
        """A number in a range, its ends included."""
        value = self._plain.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise PpspeechError(f"{name} must be between {least:g} and {most:g}, got {_short(value)}")
        if whole and value != int(value):
            raise PpspeechError(f"{name} must be a whole number, got {_short(value)}")
        return float(value)

    def maybe(self, name: str, least: float, most: float) -> float | None:
        """The same, or nothing."""
        return None if self._plain.get(name) is None else self.number(name, least, most)


def _short(value: Any) -> str:
    return f"{value!r:.80}"
