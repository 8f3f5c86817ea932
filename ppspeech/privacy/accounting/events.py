"""Events: what happened to the data, in the form an accountant composes and a file can hold.

An event's meaning never changes: the same JSON gives the same epsilon for ever. It carries parameters only, no
noise, no data and no seed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.hockey_stick import smallest_epsilon
from ppspeech.privacy.accounting.loss import TAIL, LossDistribution, loss_from_survival, loss_of_pair
from ppspeech.privacy.accounting.renyi import delta_from_zcdp, epsilon_from_zcdp
from ppspeech.privacy.parameters import check_count, check_positive, check_probability
from ppspeech.privacy.relation import HOLDERS, Relation, Unit, relation_from_json, relation_to_json
from ppspeech.registry import Registry

INTERVAL = 1e-4  # default bucket width of privacy loss distributions


class UnsupportedAnalysisError(PrivacyError):
    """An event that has no bound in the form asked for; another method of the accountant may have one."""


class Event(Protocol):
    """What a mechanism did, seen as bounds on its privacy loss under one relation.

    Every bound is an upper bound; `pure` and `zcdp` are None where the mechanism has no such parameter, and
    `rdp` and `pld` raise `UnsupportedAnalysisError` where no bound is known.
    """

    type_name: ClassVar[str] = ""

    @property
    def relation(self) -> Relation:
        """What is protected, and what neighboring means."""

    @property
    def float_safe(self) -> bool:
        """Whether the released bits themselves obey the bounds: only where the noise was drawn on a grid, exactly."""
        return False

    def delta(self, epsilon: float) -> float:
        """The smallest known delta at this epsilon >= 0."""

    def epsilon(self, delta: float) -> float:
        """The smallest known epsilon at this delta; infinite if there is none."""
        check_probability("delta", delta, zero=True)
        if delta == 0:
            pure = self.pure()
            return math.inf if pure is None else pure
        return smallest_epsilon(self.delta, delta)

    def rdp(self, alpha: float) -> float:
        """The Renyi divergence of order alpha > 1; alpha rho, unless more is known."""
        rho = self.zcdp()
        if rho is None:
            raise UnsupportedAnalysisError(f"event {self.type_name!r} has no Renyi divergence of order {alpha}")
        return alpha * rho

    def zcdp(self) -> float | None:
        """The zCDP parameter rho."""
        return None

    def pure(self) -> float | None:
        """The epsilon at delta = 0."""
        return None

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """A pessimistic privacy loss distribution with buckets of `interval`."""

    def grouped(self, size: int, relation: Relation) -> "Event":
        """Seen by a unit that holds up to `size` of this one's: M epsilon, or M^2 rho; without both PrivacyError."""
        pure, rho = self.pure(), self.zcdp()
        if pure is not None:
            return PureEvent(size * pure, relation)
        if rho is not None:
            return ZcdpEvent(size**2 * rho, relation)
        raise PrivacyError(
            f"event {self.type_name!r} for one {self.relation.unit} cannot be converted to one {relation.unit}: "
            "bound the contribution of the larger unit directly"
        )

    def merged(self, entries: "Sequence[tuple[Event, int]]") -> "Event | None":  # noqa: ARG002
        """The one event that several of this type, each so many times, are exactly equal to; None if there is none."""
        return None


