"""`ppspeech bench NAME`: measured figures, side by side with peers in one run.

Every benchmark is a function `(quick) -> list[Figure]` registered by its own file. The first paragraph of its
docstring, and one that begins with "Needs", is what `ppspeech bench` lists.
"""

from collections.abc import Callable

from ppspeech.figures import Figure
from ppspeech.registry import Registry

BENCHES: Registry[Callable[[bool], list[Figure]]] = Registry("benchmark", "ppspeech.evidence.bench")

__all__ = ["BENCHES"]
