"""What a release promises: the values that every statement about privacy is made of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, TypeVar, cast, get_args

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import Event, epsilon_of
from ppspeech.privacy.parameters import check_choice, check_finite, check_positive, check_probability
from ppspeech.privacy.relation import Adjacency, Relation, Unit, check_relation, relation_from_json, relation_to_json

Kind = Literal["pure", "approximate", "zcdp", "unproven", "broken", "none"]
"""The first three are proofs. `unproven`: nobody has shown it. `broken`: an attack exists. `none`: never claimed."""

PROVEN: frozenset[Kind] = frozenset({"pure", "approximate", "zcdp"})

REAL_NOISE = "noise is a float: low-order bits can leak (Mironov 2012)"
"""The caveat of every mechanism that is not float-safe."""

MOST_DELTA = 1e-3
"""The largest delta that a model is released with: whoever publishes one record in a thousand as it is keeps it."""

Value = TypeVar("Value", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """A statement of differential privacy that cannot be written without its relation.

    Formally, for kinds `pure` and `approximate`: for all neighboring D, D' and all sets S of outputs,
    P(M(D) in S) <= exp(epsilon) P(M(D') in S) + delta. For kind `zcdp` the Renyi divergence of every order
    alpha is at most alpha rho. The other kinds promise nothing: their epsilon is infinite, and what a paper
    claims stands in `claimed_epsilon`, where no accountant reads it.

    Attributes:
        epsilon: >= 0; infinite where nothing is proven, or where only `rho` is stated.
        rho: the zCDP parameter, where there is one.
        float_safe: the released bits themselves obey the statement; False where real numbers were rounded to
            floats after the noise was drawn (Mironov 2012).
        caveat: what a reader must know; required for every kind that is not a proof.
        claimed_epsilon: what the publication states, for kinds that are not a proof.
    """

    kind: Kind
    relation: Relation
    epsilon: float = math.inf
    delta: float = 0.0
    rho: float | None = None
    float_safe: bool = False
    assumptions: tuple[str, ...] = ()
    caveat: str = ""
    claimed_epsilon: float | None = None

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(Kind))
        check_relation(self.relation)
        if math.isnan(self.epsilon) or self.epsilon < 0:
            raise PrivacyError(f"epsilon must be >= 0, got {self.epsilon}")
        check_probability("delta", self.delta, zero=True)
        if self.proven:
            if self.claimed_epsilon is not None:
                raise PrivacyError(f"a proven guarantee ({self.kind}) states epsilon itself, not claimed_epsilon")
            if self.kind == "zcdp":
                check_positive("rho", self.rho, zero=True)
            elif math.isinf(self.epsilon):
                raise PrivacyError(f"a guarantee of kind {self.kind!r} needs a finite epsilon")
            if self.kind == "pure" and self.delta != 0:
                raise PrivacyError(f"pure privacy has delta = 0, got {self.delta}; use kind='approximate'")
        else:
            if not math.isinf(self.epsilon) or self.rho is not None:
                raise PrivacyError(f"kind {self.kind!r} proves nothing: put what is claimed into claimed_epsilon")
            if not self.caveat:
                raise PrivacyError(f"a guarantee of kind {self.kind!r} must say why in its caveat")

    @classmethod
    def of(cls, event: Event, delta: float = 0.0, **more: Any) -> "Guarantee":
        """What an event promises at this delta; pure privacy at 0."""
        kind: Kind = "pure" if delta == 0 else "approximate"
        epsilon = epsilon_of(cast(Any, event), delta)
        terms: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "float_safe": event.float_safe}
        return cls(kind=kind, relation=event.relation, **terms, **more)

    @property
    def unit(self) -> Unit:
        """What is protected."""
        return self.relation.unit

    @property
    def adjacency(self) -> Adjacency:
        """What neighboring means."""
        return self.relation.adjacency

    @property
    def proven(self) -> bool:
        """Whether this is a statement that may enter an account."""
        return self.kind in PROVEN

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file; an infinite epsilon is written as null."""
        plain = relation_to_json({field.name: getattr(self, field.name) for field in fields(self)})
        plain["epsilon"] = None if math.isinf(self.epsilon) else self.epsilon
        plain["assumptions"] = list(self.assumptions)
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Guarantee":
        """Read what `to_json` wrote; PrivacyError for a missing, unknown or mistyped field."""
        names = {field.name for field in fields(cls)} - {"relation"} | {"unit", "adjacency"}
        if not isinstance(plain, Mapping) or set(plain) != names:
            found = sorted(plain) if isinstance(plain, Mapping) else type(plain).__name__
            raise PrivacyError(f"a guarantee has the fields {sorted(names)}, got {found}")
        for name in ("epsilon", "delta", "rho", "claimed_epsilon"):
            if name == "delta" or plain[name] is not None:
                check_finite(name, plain[name])
        for name in ("kind", "unit", "adjacency", "caveat"):
            if not isinstance(plain[name], str):
                raise PrivacyError(f"{name} must be text, got {plain[name]!r}")
        if not isinstance(plain["float_safe"], bool):
            raise PrivacyError(f"float_safe must be true or false, got {plain['float_safe']!r}")
        assumptions = plain["assumptions"]
        if not isinstance(assumptions, list) or not all(isinstance(line, str) for line in assumptions):
            raise PrivacyError(f"assumptions must be a list of texts, got {assumptions!r}")
        epsilon = math.inf if plain["epsilon"] is None else plain["epsilon"]
        return cls(**{**relation_from_json(plain), "epsilon": epsilon, "assumptions": tuple(assumptions)})

    def __str__(self) -> str:
        """One line for people, with what must not be missed: whether it holds to the bit, and the caveat.

        >>> print(Guarantee(kind="pure", epsilon=1.0, relation=Relation("speaker", "add_remove"), float_safe=True))
        1-DP for one speaker (add_remove), to the bit
        """
        relation = f"for {self.relation}"
        if not self.proven:
            claim = "" if self.claimed_epsilon is None else f", claimed epsilon {self.claimed_epsilon:.4g}"
            return f"no guarantee ({self.kind}{claim}) {relation}: {self.caveat}"
        pair = f"{self.epsilon:.4g}" if self.delta == 0 else f"({self.epsilon:.4g}, {self.delta:.3g})"
        stated = f"{self.rho:.4g}-zCDP" if self.kind == "zcdp" else f"{pair}-DP"
        bits = "to the bit" if self.float_safe else "for real numbers, not the last bits of floats"
        rest = self.caveat.removeprefix(REAL_NOISE).removeprefix("; ")  # the caveat of floats is said already
        return f"{stated} {relation}, {bits}" + (f"; {rest}" if rest else "")


@dataclass(frozen=True, slots=True)
class Released(Generic[Value]):
    """What leaves a mechanism: the noisy value, the event to book, and the promise made by this release alone."""

    value: Value
    event: Event
    guarantee: Guarantee