class PureLike(Event, Protocol):
    """An event of which only the epsilon at delta = 0 is known; better bounds than these override them."""

    def pure(self) -> float:
        """The epsilon at delta = 0."""

    def delta(self, epsilon: float) -> float:
        """The profile of randomized response, which is the worst epsilon-DP mechanism."""
        return pure_delta(self.pure(), epsilon)

    def rdp(self, alpha: float) -> float:
        """min(epsilon, alpha rho)."""
        return min(self.pure(), alpha * self.zcdp())

    def zcdp(self) -> float:
        """epsilon^2 / 2."""
        return self.pure() ** 2 / 2

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Of randomized response."""
        return loss_of_pair(self.pure(), 0.0, interval)


Registered = TypeVar("Registered", bound=type)

ROOMS = tuple(f"ppspeech.privacy.{room}" for room in ("accounting", "mechanisms", "convex", "gradients", "anonymity"))
EVENTS: Registry[type[Any]] = Registry("type of event", *ROOMS, error=PrivacyError)


def register_event(name: str) -> Callable[[Registered], Registered]:
    """Enter a frozen dataclass into the closed list of events that a file may name."""

    def enter(kind: Registered) -> Registered:
        EVENTS.enter(name, kind)
        kind.type_name = name  # type: ignore[attr-defined]
        return kind

    return enter


def event_to_json(event: Event) -> dict[str, Any]:
    """The event as plain JSON values, its type by its registered name.

    >>> event_to_json(PureEvent(1.0, Relation("speaker", "add_remove")))
    {'type': 'pure', 'stated_epsilon': 1.0, 'unit': 'speaker', 'adjacency': 'add_remove'}
    """
    name = getattr(event, "type_name", "")
    if name not in EVENTS or type(event) is not EVENTS[name]:
        raise PrivacyError(f"{type(event).__name__} is not a registered event")
    plain = {field.name: _plain(getattr(event, field.name)) for field in fields(EVENTS[name])}
    return {"type": event.type_name, **relation_to_json(plain)}


def event_from_json(plain: Mapping[str, Any]) -> Event:
    """Rebuild an event. Nothing is imported by name: only registered types and exactly their fields pass."""
    if not isinstance(plain, Mapping) or not isinstance(plain.get("type"), str):
        raise PrivacyError(f"an event is an object with a type, got {plain!r}")
    kind = EVENTS[plain["type"]]
    wanted = {field.name for field in fields(kind)}
    if "relation" in wanted:
        wanted = wanted - {"relation"} | {"unit", "adjacency"}
    given = set(plain) - {"type"}
    if given != wanted:
        raise PrivacyError(
            f"event {plain['type']!r} needs exactly the fields {sorted(wanted)}: "
            f"missing {sorted(wanted - given)}, unknown {sorted(given - wanted)}"
        )
    values = {name: _frozen(plain[name]) for name in wanted}
    event: Event = kind(**(relation_from_json(values) if "unit" in values else values))
    return event


def _plain(value: Any) -> Any:
    if getattr(value, "type_name", None):
        return event_to_json(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return event_from_json(value)
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


@register_event("pure")
@dataclass(frozen=True, slots=True)
class PureEvent(PureLike):
    """Any mechanism known only to be epsilon-DP, for real numbers (gamma-norm noise)."""

    stated_epsilon: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("stated_epsilon", self.stated_epsilon, zero=True)

    def pure(self) -> float:
        """The stated epsilon."""
        return self.stated_epsilon


@register_event("exact_pure")
@dataclass(frozen=True, slots=True)
class ExactPureEvent(PureLike):
    """Any mechanism known only to be epsilon-DP, to the bit (sparse vector, permute-and-flip)."""

    stated_epsilon: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("stated_epsilon", self.stated_epsilon, zero=True)

    @property
    def float_safe(self) -> bool:
        """Its coins and noise are exact."""
        return True

    def pure(self) -> float:
        """The stated epsilon."""
        return self.stated_epsilon

    def grouped(self, size: int, relation: Relation) -> Event:
        """M epsilon."""
        return ExactPureEvent(size * self.stated_epsilon, relation)


@register_event("approximate")
@dataclass(frozen=True, slots=True)
class ApproximateEvent(Event):
    """Any mechanism known only by one pair (epsilon, delta)."""

    stated_epsilon: float
    stated_delta: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("stated_epsilon", self.stated_epsilon, zero=True)
        check_probability("stated_delta", self.stated_delta)

    def delta(self, epsilon: float) -> float:
        """delta + (1 - delta) times the profile of randomized response."""
        return self.stated_delta + (1 - self.stated_delta) * pure_delta(self.stated_epsilon, epsilon)

    def rdp(self, alpha: float) -> float:
        """A pair bounds no Renyi divergence."""
        raise UnsupportedAnalysisError(f"an (epsilon, delta) pair has no Renyi divergence of order {alpha}")

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Of the worst mechanism with this pair."""
        return loss_of_pair(self.stated_epsilon, self.stated_delta, interval)


