"""A histogram whose sensitivity nobody has to work out."""

import math
from typing import Any

import pytest
import torch

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Histogram, Relation
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace

SPEAKER = Relation("speaker", "add_remove")


def exact(values: torch.Tensor, ids: torch.Tensor | None = None, **changes: Any) -> torch.Tensor:
    """The counts behind the noise: epsilon is so large that the noise is zero but once in e^50."""
    terms = {"bins": 4, "epsilon": 200.0, "relation": Relation("record", "add_remove")} | changes
    return Histogram(**terms).release(values, ids).value


def test_values_are_counted_and_those_outside_count_nowhere() -> None:
    assert exact(torch.tensor([0, 3, 3, 9, -1, 1])).tolist() == [1, 1, 0, 2]
    assert exact(torch.tensor([], dtype=torch.int64)).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("adjacency", "delta", "reach"),
    [("add_remove", 0.0, 3), ("replace", 0.0, 6), ("add_remove", 1e-5, 3.0), ("replace", 1e-5, 3 * math.sqrt(2))],
)
def test_the_sensitivity_is_that_of_the_worst_person(adjacency: Any, delta: float, reach: float) -> None:
    """Against the largest change over all pairs of what one person with three values can add."""
    found = Histogram(bins=3, epsilon=1.0, delta=delta, relation=Relation("speaker", adjacency), most=3).mechanism
    assert found.sensitivity == pytest.approx(reach)
    assert isinstance(found, DiscreteLaplace if delta == 0 else DiscreteGaussian)
    assert found.guarantee.float_safe
    parts = [torch.tensor([a, b, n - a - b]) for n in range(4) for a in range(n + 1) for b in range(n + 1 - a)]
    none = [torch.zeros(3)] if adjacency == "add_remove" else parts
    norm = 1 if delta == 0 else 2
    assert max(float((one - other).float().norm(norm)) for one in parts for other in none) == pytest.approx(reach)


def test_a_person_counts_at_most_so_often_and_only_where_it_is_known_who() -> None:
    values, whose = torch.tensor([2] * 50 + [1]), torch.tensor([7] * 50 + [8])
    assert exact(values, whose, relation=SPEAKER, most=5).tolist() == [0, 1, 5, 0]
    with pytest.raises(PrivacyError, match="which speaker it is of"):
        exact(values, relation=SPEAKER)
    with pytest.raises(PrivacyError, match="51 rows need as many groups"):
        exact(values, whose[:-1], relation=SPEAKER)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bins": 0}, "bins"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"most": 2}, "a record is one value"),
        ({"delta": 2.0}, "delta"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        exact(torch.tensor([0]), **change)
    with pytest.raises(PrivacyError, match="vector of whole numbers"):
        exact(torch.tensor([0.5]))
