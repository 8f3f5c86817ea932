"""Attacks on tables win where they should, and not where noise stands in their way."""

import math

import numpy as np
import pytest
import torch

from ppspeech.arrays import Reals
from ppspeech.errors import PrivacyError
from ppspeech.evidence.attacks.tables import (
    attributes,
    from_known,
    link,
    link_tables,
    match,
    matched,
    of_people,
    recovered,
    unmixed,
)
from ppspeech.privacy import DiscreteGaussian, Relation
from ppspeech.privacy.anonymity import KAnonymity, Records, Swapping
from ppspeech.privacy.mechanisms import RandomProjection

CHANCE = np.random.default_rng(0)


def sources(rows: int, count: int) -> Reals:
    """Independent, far from Gaussian."""
    return np.random.default_rng(1).laplace(size=(rows, count)) ** 3


@pytest.mark.parametrize("outputs", [6, 9])
def test_independence_reads_what_was_rotated(outputs: int) -> None:
    x = sources(4000, 6)
    mixed = RandomProjection(inputs=6, outputs=outputs).release(torch.from_numpy(x)).value.numpy()
    assert recovered(x, unmixed(mixed)) >= 4  # all six in 600 of 600 draws; a local optimum would lose two


def test_independence_reads_few_of_what_was_projected_and_no_gaussian() -> None:
    x = np.random.default_rng(1).uniform(size=(1500, 12))
    mixed = RandomProjection(inputs=12, outputs=4).release(torch.from_numpy(x)).value.numpy()
    assert recovered(x, unmixed(mixed)) <= 1
    gaussian = np.random.default_rng(2).normal(size=(1500, 6))
    turned = RandomProjection(inputs=6, outputs=6).release(torch.from_numpy(gaussian)).value.numpy()
    assert recovered(gaussian, unmixed(turned)) <= 2


@pytest.mark.parametrize("outputs", [5, 8])
def test_known_rows_read_everything_even_gaussians(outputs: int) -> None:
    x = np.random.default_rng(3).normal(size=(300, 5)) + 1.0
    mixed = RandomProjection(inputs=5, outputs=outputs).release(torch.from_numpy(x)).value.numpy()
    assert np.allclose(from_known(x[:5], mixed[:5], mixed), x)
    with pytest.raises(PrivacyError, match="5 independent rows must be known, got 4"):
        from_known(x[:4], mixed[:4], mixed)


def test_public_rows_fill_in_what_a_projection_left_out() -> None:
    chance = np.random.default_rng(4)
    shape = chance.normal(size=(2, 6))  # six columns that two numbers nearly tell
    x, public = (chance.normal(size=(400, 2)) @ shape + 0.01 * chance.normal(size=(400, 6)) for _ in range(2))
    mixed = RandomProjection(inputs=6, outputs=3).release(torch.from_numpy(x)).value.numpy()
    assert recovered(x, from_known(x[:6], mixed[:6], mixed, public)) == 6
    assert np.abs(from_known(x[:6], mixed[:6], mixed) - x).mean() > 0.05


def test_matching_is_one_to_one() -> None:
    x = np.random.default_rng(5).normal(size=(500, 3))
    assert np.allclose(matched(x, -x[:, [2, 0, 1]]), 1.0)
    assert (matched(x, x[:, [0, 0]]) > 0.95).sum() == 1
    assert matched(x, x[:, [0]]).tolist()[1:] == [0.0, 0.0]


def table(people: int = 60, columns: int = 20) -> tuple[Reals, Reals]:
    """A row a person, and what somebody knows of them: near it."""
    chance = np.random.default_rng(6)
    rows = chance.normal(size=(people, columns))
    return rows, rows + 0.5 * chance.normal(size=rows.shape)


def test_scores_are_those_of_a_slow_sum() -> None:
    rows, known = table(5, 4)
    rows[0, 1] = rows[3, 1] = known[2, 0] = math.nan
    scores = link(known, rows).scores
    for person, record in np.ndindex(scores.shape):
        total = 0.0
        for at in range(4):
            column = rows[:, at][~np.isnan(rows[:, at])]
            away = abs(known[person, at] - rows[record, at])
            if not math.isnan(away):
                total += math.exp(-away / column.std()) / math.log(len(column))
        assert scores[person, record] == pytest.approx(total)


def test_rows_without_names_are_named() -> None:
    rows, known = table()
    found = link(known, rows)
    assert found.named(np.arange(60)) > 0.95
    precision, recall = found.believed(np.arange(60))
    assert precision > 0.95
    assert 0.5 < recall <= 1
    strangers = link(np.random.default_rng(7).normal(size=(60, 20)), rows)
    assert (strangers.eccentricity >= 1.5).mean() < (found.eccentricity >= 1.5).mean() / 3


def test_equals_share_the_blame() -> None:
    rows = np.array([[0.0], [0.0], [5.0]])
    found = link(np.array([[0.0], [5.0]]), rows)
    assert found.hits(np.array([1, 2])).tolist() == [0.5, 1.0]
    assert found.narrowed(np.array([1, 2])) == 1.0
    assert found.eccentricity[0] == 0.0


