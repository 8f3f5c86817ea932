"""The accountant: adds up events of one relation, by every method that is valid for them."""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.composition import advanced_composition, basic_composition
from ppspeech.privacy.accounting.events import (
    INTERVAL,
    Event,
    NonPrivateEvent,
    UnsupportedAnalysisError,
    event_from_json,
    event_to_json,
    register_event,
)
from ppspeech.privacy.accounting.loss import LossDistribution, no_loss
from ppspeech.privacy.accounting.renyi import delta_from_renyi, delta_from_zcdp, epsilon_from_renyi, epsilon_from_zcdp
from ppspeech.privacy.guarantee import Guarantee, Kind
from ppspeech.privacy.parameters import check_choice, check_count, check_positive, check_probability
from ppspeech.privacy.relation import Relation, check_relation, relation_to_json

Method = Literal["auto", "basic", "advanced", "zcdp", "rdp", "pld"]
METHODS: tuple[Method, ...] = tuple(method for method in get_args(Method) if method != "auto")
FORMAT = 1

MOST_GROUP = 1e4  # an epsilon beyond which a group's is not looked for

Entry = tuple[Event, int]


@dataclass(frozen=True, slots=True)
class AccountReport:
    """What an account comes to at one delta.

    `epsilon`: the smallest epsilon over the valid methods; `method`: the method that gave it; `none` for an empty
    account; `epsilons`: epsilon by method, without the methods that do not apply.
    """

    relation: Relation
    delta: float
    epsilon: float
    method: str
    epsilons: Mapping[str, float]
    events: tuple[Entry, ...]

    def __str__(self) -> str:
        """A few lines for people."""
        lines = [f"epsilon = {self.epsilon:.4g} at delta = {self.delta:.3g} for {self.relation}, by {self.method}"]
        lines += [f"  {method:<9} {epsilon:.4g}" for method, epsilon in self.epsilons.items()]
        lines += [f"  {count} x {event}" for event, count in self.events]
        return "\n".join(lines)


