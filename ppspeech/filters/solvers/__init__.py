"""How minimax problems are solved."""

from ppspeech.filters.solvers.joint import Joint
from ppspeech.filters.solvers.kiwiel import KiwielOptions, descend

__all__ = ["Joint", "KiwielOptions", "descend"]
