"""Tables without a guarantee: what they do is what they say, checked by slow loops, and no account takes them."""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Accountant
from ppspeech.privacy.anonymity import (
    Baskets,
    Hierarchy,
    KAnonymity,
    Records,
    Rule,
    RuleHiding,
    Swapping,
    ends,
    meant,
    measure,
    rules,
    shuffled,
    smallest_class,
)
from ppspeech.privacy.anonymity.hierarchy import Ladder
from ppspeech.privacy.anonymity.lattice import evaluated, search
from ppspeech.privacy.mechanisms import RandomProjection
from ppspeech.privacy.relation import ONE_ROW

CITIES = {"Bonn": "west", "Ulm": "south", "Lindau": "south"}
HIERARCHIES = {"age": Hierarchy.intervals(5, 10, 40), "city": Hierarchy.groups(CITIES)}
QUASI = ("age", "sex", "city")


def people(rows: int, seed: int) -> Records:
    """Made up; the illness goes with the age."""
    chance = np.random.default_rng(seed)
    age = chance.integers(18, 90, rows)
    return Records(
        {
            "age": tuple(map(str, age)),
            "sex": tuple(chance.choice(["f", "m"], rows)),
            "city": tuple(chance.choice(list(CITIES), rows, p=[0.6, 0.3, 0.1])),
            "illness": tuple(np.where(age > 60, "gout", chance.choice(["flu", "none"], rows))),
            "row": tuple(map(str, range(rows))),
        }
    )


def classes(records: Records, names: tuple[str, ...] = QUASI) -> Counter[tuple[str, ...]]:
    """How often each combination occurs, by counting."""
    return Counter(zip(*(records.columns[name] for name in names), strict=True))


def covers(cell: str, value: str) -> bool:
    """Whether what is told is true."""
    low, high = ends(cell)
    return cell in {"*", value, CITIES.get(value)} or value in meant(cell) or low <= float(value) <= high


@pytest.mark.parametrize("method", ["lattice", "mondrian"])
@pytest.mark.parametrize(("rows", "k"), [(40, 2), (200, 5), (600, 20), (7, 7)])
def test_every_row_is_like_k_others_and_nothing_told_is_wrong(method: Any, rows: int, k: int) -> None:
    before = people(rows, seed=rows)
    made = KAnonymity(k=k, quasi=QUASI, hierarchies=HIERARCHIES, leave_out=0.05, method=method).release(before).value
    assert min(classes(made.records).values()) >= k
    assert smallest_class(made.records, QUASI) == min(classes(made.records).values())
    assert len(made.records) + made.left_out == rows
    assert made.left_out <= 0.05 * rows
    for name in QUASI:
        own = [before.columns[name][int(at)] for at in made.records.columns["row"]]
        assert all(map(covers, made.records.columns[name], own))
    kept = [int(at) for at in made.records.columns["row"]]
    assert made.records.columns["illness"] == tuple(before.columns["illness"][at] for at in kept)
    assert made.loss == pytest.approx(loss_by_counting(before, made.records))


def loss_by_counting(before: Records, after: Records) -> float:
    """Cell by cell: how many of the column's values it may be."""
    total = 0.0
    for name in QUASI:
        values = set(before.columns[name])
        for cell in after.columns[name]:
            same = [v for v in values if cell in {"*", v, CITIES.get(v)} or v in meant(cell) or inside(cell, v)]
            total += (len(same) - 1) / (len(values) - 1)
    left_out = len(before) - len(after)
    return (total + 3 * left_out) / (3 * len(before))


def inside(cell: str, value: str) -> bool:
    low, high = ends(cell)
    if math.isnan(low):
        return False
    return low <= float(value) < high or (cell.endswith("]") and float(value) == high)


@pytest.mark.parametrize("seed", range(6))
def test_the_search_finds_what_trying_all_finds(seed: int) -> None:
    records = people(60, seed)
    ladders = [Ladder.of(records.coded(name), HIERARCHIES.get(name, Hierarchy())) for name in QUASI]
    for k, most in ((2, 0), (3, 6), (10, 2)):
        every = [evaluated(ladders, levels, k) for levels in itertools.product(*(range(len(each)) for each in ladders))]
        allowed = [each for each in every if 60 - len(each.kept) <= most]
        assert search(ladders, k, most).loss == pytest.approx(min(each.loss for each in allowed))


def test_many_combinations_of_levels_become_boxes() -> None:
    chance = np.random.default_rng(0)
    records = Records({f"x{at}": tuple(map(str, chance.normal(size=50))) for at in range(9)})
    quasi = tuple(records.columns)
    assert KAnonymity(k=5, quasi=quasi).release(records).value.method == "mondrian"
    assert KAnonymity(k=5, quasi=quasi[:2]).release(records).value.method == "lattice"
    with pytest.raises(PrivacyError, match="too many to search"):
        KAnonymity(k=5, quasi=quasi, method="lattice").release(records)