class Accountant:
    """A privacy account for one relation.

    Composition is adaptive: a later event may depend on what earlier ones released, but its parameters and the
    number of events are fixed in advance.

    >>> from ppspeech.privacy import GaussianEvent
    >>> one_speaker = Relation("speaker", "add_remove")
    >>> account = Accountant(one_speaker)
    >>> account.compose(GaussianEvent(10.0, one_speaker), count=10)
    >>> round(account.epsilon(1e-5), 3)
    1.199
    """

    def __init__(self, relation: Relation) -> None:
        self.relation = check_relation(relation)
        self._counts: dict[Event, int] = {}

    @property
    def events(self) -> tuple[Entry, ...]:
        """The events so far, equal ones merged, with their counts."""
        return tuple(self._counts.items())

    def compose(self, event: Event, count: int = 1) -> None:
        """Book an event of the same relation `count` times; a composed one by its parts."""
        check_count("count", count)
        if isinstance(event, ComposedEvent):
            for part in event.parts:
                self.compose(part, count)
            return
        event_to_json(event)  # refuses what could not be written to a file and replayed
        mine, other = self.relation, check_relation(event.relation)
        if other != mine:
            raise PrivacyError(
                f"this account is for one {mine.unit} under {mine.adjacency}; the event is for one {other.unit} under "
                f"{other.adjacency}. Convert it first (group_privacy) or keep two accounts"
            )
        self._counts[event] = self._counts.get(event, 0) + count

    def epsilon(self, delta: float, method: Method = "auto") -> float:
        """The epsilon at this delta; infinite if nothing bounds it. A named method must apply to every event."""
        check_probability("delta", delta, zero=True)
        check_choice("method", method, get_args(Method))
        if method != "auto":
            return self._by(_EPSILON[method], delta)
        return min(self._valid(_EPSILON, delta).values(), default=0.0)

    def delta(self, epsilon: float, method: Method = "auto") -> float:
        """The delta at this epsilon, at most 1."""
        check_positive("epsilon", epsilon, zero=True)
        check_choice("method", method, get_args(Method))
        if method != "auto":
            return self._by(_DELTA[method], epsilon)
        return min(self._valid(_DELTA, epsilon).values(), default=0.0)

    def report(self, delta: float) -> AccountReport:
        """Every valid method side by side."""
        check_probability("delta", delta, zero=True)
        epsilons = self._valid(_EPSILON, delta)
        best = min(epsilons, key=lambda method: epsilons[method], default="none")
        return AccountReport(self.relation, delta, epsilons.get(best, 0.0), best, epsilons, self.events)

    @property
    def float_safe(self) -> bool:
        """Whether the promise holds for the released bits: it does if it does for every event."""
        return all(event.float_safe for event in self._counts)

    def group_epsilon(self, size: int, delta: float) -> float:
        """The epsilon at this delta for someone who holds `size` of the units; infinite if nothing bounds it.

        Through the sensitivity where all events convert (`group_privacy`), else by the account's own profile: a
        chain of `size` neighbors is (size e, delta(e) (exp(size e) - 1) / (exp(e) - 1))-DP for every e. Proof: Theorem
        1.7 in docs/theory/release.md.
        """
        check_probability("delta", delta, zero=True)
        check_count("size", size)
        holder = Relation("party", self.relation.adjacency)
        try:
            events = tuple((event.grouped(size, holder), count) for event, count in self.events)
        except PrivacyError:
            return _by_chain(self, size, delta)
        return _of_weak(_merged(events), delta)

    def guarantee(self, delta: float, *, assumptions: tuple[str, ...] = ()) -> Guarantee:
        """The account as a statement; kind `none` if some event is not private or nothing bounds epsilon."""
        epsilon = self.epsilon(delta)
        reasons = [event.reason for event in self._counts if isinstance(event, NonPrivateEvent)]
        if math.isinf(epsilon):
            caveat = "; ".join(reasons) or f"no finite epsilon at delta = {delta}"
            return Guarantee(kind="none", relation=self.relation, caveat=caveat)
        terms: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "float_safe": self.float_safe}
        kind: Kind = "pure" if delta == 0 else "approximate"
        return Guarantee(kind=kind, relation=self.relation, assumptions=assumptions, **terms)

    def to_json(self) -> dict[str, Any]:
        """The account as plain JSON values, from which `from_json` computes the same epsilon again."""
        entries = [{"count": count, "event": event_to_json(event)} for event, count in self.events]
        return relation_to_json({"format": FORMAT, "relation": self.relation, "events": entries})

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Accountant":
        """Replay an account; PrivacyError for another format, a wrong field, or mixed units."""
        if not isinstance(plain, Mapping) or set(plain) != {"format", "unit", "adjacency", "events"}:
            raise PrivacyError("an account has the fields format, unit, adjacency and events, and no others")
        if plain["format"] is not FORMAT:
            raise PrivacyError(f"this version reads accounts of format {FORMAT}, got {plain['format']!r}")
        if not isinstance(plain["events"], list):
            raise PrivacyError(f"events must be a list, got {type(plain['events']).__name__}")
        account = cls(Relation(plain["unit"], plain["adjacency"]))
        for entry in plain["events"]:
            if not isinstance(entry, Mapping) or set(entry) != {"count", "event"}:
                raise PrivacyError(f"an entry has a count and an event, got {entry!r}")
            account.compose(event_from_json(entry["event"]), entry["count"])
        return account

    def _by(self, method: Callable[[tuple[Entry, ...], float], float], argument: float) -> float:
        if not self._counts:
            return 0.0
        if any(isinstance(event, NonPrivateEvent) for event in self._counts):
            return math.inf if method in _EPSILON.values() else 1.0
        if method in _EPSILON.values() and argument == 0 and any(event.pure() is None for event in self._counts):
            return math.inf
        return method(_merged(self.events), argument)

    def _valid(self, table: Mapping[Any, Callable[[tuple[Entry, ...], float], float]], x: float) -> dict[str, float]:
        found: dict[str, float] = {}
        for method, bound in table.items() if self._counts else ():
            with suppress(UnsupportedAnalysisError):
                found[method] = self._by(bound, x)
        return found


@register_event("composed")
@dataclass(frozen=True, slots=True)
class ComposedEvent(Event):
    """Several events that one release consists of, in their order; an account books them one by one."""

    parts: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not self.parts:
            raise PrivacyError(f"a composed event has parts, got {self.parts!r}")
        self._account()  # refuses what is no event, and parts of different relations

    @property
    def relation(self) -> Relation:
        """That of all parts."""
        return check_relation(getattr(self.parts[0], "relation", None))

    @property
    def float_safe(self) -> bool:
        """If all parts are."""
        return self._account().float_safe

    def delta(self, epsilon: float) -> float:
        """The accountant's."""
        return self._account().delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """The accountant's."""
        return self._account().epsilon(delta)

    def rdp(self, alpha: float) -> float:
        """Renyi divergences add."""
        return sum(part.rdp(alpha) for part in self.parts)

    def zcdp(self) -> float | None:
        """They add, if all parts have one."""
        return _added([part.zcdp() for part in self.parts])

    def pure(self) -> float | None:
        """They add, if all parts have one."""
        return _added([part.pure() for part in self.parts])

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """That of the parts, composed."""
        return _loss(self._account().events, interval)

    def _account(self) -> Accountant:
        account = Accountant(self.relation)
        for part in self.parts:
            account.compose(part)
        return account


def _of_weak(events: tuple[Entry, ...], delta: float) -> float:
    """The epsilon of events however weak: not by loss distributions, which are the longer the weaker an event is."""
    if len(events) == 1 and events[0][1] == 1 and events[0][0].zcdp() is not None:
        return events[0][0].epsilon(delta)
    pure = _added([event.pure() for event, _ in events])
    found = [] if pure is None else [sum(count * (event.pure() or 0.0) for event, count in events)]
    for method in ("zcdp", "rdp") if delta > 0 else ():
        with suppress(UnsupportedAnalysisError):
            found.append(_EPSILON[method](events, delta))
    return min(found, default=math.inf)


