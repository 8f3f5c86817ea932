"""Exponential mechanism and permute-and-flip: gold laws, sampled laws, exact privacy. False-alarm rate 1e-6 each."""

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Exponential, PermuteAndFlip, Relation

ALARM = 1e-6
R: Any = {"relation": Relation("record", "add_remove")}
UTILITIES = torch.tensor([0.0, -1, -2, -4, -5])
KINDS: list[Any] = [Exponential, PermuteAndFlip]


@pytest.mark.parametrize(
    ("kind", "law", "error"),
    [
        (Exponential, (0.4562, 0.2767, 0.1678, 0.0617, 0.0375), 1.0466),
        (PermuteAndFlip, (0.5384, 0.2486, 0.1377, 0.0471, 0.0282), 0.8533),
    ],
)
def test_gold(kind: Any, law: tuple[float, ...], error: float) -> None:
    mechanism = kind(epsilon=1.0, sensitivity=1.0, **R)
    found = mechanism.probabilities(UTILITIES)
    assert found.tolist() == pytest.approx(law, abs=6e-5)
    assert float(-(found * UTILITIES).sum()) == pytest.approx(error, abs=6e-5)
    drawn = np.bincount([mechanism.release(UTILITIES).value for _ in range(1000)], minlength=5)
    assert stats.chisquare(drawn, found.numpy() * 1000).pvalue > ALARM


def test_permute_and_flip_law_against_all_orders() -> None:
    """Take the candidates in every order and flip: the slow, obvious definition."""
    mechanism = PermuteAndFlip(epsilon=1.3, sensitivity=0.7, **R)
    utilities = torch.tensor([0.3, -1.0, 0.2, -0.4])
    p = torch.exp(1.3 * (utilities - utilities.max()) / 1.4).tolist()
    law = np.zeros(4)
    for order in permutations(range(4)):
        left = 1 / math.factorial(4)
        for r in order:
            law[r] += left * p[r]
            left *= 1 - p[r]
    assert mechanism.probabilities(utilities).tolist() == pytest.approx(law.tolist(), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-20, 20), st.floats(-1, 1)), min_size=1, max_size=7),
    st.floats(0.05, 3.0),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_the_loss_never_exceeds_epsilon(
    pairs: list[tuple[float, float]], epsilon: float, kind: Any, monotone: bool
) -> None:
    mechanism = kind(epsilon=epsilon, sensitivity=1.0, monotone=monotone, **R)
    before = torch.tensor([u for u, _ in pairs], dtype=torch.float64)
    move = torch.tensor([m for _, m in pairs], dtype=torch.float64)
    after = before + (move.abs() if monotone else move)
    loss = (mechanism.probabilities(before).log() - mechanism.probabilities(after).log()).abs().max()
    assert float(loss) <= epsilon * (1 + 1e-9) + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-10, 0), min_size=1, max_size=9))
def test_permute_and_flip_is_never_worse(utilities: list[float]) -> None:
    u = torch.tensor(utilities, dtype=torch.float64)
    expected = [float((kind(epsilon=1.0, sensitivity=1.0, **R).probabilities(u) * u).sum()) for kind in KINDS]
    assert expected[1] >= expected[0] - 1e-9


def test_how_each_is_booked() -> None:
    exponential, flip = (kind(epsilon=0.4, sensitivity=1.0, **R).event for kind in KINDS)
    assert (exponential.pure(), flip.pure()) == (0.4, 0.4)
    assert (exponential.zcdp(), flip.zcdp()) == pytest.approx((0.02, 0.08))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("utilities", [torch.zeros(0), torch.zeros(2, 2), torch.tensor([0.0, math.nan])])
def test_bad_utilities_are_refused(kind: Any, utilities: torch.Tensor) -> None:
    with pytest.raises(PrivacyError, match="utilities"):
        kind(epsilon=1.0, sensitivity=1.0, **R).release(utilities)


@pytest.mark.parametrize("kind", KINDS)
def test_one_candidate_and_hopeless_candidates(kind: Any) -> None:
    mechanism = kind(epsilon=1.0, sensitivity=1.0, **R)
    assert mechanism.release(torch.tensor([-3.0])).value == 0
    assert {mechanism.release(torch.tensor([0.0, -1e6])).value for _ in range(20)} == {0}


@pytest.mark.parametrize("kind", KINDS)
def test_monotone_utilities_under_replace_cost_twice_as_much_and_are_refused(kind: Any) -> None:
    """Who is replaced takes one from a count and gives one to another: what add_remove never does."""
    counts, neighbor = torch.tensor([0.0, 20.0]), torch.tensor([1.0, 19.0])
    chosen = kind(epsilon=1.0, sensitivity=1.0, monotone=True, **R)
    loss = (chosen.probabilities(neighbor).log() - chosen.probabilities(counts).log()).abs().max()
    assert float(loss) == pytest.approx(2.0, abs=1e-3)  # of a stated 1
    with pytest.raises(PrivacyError, match="under replace one may rise and another fall"):
        kind(epsilon=1.0, sensitivity=1.0, monotone=True, relation=Relation("record", "replace"))
    plain = kind(epsilon=1.0, sensitivity=1.0, relation=Relation("record", "replace"))
    assert float((plain.probabilities(neighbor).log() - plain.probabilities(counts).log()).abs().max()) <= 1 + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_exact_coins_are_said_to_be_exact(kind: Any) -> None:
    chosen = kind(epsilon=1.0, sensitivity=1.0, **R)
    assert chosen.event.float_safe
    assert chosen.guarantee.float_safe
    assert chosen.guarantee.epsilon == 1.0
