"""`ppspeech reproduce NAME`: results measured again on the real corpora, with plots.

Every experiment is a module of this package with `run(quick, folder) -> list[Figure]`: `folder` is where its pictures
go. The first paragraph of its docstring, and one that begins with "Needs", is what `ppspeech reproduce` lists.
"""

from collections.abc import Callable
from pathlib import Path

from ppspeech.figures import Figure
from ppspeech.registry import Registry

EXPERIMENTS: Registry[Callable[[bool, Path], list[Figure]]] = Registry("experiment", "ppspeech.evidence.experiments")

__all__ = ["EXPERIMENTS"]