def _by_chain(account: Accountant, size: int, delta: float) -> float:
    """The epsilon of a chain of `size` neighbors at this delta, from the account's delta(epsilon)."""
    best = size * account.epsilon(0.0)  # where it is pure
    low = high = max(account.epsilon(delta), 1e-6)  # at 0 too a chain adds up deltas
    if delta == 0 or math.isinf(high):
        return best

    def enough(step: float) -> bool:
        grown = (size - 1) * step + math.log(math.expm1(-size * step) / math.expm1(-step))
        return math.log(max(_quick_delta(account.events, step), 1e-300)) + grown <= math.log(delta)

    while not enough(high):
        low, high = high, 1.1 * high
        if size * high > min(best, MOST_GROUP):
            return best
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return size * high


def _quick_delta(events: tuple[Entry, ...], epsilon: float) -> float:
    """The delta at this epsilon by the methods that need no search."""
    found = [1.0]
    for method in ("pld", "rdp"):
        with suppress(UnsupportedAnalysisError):
            found.append(_DELTA[method](events, epsilon))
    return min(found)


def _added(found: list[float | None]) -> float | None:
    known = [value for value in found if value is not None]
    return math.fsum(known) if len(known) == len(found) else None


def _merged(events: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Events that together are exactly one, such as plain Gaussians, as that one."""
    kinds: dict[type[Event], list[Entry]] = {}
    for event, count in events:
        kinds.setdefault(type(event), []).append((event, count))
    merged, rest = list[Entry](), list[Entry]()
    for entries in kinds.values():
        one = entries[0][0].merged(entries) if sum(count for _, count in entries) > 1 else None
        if one is None:
            rest += entries
        else:
            merged.append((one, 1))
    return (*merged, *rest) if merged else events


def _pairs(events: tuple[Entry, ...], delta: float) -> list[tuple[float, float, int]]:
    """(epsilon, delta, count) of every event, with delta shared equally among the events that are not pure."""
    shared = sum(count for event, count in events if event.pure() is None)
    share = delta / shared if shared else 0.0
    return [
        (event.epsilon(share), share, count) if (pure := event.pure()) is None else (pure, 0.0, count)
        for event, count in events
    ]


def _basic(events: tuple[Entry, ...], delta: float) -> float:
    # A pure event alone may be better at delta > 0; sums of pairs are the textbook's and are kept plain.
    return basic_composition(_pairs(events, delta))[0]


def _advanced(events: tuple[Entry, ...], delta: float) -> float:
    if delta == 0:
        return math.inf
    return advanced_composition(_pairs(events, delta / 2), slack=delta / 2)[0]


def _total_rho(events: tuple[Entry, ...]) -> float:
    rho = 0.0
    for event, count in events:
        if (of_event := event.zcdp()) is None:
            raise UnsupportedAnalysisError(f"event {event.type_name!r} has no zCDP parameter")
        rho += count * of_event
    return rho


def _curve(events: tuple[Entry, ...]) -> Callable[[float], float]:
    return lambda alpha: sum(count * event.rdp(alpha) for event, count in events)


@lru_cache(maxsize=32)
def _loss(events: tuple[Entry, ...], interval: float) -> LossDistribution:
    total = no_loss(interval)
    for event, count in events:
        loss = event.pld(interval)
        total = total.compose(loss.self_compose(count) if count > 1 else loss)
    return total


_EPSILON: dict[Method, Callable[[tuple[Entry, ...], float], float]] = {
    "basic": _basic,
    "advanced": _advanced,
    "zcdp": lambda events, delta: epsilon_from_zcdp(_total_rho(events), delta),
    "rdp": lambda events, delta: epsilon_from_renyi(_curve(events), delta),
    "pld": lambda events, delta: float(_loss(events, INTERVAL).get_epsilon_for_delta(delta)),
}

_DELTA: dict[Method, Callable[[tuple[Entry, ...], float], float]] = {
    "basic": lambda events, epsilon: _inverse(_basic, events, epsilon),
    "advanced": lambda events, epsilon: _inverse(_advanced, events, epsilon),
    "zcdp": lambda events, epsilon: delta_from_zcdp(_total_rho(events), epsilon),
    "rdp": lambda events, epsilon: delta_from_renyi(_curve(events), epsilon),
    "pld": lambda events, epsilon: float(_loss(events, INTERVAL).get_delta_for_epsilon(epsilon)),
}


def _inverse(bound: Callable[[tuple[Entry, ...], float], float], events: tuple[Entry, ...], epsilon: float) -> float:
    """The smallest delta at which the bound is at most epsilon, to 0.1 %, from above."""
    if bound(events, 0.0) <= epsilon:
        return 0.0
    low, high = -690.0, 0.0  # ln delta
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if bound(events, math.exp(middle)) <= epsilon else (middle, high)
    return math.exp(high)
