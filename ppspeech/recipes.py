"""The recipes that ppspeech brings along: YAML files in `configs`, found by name from wherever one works."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ppspeech.errors import ModelError

INSIDE, BESIDE = Path(__file__).parent / "configs", Path(__file__).parents[1] / "configs"
"""Where a wheel has them, and where the project has them: the same files."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe by name: what it trains, and what it takes in data and time, as the head of its file says."""

    name: str
    path: Path
    summary: str
    takes: str

    @property
    def is_filter(self) -> bool:
        """Whether it is for `ppspeech filter train`, and not for `ppspeech train`."""
        return self.name.startswith("filter_")

    @classmethod
    def read(cls, path: Path) -> "Recipe":
        """The first line is the summary; another begins with `Takes`."""
        head = [line.removeprefix("#").strip() for line in path.read_text(encoding="utf-8").splitlines()[:4]]
        takes = next((line.removeprefix("Takes ") for line in head if line.startswith("Takes ")), "")
        return cls(path.stem, path, head[0], takes)


def shipped_recipes() -> dict[str, Recipe]:
    """All of them by name."""
    folder = INSIDE if INSIDE.is_dir() else BESIDE
    return {path.stem: Recipe.read(path) for path in sorted(folder.glob("*.yaml"))}


def find_recipe(given: str | Path) -> Path:
    """The file of a recipe, by its own path or a shipped one's name. Raises ModelError if there is neither."""
    if Path(given).is_file():
        return Path(given)
    shipped = shipped_recipes()
    name = Path(given).name.removesuffix(".yaml")
    if name in shipped and str(given) in {name, f"{name}.yaml", f"configs/{name}.yaml"}:
        return shipped[name].path
    close = get_close_matches(name, shipped, n=2)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    raise ModelError(f"no recipe {str(given)!r}, a file or a name: {hint}shipped are {', '.join(shipped)}")
