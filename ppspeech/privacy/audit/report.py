"""What an audit found."""

import math
from dataclasses import dataclass
from typing import Literal

from ppspeech.privacy.relation import Relation

Verdict = Literal["violated", "no violation found"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """A lower bound on the epsilon of a mechanism. An audit can refute privacy; it never proves it.

    Attributes:
        method: `exact`, `sampling`, `one_run` or `identity`.
        eps_lower: the mechanism's epsilon is at least this, with `confidence`.
        confidence: of the lower bound; 1 for exact calculations.
        power: the largest eps_lower that this audit could have found with a perfect attack.
    """

    mechanism: str
    method: str
    relation: Relation
    eps_stated: float
    eps_lower: float
    delta: float = 0.0
    confidence: float = 1.0
    tpr: float = math.nan
    fpr: float = math.nan
    power: float = math.inf
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the lower bound exceeds what was stated (1e-6 is left for rounding)."""
        return "violated" if self.eps_lower > self.eps_stated * (1 + 1e-6) + 1e-9 else "no violation found"
