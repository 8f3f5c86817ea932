"""The census (Adult, complete rows) made k-anonymous, swapped, and rid of rules; and what is told all the same.

Known to others are age, kind of work, education, marital status, race, sex and country; the occupation is sensitive.
`lattice` is the least loss that one level a column can have, with at most 1 % of the rows left out, found by a search
that is exact; `mondrian` cuts boxes, and leaves out none. The loss is the mean over cells of (values that it may be
- 1) / (values there are - 1). Whoever knows somebody's columns guesses the most frequent occupation of the class.

Swapped: the occupation, among people of one sex and income, so that counts of these three and of all other columns are
kept to the last row. Hidden: the three rules with the highest confidence that say who earns more than 50,000 dollars.

Needs the table adult; --quick takes about 25 s.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ppspeech.data.tables import AdultRecords, load_adult_raw
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.pictures import blank, save
from ppspeech.privacy.anonymity import (
    Baskets,
    Generalized,
    Hierarchy,
    KAnonymity,
    Records,
    Rule,
    RuleHiding,
    Swapping,
    Told,
    measure,
    rules,
)

QUASI = ("age", "workclass", "education", "marital_status", "race", "sex", "native_country")
SENSITIVE, INCOME = "occupation", "income"
EARNS = ("at most 50K", "more than 50K")
K, QUICK_K = (2, 5, 10, 25, 50, 100), (10,)
LEFT_OUT = 0.01
RATE = 0.5
KEY = ("sex", INCOME)
SUPPORT, CONFIDENCE = 0.02, 0.7
HIDDEN = 3


def _parents(groups: Mapping[str, str]) -> dict[str, str]:
    """From each of the values apart by spaces to its group."""
    return {value: group for group, values in groups.items() for value in values.split()}


WORK = {"government": "Federal-gov Local-gov State-gov", "own": "Self-emp-inc Self-emp-not-inc Without-pay"}
SCHOOL = {
    "no diploma": "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th",
    "diploma": "HS-grad Some-college",
    "associate": "Assoc-acdm Assoc-voc",
    "degree": "Bachelors Masters Prof-school Doctorate",
}
COLLEGE = {
    "school": f"{SCHOOL['no diploma']} {SCHOOL['diploma']}",
    "beyond": f"{SCHOOL['associate']} {SCHOOL['degree']}",
}
MARRIED = {
    "married": "Married-AF-spouse Married-civ-spouse",
    "alone": "Divorced Married-spouse-absent Never-married Separated Widowed",
}
PLACES = {
    "North America": "United-States Canada Outlying-US(Guam-USVI-etc) Puerto-Rico",
    "Latin America": "Columbia Cuba Dominican-Republic Ecuador El-Salvador Guatemala Haiti Honduras Jamaica Mexico "
    "Nicaragua Peru Trinadad&Tobago",
    "Asia": "Cambodia China Hong India Iran Japan Laos Philippines South Taiwan Thailand Vietnam",
    "Europe": "England France Germany Greece Holand-Netherlands Hungary Ireland Italy Poland Portugal Scotland "
    "Yugoslavia",
}
HIERARCHIES = {
    "age": Hierarchy.intervals(5, 10, 20, 40),
    "workclass": Hierarchy.groups(_parents({**WORK, "private": "Private"})),
    "education": Hierarchy.groups(_parents(SCHOOL), _parents(COLLEGE)),
    "marital_status": Hierarchy.groups(_parents(MARRIED)),
    "native_country": Hierarchy.groups(_parents(PLACES)),
}


@EXPERIMENTS.register("anonymity")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save `anonymity.png` in `folder`; `quick`: k = 10 alone."""
    records = census(load_adult_raw())
    plain = measure(records, QUASI, SENSITIVE)
    alone = float((np.bincount(member := records.classes(QUASI))[member] == 1).mean())
    sizes = QUICK_K if quick else K
    found = {(how, k): _anonymous(records, how, k) for how in ("lattice", "mondrian") for k in sizes}
    picture = folder / "anonymity.png"
    _plot(found, plain, picture)
    about = f"{len(records):,} rows, {len(QUASI)} columns known to others; {picture}"
    made = [Figure("anonymity.adult.unique", alone, note=f"share of rows like no other in what is known; {about}")]
    for (how, k), (table, told) in found.items():
        short = f"anonymity.adult.k{k}" + ("" if how == "lattice" else f".{how}")
        note = (
            f"{how}: {table.left_out} rows left out, {told.classes:,} classes, smallest {told.smallest}; l = "
            f"{told.diversity}, t = {told.closeness:.2f}; {told.homogeneous:.4f} of the rows in classes of one "
            f"occupation" + (f"; levels {_levels(table)}" if table.levels else "")
        )
        guess = f"{how}: occupation guessed by the class; {told.frequent:.3f} by nothing, {plain.guessed:.3f} before"
        made += [Figure(f"{short}.loss", table.loss, note=note), Figure(f"{short}.guessed", told.guessed, note=guess)]
    return [*made, *_swapped(records), *_hidden(records)]


