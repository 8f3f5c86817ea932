"""Records perturbed where they are: the laws of what is told, and the corrections they allow."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from scipy import stats

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Relation
from ppspeech.privacy.mechanisms import LabelResponse, LocalRecords

SPEAKER = Relation("speaker", "replace")
RUNS = 40_000


def told(delta: float = 0.0, **more: Any) -> LocalRecords:
    given: dict[str, Any] = {"features": 3, "classes": 4, "radius": 1.0, "epsilon_vector": 2.0, "epsilon_label": 1.0}
    return LocalRecords(**(given | {"delta": delta} | more))


def test_classes_are_told_with_the_probabilities_stated() -> None:
    one = LabelResponse(classes=4, epsilon=1.0)
    said = one.release(torch.full((RUNS,), 2)).value
    counts = torch.bincount(said, minlength=4).numpy()
    assert stats.chisquare(counts, one.matrix()[:, 2].numpy() * RUNS).pvalue > 1e-7
    lie = float(one.matrix()[0, 2])
    assert math.log(one.truth / lie) == pytest.approx(1.0)


def test_the_inverse_undoes_the_response() -> None:
    one = LabelResponse(classes=5, epsilon=0.7)
    assert torch.allclose(one.inverse() @ one.matrix(), torch.eye(5, dtype=torch.double))
    assert torch.allclose(one.inverse().sum(1), torch.ones(5, dtype=torch.double))
    grown = math.exp(0.7)
    assert float(one.inverse()[0, 0]) == pytest.approx((grown + 3) / (grown - 1))
    assert float(one.inverse()[0, 1]) == pytest.approx(-1 / (grown - 1))


def test_gamma_norm_noise_has_the_length_and_the_covariance_stated() -> None:
    """Of opposite ends of the ball: kappa is epsilon over the diameter, not the radius."""
    one = told()
    assert one.kappa == 1.0
    x, _ = one.release((torch.zeros(RUNS, 3), torch.zeros(RUNS, dtype=torch.long))).value
    assert stats.kstest(x.norm(dim=1).numpy(), stats.gamma(3, scale=1 / one.kappa).cdf).pvalue > 1e-7
    assert one.variance == pytest.approx(4.0)
    spread = 6 * math.sqrt(3 * 24 / RUNS)  # E b^4 = 3 (d + 1)(d + 3) / kappa^4
    assert torch.allclose(x.mT @ x / RUNS, one.variance * torch.eye(3, dtype=torch.double), atol=spread)


def test_gaussian_noise_is_exact_and_for_the_diameter() -> None:
    one = told(1e-5)
    assert one.guarantee.float_safe
    assert one.guarantee.epsilon <= 3.0
    x, _ = one.release((torch.zeros(RUNS, 3), torch.zeros(RUNS, dtype=torch.long))).value
    step = one.gaussian.grid.step
    assert torch.equal(x / step, (x / step).round())
    assert stats.kstest(x.flatten().numpy(), stats.norm(scale=math.sqrt(one.variance)).cdf).pvalue > 1e-7
    half = replace(one.gaussian, sensitivity=1.0)
    assert half.event.delta(2.0) < one.gaussian.event.delta(2.0) <= 1e-5


def test_long_vectors_are_clipped() -> None:
    one = told(epsilon_vector=200.0)
    x, _ = one.release((torch.tensor([[30.0, 40.0, 0.0]]), torch.tensor([0]))).value
    assert torch.allclose(x, torch.tensor([[0.6, 0.8, 0.0]], dtype=torch.double), atol=0.5)


def test_a_unit_of_several_records_pays_for_each_and_tells_no_more() -> None:
    one = told(most=2, relation=SPEAKER)
    assert one.guarantee.epsilon == pytest.approx(6.0)
    x, y = one.release((torch.zeros(5, 3), torch.zeros(5, dtype=torch.long)), torch.tensor([1, 1, 1, 1, 2])).value
    assert (len(x), len(y)) == (3, 3)
    several = told(1e-6, most=4, relation=SPEAKER)
    assert several.guarantee.epsilon < 4 * told(1e-6).guarantee.epsilon  # deviations of sums grow as the root


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LabelResponse(classes=1, epsilon=1.0), "classes"),
        (lambda: LabelResponse(classes=3, epsilon=0.0), "epsilon"),
        (lambda: LabelResponse(classes=3, epsilon=1.0).release(torch.tensor([3])), "0..2"),
        (lambda: LabelResponse(classes=3, epsilon=1.0).release(torch.tensor([0.5])), "whole numbers"),
        (lambda: told(relation=Relation("record", "add_remove")), "replaced"),
        (lambda: told(most=2), "most must be 1"),
        (lambda: told(radius=0.0), "radius"),
        (lambda: told().release((torch.zeros(2, 4), torch.zeros(2))), "3 numbers"),
        (lambda: told().release((torch.full((1, 3), math.nan), torch.tensor([0]))), "NaN"),
        (lambda: told(most=2, relation=SPEAKER).release((torch.zeros(2, 3), torch.zeros(2))), "which speaker"),
    ],
)
def test_doors(make: Any, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        make()
