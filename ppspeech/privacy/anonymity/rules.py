"""Association rules, and hiding some of them (Verykios et al. 2004): items are taken out until a rule is not found."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import NonPrivateEvent
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_choice, check_count, check_probability
from ppspeech.privacy.relation import ONE_ROW, Relation

Way = Literal["consequent", "antecedent", "support"]
Held = NDArray[np.bool_]

LARGEST = 4  # items of a rule, at the most, that rules are looked for with


@dataclass(frozen=True, order=True)
class Rule:
    """Who has all of `given` has `then`."""

    given: frozenset[str]
    then: str

    def __str__(self) -> str:
        return f"{' and '.join(sorted(self.given))} => {self.then}"


@dataclass(frozen=True, eq=False)
class Baskets:
    """Who holds what: `held[row, item]`."""

    items: tuple[str, ...]
    held: Held

    def __post_init__(self) -> None:
        if self.held.ndim != 2 or self.held.shape[1] != len(self.items) or self.held.dtype != np.bool_:
            raise PrivacyError(f"held is bool (rows, {len(self.items)}), got {self.held.dtype} {self.held.shape}")

    @classmethod
    def of(cls, rows: Sequence[Iterable[str]]) -> "Baskets":
        """Of rows of items."""
        items = tuple(sorted({item for row in rows for item in row}))
        place = {item: at for at, item in enumerate(items)}
        held = np.zeros((len(rows), len(items)), dtype=np.bool_)
        for at, row in enumerate(rows):
            held[at, [place[item] for item in row]] = True
        return cls(items, held)

    def having(self, items: Iterable[str]) -> Held:
        """Which rows have all of these."""
        places = []
        for item in items:
            if item not in self.items:
                raise PrivacyError(f"nobody has {item!r}; items are {', '.join(self.items[:10])} ...")
            places.append(self.items.index(item))
        return np.asarray(self.held[:, places].all(axis=1), dtype=np.bool_)

    def counts(self, rule: Rule) -> tuple[int, int]:
        """How many rows have all that is given, and how many of these the rest too: |A| and |AB|."""
        given = self.having(rule.given)
        return int(given.sum()), int((given & self.having([rule.then])).sum())


def rules(baskets: Baskets, support: float, confidence: float, largest: int = 3) -> frozenset[Rule]:
    """All rules with |AB| >= support n and |AB| >= confidence |A|, of up to `largest` items (Agrawal 1994).

    >>> sorted(map(str, rules(Baskets.of([{"tea", "milk"}, {"tea", "milk"}, {"tea"}]), 0.5, 0.6)))
    ['milk => tea', 'tea => milk']
    """
    check_probability("support", support)
    check_probability("confidence", confidence)
    if check_count("largest", largest, least=2) > LARGEST:
        raise PrivacyError(f"rules of more than {LARGEST} items are not looked for, got largest={largest}")
    least = math.ceil(support * len(baskets.held) - 1e-9)
    counts: dict[tuple[int, ...], int] = {
        (at,): count for at, count in enumerate(baskets.held.sum(axis=0).tolist()) if count >= least
    }
    frequent = dict(counts)
    for size in range(2, largest + 1):
        grown: dict[tuple[int, ...], int] = {}
        for items in itertools.combinations(sorted({at for each in counts for at in each}), size):
            if all(part in frequent for part in itertools.combinations(items, size - 1)):
                count = int(baskets.held[:, items].all(axis=1).sum())
                if count >= least:
                    grown[items] = count
        frequent |= grown
        counts = grown
    found = set()
    for items, count in frequent.items():
        for then in items if len(items) > 1 else ():
            given = tuple(at for at in items if at != then)
            if count >= confidence * frequent[given] - 1e-9:
                found.add(Rule(frozenset(baskets.items[at] for at in given), baskets.items[then]))
    return frozenset(found)


@dataclass(frozen=True, eq=False)
class Hidden:
    """Baskets in which rules are not found any more, and what else that changed.

    Attributes:
        baskets: what is left.
        removed: how many items were taken out.
        lost: rules that were found before, were not to be hidden, and are not found now.
        ghosts: rules that are found now and were not before.
    """

    baskets: Baskets
    removed: int
    lost: frozenset[Rule]
    ghosts: frozenset[Rule]


@mechanism("rule_hiding")
@dataclass(frozen=True, kw_only=True, eq=False)
class RuleHiding:
    """Takes items out of as few rows as needed, those with fewest items first, until no sensitive rule is found.

    With |A| and |AB| rows: without `then` in t = floor(|AB| - c |A|) + 1 of them the confidence is below c; without an
    item of what is given in t > (|AB| - c |A|) / (1 - c); without `then` in t = |AB| - ceil(s n) + 1 the support is
    below s. Taking out what another rule is given can raise that one's confidence: it goes on until all are hidden.

    **No guarantee**: that a rule is missing which everybody expects tells too. `way`: what is taken out, and whether
    confidence or support falls; `largest`: items of a rule, for the side effects. Proof: Proposition 4.16 in
    docs/theory/filters.md.
    """

    sensitive: tuple[Rule, ...]
    support: float
    confidence: float
    way: Way = "consequent"
    largest: int = 3
    relation: Relation = ONE_ROW

    def __post_init__(self) -> None:
        check_probability("support", self.support)
        check_probability("confidence", self.confidence)
        check_choice("way", self.way, get_args(Way))
        if not self.sensitive:
            raise PrivacyError("name a rule to hide")
        for rule in self.sensitive:
            if not rule.given or rule.then in rule.given:
                raise PrivacyError(f"a rule says something of what is given, got {rule}")

    @property
    def event(self) -> NonPrivateEvent:
        """Infinite epsilon."""
        return NonPrivateEvent(f"{len(self.sensitive)} rules hidden", self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        caveat = "rules are below thresholds; everything else about each row is told, and what is missing may be seen"
        return Guarantee(kind="none", relation=self.relation, caveat=caveat)

    def release(self, baskets: Baskets) -> Released[Hidden]:
        """The baskets without the sensitive rules, with the side effects listed."""
        before = rules(baskets, self.support, self.confidence, self.largest)
        left = Baskets(baskets.items, baskets.held.copy())
        while found := [rule for rule in self.sensitive if self.is_found(left, rule)]:
            self._hide(left, found[0])
        after = rules(left, self.support, self.confidence, self.largest)
        removed = int(baskets.held.sum() - left.held.sum())
        told = Hidden(left, removed, before - after - set(self.sensitive), after - before)
        return Released(told, self.event, self.guarantee)

    def is_found(self, baskets: Baskets, rule: Rule) -> bool:
        """Whether a rule has the support and the confidence to be found."""
        given, both = baskets.counts(rule)
        return both > 0 and both >= self.support * len(baskets.held) - 1e-9 and both >= self.confidence * given - 1e-9

    def changes(self, given: int, both: int, rows: int) -> int:
        """t, how many rows have to change."""
        over = both - self.confidence * given
        if self.way == "consequent":
            changed = math.floor(over + 1e-9) + 1
        elif self.way == "antecedent":
            changed = math.floor(over / (1 - self.confidence) + 1e-9) + 1
        else:
            changed = both - math.ceil(self.support * rows - 1e-9) + 1
        return min(changed, both)

    def _hide(self, baskets: Baskets, rule: Rule) -> None:
        """Take items out of the baskets, in place."""
        rows = np.flatnonzero(baskets.having([*rule.given, rule.then]))
        smallest = rows[np.argsort(baskets.held[rows].sum(axis=1), kind="stable")]
        often = {item: int(baskets.having([item]).sum()) for item in sorted(rule.given)}
        item = max(often, key=lambda each: often[each]) if self.way == "antecedent" else rule.then
        given, both = baskets.counts(rule)
        baskets.held[smallest[: self.changes(given, both, len(baskets.held))], baskets.items.index(item)] = False