def test_classes_of_k_and_swapping_hide_as_far_as_they_say() -> None:
    rows, known = table()
    records = Records({f"x{at}": tuple(map(repr, column)) for at, column in enumerate(rows.T.tolist())})
    names = tuple(records.columns)
    boxed = KAnonymity(k=6, quasi=names, method="mondrian").release(records).value.records
    low, high, _ = attributes(boxed, records, names)
    truth = np.arange(60)
    assert link(known, low, high).named(truth) <= 1 / 6 + 1e-9
    assert link(known, low, high).narrowed(truth) > 0.5
    for name in names:
        records = Swapping(columns=(name,), rate=0.2).release(records).value
    assert link(known, attributes(records, records, names)[0]).named(truth) > 0.8


def test_noise_for_a_person_stops_everyone() -> None:
    """600 rows under 1-DP: nobody names more than e^2 / (e^2 + 59) of them, and five deviations."""
    rows, known = table()
    rows *= math.sqrt(20) / np.linalg.norm(rows, axis=1, keepdims=True)
    bounds = {"sensitivity": 2 * math.sqrt(20), "dimension": 20, "relation": Relation("speaker", "replace")}
    noise = DiscreteGaussian.calibrated(epsilon=1.0, delta=1e-5, **bounds)
    told = [np.stack([noise.release(torch.from_numpy(row)).value.numpy() for row in rows]) for _ in range(10)]
    most = math.e**2 / (math.e**2 + 59)
    margin = 5 * math.sqrt(most * (1 - most) / 600)
    assert np.mean([link(known, each).named(np.arange(60)) for each in told]) < most + margin
    assert np.mean([match(known, each) == np.arange(60) for each in told]) < most + margin
    assert link(known, rows).named(np.arange(60)) > 0.9


def test_matching_all_people_sees_through_noise_that_stops_scores() -> None:
    chance = np.random.default_rng(10)
    people, truth = chance.normal(size=(60, 20)), np.arange(60)
    noisy = [people + 1.5 * chance.normal(size=people.shape) for _ in range(10)]
    jointly = np.mean([match(people, each) == truth for each in noisy])
    assert jointly > 1.5 * np.mean([link(people, each).named(truth) for each in noisy])
    assert jointly > 0.5


def test_a_matching_gives_no_row_twice_and_draws_among_equals() -> None:
    people = np.random.default_rng(11).normal(size=(40, 3))
    assert match(people, people).tolist() == list(range(40))
    assert sorted(match(people, np.zeros((40, 3))).tolist()) == list(range(40))
    # equal rows: the own one as often as any other, 1 of 40 in the mean; 20 of 40 has a probability below 1e-18
    assert (match(people, np.zeros((40, 3))) == np.arange(40)).sum() < 20
    assert sorted(match(people[:3], people[:2]).tolist()) == [-1, 0, 1]
    gaps = np.where(np.arange(40)[:, None] % 2 == 0, people, np.nan)
    assert match(people[::2], gaps).tolist() == list(range(0, 40, 2))


def test_text_becomes_attributes() -> None:
    released = Records({"age": ("[20, 30)", "41", "*"), "city": ("Bonn|Ulm", "*", "Ulm")})
    known = Records({"age": ("25", "41"), "city": ("Bonn", "Ulm")})
    low, high, values = attributes(released, known, ("age", "city"))
    nan = math.nan
    assert np.array_equal(low, [[20, 0, 0], [41, nan, nan], [nan, nan, 0]], equal_nan=True)
    assert np.array_equal(high, [[30, 0, 0], [41, nan, nan], [nan, nan, 0]], equal_nan=True)
    assert np.array_equal(values, [[25, 0, nan], [41, nan, 0]], equal_nan=True)


def test_what_is_known_of_a_person_is_the_mean_of_the_rows() -> None:
    found = of_people(np.array([[1.0, np.nan], [3.0, np.nan], [5.0, 7.0]]), np.array([0, 0, 1]))
    assert np.array_equal(found, [[2, np.nan], [5, 7]], equal_nan=True)


def named_table(seed: int, noise: float) -> Records:
    rows = table()[0] + noise * np.random.default_rng(seed).normal(size=(60, 20))
    columns = {f"x{at}": tuple(map(repr, column)) for at, column in enumerate(rows.T.tolist())}
    return Records({"name": tuple(f"p{at}" for at in range(60)), **columns})


def test_the_names_are_for_the_judge_alone() -> None:
    """Rows that have nothing to do with the people are not linked to them, though both files have the names."""
    assert link_tables(named_table(8, 0.2), named_table(9, 0.2), "name").named > 0.9
    unlike = link_tables(named_table(8, 1e6), named_table(9, 1e6), "name")
    assert unlike.named < 0.15  # chance is 1 / 60
    assert unlike.matched < 0.15
    assert "name" not in unlike.columns
    with pytest.raises(PrivacyError, match="no name in common"):
        link_tables(named_table(8, 0.2), named_table(9, 0.2).replaced({"name": ("x",) * 60}), "name")
    with pytest.raises(PrivacyError, match="there is none"):
        link_tables(named_table(8, 0.2), Records({"name": ("p0", "p1"), "y": ("1", "2")}), "name")
