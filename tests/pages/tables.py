"""Tables in Markdown, and what docstrings say of parameters."""

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; bars within cells are escaped."""
    lines = [head, ["---"] * len(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def section(kind: Any, name: str) -> dict[str, str]:
    """The entries of a Google section (`Args`, `Attributes`) of a docstring, by parameter."""
    lines, found, inside, last = inspect.getdoc(kind).splitlines(), {}, False, ""  # type: ignore[union-attr]
    for line in lines:
        if line == f"{name}:":
            inside = True
        elif inside and line and not line.startswith(" "):
            break
        elif inside and (entry := re.fullmatch(r" {4}(\w[\w, ]*): (.*)", line)):
            last = entry[1]
            found[last] = entry[2]
        elif inside and line.startswith("        "):
            found[last] += " " + line.strip()
    return {each.strip(): text for names, text in found.items() for each in names.split(",")}


def summary(kind: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(inspect.getdoc(kind).split("\n\n")[0].split())  # type: ignore[union-attr]


def written_type(annotation: Any) -> str:
    """A type as people read it."""
    said = annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else annotation
    said = re.sub(r"\b(typing|collections\.abc|pathlib|ppspeech(\.\w+)+)\.", "", str(said))
    return re.sub(r"Literal\[(.*?)\]", lambda found: found[1].replace(", ", " or ").replace("'", ""), said)
