"""The parts of reference pages that are written from the code: `python -m tests.pages` puts them in.

A part stands between `<!-- written: NAME -->` and `<!-- end -->`; `tests/test_formats.py` compares them.
"""

import re
from collections.abc import Callable
from pathlib import Path

from tests.pages import bundles, recipes, wires

TOP = Path(__file__).parents[2]
PART = re.compile(r"(<!-- written: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "docs/reference/wire.md": {"kinds": wires.kinds, "requests": wires.requests, "constants": wires.constants},
    "docs/reference/bundle.md": {
        "files": bundles.files,
        "types": bundles.types,
        "tensors": bundles.tensors,
        "events": bundles.events,
        "formats": bundles.formats,
        "limits": bundles.limits,
    },
    "docs/reference/configs.md": {
        "recipes": recipes.recipes,
        "privacy": recipes.privacy,
        "classes": recipes.classes,
        "filters": recipes.filters,
        "front_end": recipes.front_end,
    },
}


def parts(text: str) -> dict[str, str]:
    """The written parts of a page, by name."""
    return {name: body for _, name, body, _ in PART.findall(text)}


def renewed(page: str, text: str) -> str:
    """A page with its parts as the code has them now."""
    return PART.sub(lambda found: f"{found[1]}{PAGES[page][found[2]]()}\n{found[4]}", text)