@register_event("zcdp")
@dataclass(frozen=True, slots=True)
class ZcdpEvent(Event):
    """Any mechanism known only to be rho-zCDP."""

    rho: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("rho", self.rho, zero=True)

    def delta(self, epsilon: float) -> float:
        """By the best Renyi order."""
        return delta_from_zcdp(self.rho, epsilon)

    def epsilon(self, delta: float) -> float:
        """By the best Renyi order."""
        check_probability("delta", delta, zero=True)
        return epsilon_from_zcdp(self.rho, delta)

    def zcdp(self) -> float:
        """The stated rho."""
        return self.rho

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """From the Chernoff bound P(Z > t) <= exp(-(t - rho)^2 / 4 rho), t >= rho: valid and loose."""
        return loss_of_zcdp(self.rho, interval)


@register_event("non_private")
@dataclass(frozen=True, slots=True)
class NonPrivateEvent(Event):
    """A touch of the data that nothing protects: as-published formulas, plain training, tuning on private data."""

    reason: str
    relation: Relation

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason:
            raise PrivacyError(f"a non-private event must say what happened, got {self.reason!r}")

    def grouped(self, size: int, relation: Relation) -> Event:  # noqa: ARG002
        """Of nothing, nothing."""
        return NonPrivateEvent(self.reason, relation)

    def delta(self, epsilon: float) -> float:  # noqa: ARG002
        """One: there is no protection at any epsilon."""
        return 1.0

    def epsilon(self, delta: float) -> float:  # noqa: ARG002
        """Infinite."""
        return math.inf

    def rdp(self, alpha: float) -> float:  # noqa: ARG002
        """Infinite."""
        return math.inf

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """All mass at an infinite loss."""
        return loss_of_pair(0.0, 1.0, interval)


def group_privacy(event: Event, size: int, unit: Unit) -> Event:
    """The event seen by a unit that holds at most `size` of the event's own units.

    The bound `size` must be enforced (`limit_contributions`), not assumed. Additive noise is converted through its
    sensitivity, anything else through M epsilon or M^2 rho. Direct sensitivity of the large unit (per-speaker
    clipping) is usually far better. Raises PrivacyError for events known only by (epsilon, delta) or by sampling, which
    convert badly; and for a unit that holds none of the event's: where one frame of a speaker changes, the speaker is
    another one, which is a removal and an addition. Proof: Theorem 1.7 in docs/theory/release.md.
    """
    own = event.relation.unit
    if unit not in HOLDERS[own]:
        known = ", ".join(HOLDERS[own]) or "nothing larger"
        raise PrivacyError(f"a {unit} does not hold several {own}s: an event for one {own} converts to {known}")
    return event.grouped(check_count("size", size), Relation(unit, event.relation.adjacency))


@lru_cache(maxsize=1024)
def epsilon_of(event: Event, delta: float) -> float:
    """`event.epsilon(delta)`, remembered: every release of a mechanism states the same number."""
    return event.epsilon(delta)


def pure_delta(stated: float, epsilon: float) -> float:
    """delta(epsilon) of `stated`-DP: (e^stated - e^epsilon) / (1 + e^stated), at least 0."""
    if epsilon >= stated:
        return 0.0
    return -math.expm1(epsilon - stated) / (1 + math.exp(-stated))


def loss_of_zcdp(rho: float, interval: float) -> LossDistribution:
    """The loosest loss distribution that rho-zCDP allows, by Chernoff's bound."""
    if rho == 0:
        return loss_of_pair(0.0, 0.0, interval)
    top = rho + 2 * math.sqrt(rho * -math.log(TAIL))

    def survival(t: Any) -> Any:
        return np.where(t >= rho, np.exp(-(np.maximum(t - rho, 0.0) ** 2) / (4 * rho)), 1.0)

    return loss_from_survival(survival, survival, top=top, bottom=rho, interval=interval)