def test_what_classes_tell_by_hand() -> None:
    table = Records({"sex": tuple("ffmm"), "ill": ("flu", "flu", "flu", "none"), "pay": ("1", "1", "1", "3")})
    told = measure(table, ["sex"], "ill")
    assert (told.smallest, told.classes, told.diversity) == (2, 2, 1)
    assert told.closeness == pytest.approx(0.25)  # half of |1 - 3/4| + |0 - 1/4|
    assert (told.homogeneous, told.guessed, told.frequent) == (0.5, 0.75, 0.75)
    middle = table.replaced({"pay": ("1", "2", "2", "3")})
    assert measure(middle, ["sex"], "pay").closeness == pytest.approx(0.25)  # (1/4 + 1/4) / 2 steps
    assert measure(table.replaced({"pay": tuple("abcd")}), ["sex"], "pay").closeness == pytest.approx(0.5)


def test_swapping_keeps_the_margins_it_states_and_moves_others() -> None:
    before = people(400, seed=1)
    after = Swapping(columns=("illness",), key=("sex", "city"), rate=0.8).release(before).value
    rest = ("age", "sex", "city", "row")
    assert classes(after, rest) == classes(before, rest)
    for size in range(3):
        for key in itertools.combinations(("sex", "city"), size):
            assert classes(after, ("illness", *key)) == classes(before, ("illness", *key))
    assert classes(after, ("illness", "age")) != classes(before, ("illness", "age"))
    changed = sum(a != b for a, b in zip(after.columns["illness"], before.columns["illness"], strict=True))
    assert 0 < changed <= 0.8 * 400 + 6


def test_columns_that_are_swapped_together_stay_together() -> None:
    before = people(100, seed=2)
    after = Swapping(columns=("illness", "city"), rate=1.0).release(before).value
    assert classes(after, ("illness", "city")) == classes(before, ("illness", "city"))
    assert after.columns["city"] != before.columns["city"]


def baskets(seed: int) -> Baskets:
    """Tea goes with milk, and milk with sugar."""
    chance = np.random.default_rng(seed)
    tea = chance.random(300) < 0.6
    milk = np.where(tea, chance.random(300) < 0.8, chance.random(300) < 0.3)
    sugar = np.where(milk, chance.random(300) < 0.85, chance.random(300) < 0.4)
    bread = chance.random(300) < 0.5
    return Baskets(("bread", "milk", "sugar", "tea"), np.stack([bread, milk, sugar, tea], axis=1))


def slow_rules(held: Baskets, support: float, confidence: float) -> set[Rule]:
    """Every subset, counted row by row."""
    rows = [frozenset(item for item, has in zip(held.items, row, strict=True) if has) for row in held.held.tolist()]
    found = set()
    for size in (2, 3):
        for items in itertools.combinations(held.items, size):
            for then in items:
                given = frozenset(items) - {then}
                both = sum(given | {then} <= row for row in rows)
                if both >= support * len(rows) and both >= confidence * sum(given <= row for row in rows):
                    found.add(Rule(given, then))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_rules_are_those_of_a_slow_search(seed: int) -> None:
    assert rules(baskets(seed), 0.1, 0.7) == slow_rules(baskets(seed), 0.1, 0.7)


TEA = Rule(frozenset({"tea"}), "milk")
MILK = Rule(frozenset({"milk"}), "sugar")


@pytest.mark.parametrize("way", ["consequent", "antecedent", "support"])
@pytest.mark.parametrize("sensitive", [(TEA,), (TEA, MILK), (MILK, TEA), (Rule(frozenset({"tea", "milk"}), "sugar"),)])
def test_hidden_rules_are_hidden_and_side_effects_are_listed(way: Any, sensitive: tuple[Rule, ...]) -> None:
    before = baskets(0)
    hiding = RuleHiding(sensitive=sensitive, support=0.1, confidence=0.7, way=way)
    told = hiding.release(before).value
    found, there = slow_rules(told.baskets, 0.1, 0.7), slow_rules(before, 0.1, 0.7)
    assert set(sensitive) <= there
    assert not found & set(sensitive)
    assert told.lost == there - found - set(sensitive)
    assert told.ghosts == found - there
    assert told.removed == int((before.held & ~told.baskets.held).sum()) > 0
    assert not (told.baskets.held & ~before.held).any()


@pytest.mark.parametrize("way", ["consequent", "antecedent", "support"])
def test_no_fewer_rows_would_hide_a_rule(way: Any) -> None:
    hiding = RuleHiding(sensitive=(TEA,), support=0.1, confidence=0.7, way=way)
    given, both = baskets(0).counts(TEA)
    changed = hiding.changes(given, both, 300)
    assert hiding.release(baskets(0)).value.removed == changed
    left = given - (changed - 1) * (way == "antecedent"), both - (changed - 1)
    assert left[1] >= 0.1 * 300
    assert way == "support" or left[1] >= 0.7 * left[0]


