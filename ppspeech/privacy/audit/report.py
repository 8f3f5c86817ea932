"""What an audit found."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from ppspeech.privacy.guarantee import Guarantee
from ppspeech.privacy.relation import Relation

Verdict = Literal["violated", "no violation found"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """A lower bound on the epsilon of a mechanism. An audit can refute privacy; it never proves it.

    `eps_lower` holds with `confidence`, 1 for exact calculations; `method` is `exact`, `sampling`, `one_run`,
    `one_run_gaussian` or `identity`; `power` is the largest eps_lower that a perfect attack could have found here. What
    its number means: Theorem 1.38 in docs/theory/release.md.
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

    @classmethod
    def of(cls, name: str, method: str, stated: Guarantee, eps_lower: float, **more: Any) -> "AuditReport":
        """Of a guarantee under test: held to its proven epsilon, else to the claimed one."""
        epsilon = stated.epsilon if stated.claimed_epsilon is None else stated.claimed_epsilon
        terms: dict[str, Any] = {"relation": stated.relation, "eps_stated": epsilon, "delta": stated.delta}
        return cls(mechanism=name, method=method, eps_lower=eps_lower, **terms, **more)

    @property
    def verdict(self) -> Verdict:
        """Whether the lower bound exceeds what was stated (1e-6 is left for rounding)."""
        return "violated" if self.eps_lower > self.eps_stated * (1 + 1e-6) + 1e-9 else "no violation found"
