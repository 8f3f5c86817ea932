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
        mechanism: what was audited.
        method: `exact`, `sampling`, `one_run` or `identity`.
        relation: of the statement that was audited.
        eps_stated: the epsilon stated or claimed.
        eps_lower: the mechanism's epsilon is at least this, with `confidence`.
        delta: the delta that the statement allows.
        confidence: of the lower bound; 1 for exact calculations.
        tpr: true positive rate of the attack, where there is one.
        fpr: its false positive rate.
        power: the largest eps_lower that this audit could have found with a perfect attack.
        note: anything a reader needs.
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