@pytest.mark.parametrize(("side", "outputs"), [("columns", 40), ("rows", 40), ("columns", 8), ("rows", 8)])
def test_a_projection_keeps_inner_products_and_a_rotation_exactly(side: Any, outputs: int) -> None:
    rows = torch.nn.functional.normalize(torch.randn(2, 40, dtype=torch.double, generator=torch.manual_seed(0)))
    mechanism = RandomProjection(inputs=40, outputs=outputs, side=side)
    told = [
        mechanism.release(rows if side == "columns" else rows.mT).value for _ in range(1 if outputs == 40 else 2000)
    ]
    mixed = torch.stack(told if side == "columns" else [each.mT for each in told])
    kept = (mixed @ mixed.mT).mean(0)
    # one product has variance at most 2 / k: five deviations and more of the mean
    assert torch.allclose(kept, rows @ rows.mT, atol=1e-9 if outputs == 40 else 6 * math.sqrt(2 / outputs / 2000))


def test_every_release_has_a_matrix_of_its_own() -> None:
    one = RandomProjection(inputs=5, outputs=5)
    told = [one.release(torch.eye(5)).value for _ in range(2)]
    assert (told[0] - told[1]).abs().max() > 0.01


RELEASES: list[tuple[Any, Any]] = [
    (KAnonymity(k=3, quasi=QUASI), people(20, 0)),
    (Swapping(columns=("illness",), rate=0.5), people(20, 0)),
    (RuleHiding(sensitive=(TEA,), support=0.1, confidence=0.7), baskets(0)),
    (RandomProjection(inputs=4, outputs=2), torch.ones(3, 4)),
]


@pytest.mark.parametrize(("mechanism", "value"), RELEASES, ids=lambda each: type(each).__name__)
def test_none_of_it_is_a_guarantee(mechanism: Any, value: Any) -> None:
    made = mechanism.release(value)
    assert made.guarantee.kind == "none"
    assert math.isinf(made.guarantee.epsilon)
    account = Accountant(ONE_ROW)
    account.compose(made.event)
    assert math.isinf(account.epsilon(1e-5))
    assert account.guarantee(1e-5).kind == "none"


def test_rows_can_be_put_in_a_random_order() -> None:
    before = people(50, 3)
    after = shuffled(before)
    assert after.columns["row"] != before.columns["row"]
    assert sorted(after.rows()) == sorted(before.rows())


def test_usual_hierarchies_are_nested_for_any_numbers() -> None:
    chance = np.random.default_rng(0)
    for scale in (1e-6, 0.37, 1.0, 1e7):
        column = Records({"x": tuple(map(repr, (scale * chance.normal(size=40)).tolist()))}).coded("x")
        ladder = Ladder.of(column, Hierarchy.usual(column))
        assert 4 <= len(ladder) <= 7
        losses = [float(each.mean()) for each in ladder.losses]
        assert losses == sorted(losses)
        assert (losses[0], losses[-1]) == (0.0, 1.0)


REFUSED: list[tuple[Any, str]] = [
    (lambda: KAnonymity(k=1, quasi=QUASI), "k must be"),
    (lambda: KAnonymity(k=2, quasi=()), "got none"),
    (lambda: KAnonymity(k=2, quasi=("age", "age")), "each once"),
    (lambda: KAnonymity(k=2, quasi=("age",), hierarchies={"sex": Hierarchy()}), "got one of sex"),
    (lambda: KAnonymity(k=21, quasi=QUASI).release(people(20, 0)), "20 rows cannot be made 21-anonymous"),
    (lambda: KAnonymity(k=2, quasi=("shoe",)).release(people(20, 0)), "no column 'shoe'"),
    (lambda: KAnonymity(k=2, quasi=QUASI, method="magic"), "one of auto, lattice, mondrian"),  # type: ignore[arg-type]
    (lambda: Hierarchy.intervals(5, 12), "multiples"),
    (lambda: Hierarchy.intervals(-5.0), "> 0"),
    (lambda: Hierarchy.intervals(5).levels[0]("Bonn"), "for numbers, got 'Bonn'"),
    (lambda: Hierarchy.groups(CITIES).levels[0]("Rome"), "no group for 'Rome'"),
    (
        lambda: Ladder.of(people(20, 0).coded("city"), Hierarchy.groups(CITIES, {each: each for each in CITIES})),
        "must be nested",
    ),
    (lambda: Records({"a": ("1",), "b": ()}), "one length"),
    (lambda: Swapping(columns=("sex",), key=("sex",), rate=0.5), "other columns"),
    (lambda: Swapping(columns=("sex",), rate=0.0), "rate must be"),
    (lambda: RuleHiding(sensitive=(), support=0.1, confidence=0.5), "name a rule"),
    (lambda: RuleHiding(sensitive=(Rule(frozenset("a"), "a"),), support=0.1, confidence=0.5), "got a => a"),
    (lambda: baskets(0).counts(Rule(frozenset({"beer"}), "tea")), "nobody has 'beer'"),
    (lambda: rules(baskets(0), 0.1, 0.7, largest=9), "more than 4 items"),
    (lambda: RandomProjection(inputs=3, outputs=2).release(torch.ones(3, 4)), "3 columns is mixed"),
]


@pytest.mark.parametrize(("door", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_is_refused_in_words(door: Any, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        door()