def census(adult: AdultRecords) -> Records:
    """The complete rows as text, 45,222 of them."""
    columns = {name: tuple(map(str, values.tolist())) for name, values in adult.numbers.items()}
    columns |= {name: tuple(value or "?" for value in values) for name, values in adult.categories.items()}
    columns[INCOME] = tuple(EARNS[label] for label in adult.labels.tolist())
    return Records(columns).select(np.flatnonzero(~adult.has_missing.numpy()))


def _anonymous(records: Records, how: str, k: int) -> tuple[Generalized, Told]:
    made = KAnonymity(k=k, quasi=QUASI, hierarchies=HIERARCHIES, leave_out=LEFT_OUT, method=how)  # type: ignore[arg-type]
    table = made.release(records).value
    return table, measure(table.records, QUASI, SENSITIVE)


def _levels(table: Generalized) -> str:
    return ", ".join(f"{name} {level}" for name, level in table.levels.items())


def _counts(records: Records, *names: str) -> dict[tuple[str, ...], int]:
    rows = list(zip(*(records.column(name) for name in names), strict=True))
    found: dict[tuple[str, ...], int] = {}
    for row in rows:
        found[row] = found.get(row, 0) + 1
    return found


def moved(before: Records, after: Records, *names: str) -> float:
    """Share of rows by which a table of counts differs."""
    one, other = _counts(before, *names), _counts(after, *names)
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in one | other) / (2 * len(before))


def _swapped(records: Records) -> list[Figure]:
    after = Swapping(columns=(SENSITIVE,), key=KEY, rate=RATE).release(records).value
    others = tuple(name for name in records.columns if name != SENSITIVE)
    kept = [moved(records, after, *names) for names in ((SENSITIVE, *KEY), others)]
    pairs = {name: moved(records, after, SENSITIVE, name) for name in QUASI if name not in KEY}
    worst = max(pairs, key=lambda name: pairs[name])
    same = sum(a == b for a, b in zip(records.column(SENSITIVE), after.column(SENSITIVE), strict=True)) / len(records)
    note = f"half the rows: counts of occupation with sex and income, and of all else, differ in {max(kept):g} of them"
    return [
        Figure("anonymity.swap.kept.moved", max(kept), note=note),
        Figure("anonymity.swap.worst_pair.moved", pairs[worst], note=f"counts of occupation with {worst}, which move"),
        Figure("anonymity.swap.true", same, note="share of rows that still have their own occupation, or an equal one"),
    ]


def _hidden(records: Records) -> list[Figure]:
    names = (*QUASI[1:], SENSITIVE, INCOME)
    columns = [[f"{name}={value}" for value in records.column(name)] for name in names]
    baskets = Baskets.of(list(zip(*columns, strict=True)))
    rich = f"{INCOME}={EARNS[1]}"

    def confidence(rule: Rule) -> float:
        given, both = baskets.counts(rule)
        return both / given

    there = rules(baskets, SUPPORT, CONFIDENCE)
    sensitive = sorted((rule for rule in there if rule.then == rich), key=lambda rule: (-confidence(rule), str(rule)))
    chosen = tuple(sensitive[:HIDDEN])
    made = []
    for way in ("consequent", "antecedent", "support"):
        hiding = RuleHiding(sensitive=chosen, support=SUPPORT, confidence=CONFIDENCE, way=way)
        told = hiding.release(baskets).value
        side = "; ".join(map(str, sorted(told.lost, key=str)[:2]))
        note = (
            f"{HIDDEN} of {len(there):,} rules hidden by {way}, {told.removed:,} of {baskets.held.sum():,} items taken "
            f"out; {len(told.ghosts)} rules that were not there before" + (f"; lost: {side} ..." if side else "")
        )
        made.append(Figure(f"anonymity.rules.{way}.lost", len(told.lost), note=note))
    return made


def _plot(found: Mapping[tuple[str, int], tuple[Generalized, Told]], plain: Told, path: Path) -> None:
    picture = blank(11, 5)
    loss, guess = picture.subplots(1, 2)
    for how in ("lattice", "mondrian"):
        own = {k: each for (name, k), each in found.items() if name == how}
        loss.plot(list(own), [table.loss for table, _ in own.values()], "o-", label=how)
        guess.plot(list(own), [told.guessed for _, told in own.values()], "o-", label=how)
    guess.axhline(plain.guessed, color="black", linestyle="--", label="rows as they are")
    guess.axhline(plain.frequent, color="gray", linestyle=":", label="nothing known")
    loss.set(xscale="log", xlabel="k", ylabel="loss", title="Adult, k-anonymous", ylim=(0, 1))
    guess.set(xscale="log", xlabel="k", ylabel="occupations guessed", title="By whoever knows the columns", ylim=(0, 1))
    for axes in (loss, guess):
        axes.legend(fontsize="small")
    save(picture, path)
