"""What a mutant is."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Edit:
    """A text in a file, relative to the repository, that occurs there once, and what takes its place."""

    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        """Change the file under `root`. Raises ValueError if the text is not there exactly once."""
        path = root / self.file
        source = path.read_text()
        if source.count(self.old) != 1:
            raise ValueError(f"{self.file} has {source.count(self.old)} times, not once: {self.old}")
        path.write_text(source.replace(self.old, self.new))


@dataclass(frozen=True)
class Mutant:
    """One change for the worse.

    Attributes:
        name: short; those of the review of the cryptography are m01 to m33.
        breaks: what a party learns or may do with it.
        edits: what is changed; together they leave a program that still gives right answers, where that can be.
        tests: what pytest is to run; one of these must fail.
    """

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


def mutant(name: str, breaks: str, tests: str, *edits: tuple[str, str, str]) -> Mutant:
    """A mutant from plain texts; `tests`: arguments of pytest, apart by spaces."""
    return Mutant(
        name, breaks, tuple(Edit(f"ppspeech/{file}", old, new) for file, old, new in edits), tuple(tests.split())
    )
