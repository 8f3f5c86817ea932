"""Linear scorers: encrypted scores are the plain ones to their bound, and norms are folded in as defined."""

import numpy as np
import pytest
import torch

from ppspeech.errors import ModelError, RangeError
from ppspeech.models.speakers import t_norm
from ppspeech.protocols.scores.linear import LinearColumns, LinearPlan, LinearScorer, ScoreNorm
from tests.protocols.speaker_meeting import ask, unit

generator = np.random.default_rng(5)


def z_norm(scores: torch.Tensor, impostors: torch.Tensor) -> torch.Tensor:
    """Each speaker's scores in units of those that impostors get from its model, as they are defined."""
    return (scores - impostors.mean(0)) / impostors.std(0, correction=1)


def scores_of(plan: LinearPlan, scorer: LinearScorer, embedding: np.ndarray) -> np.ndarray:
    """Both parties' shares, joined: for this test only."""
    row = plan.rows(embedding)
    mine, theirs, *_ = ask(lambda met: met.multiply(plan.product, row)[0], lambda met: scorer.multiply(met)[0])
    return plan.scale.decode(plan.ring.to_signed(plan.ring.join(mine, theirs)))


@pytest.mark.parametrize(("features", "models"), [(1, 1), (40, 7), (256, 300)])
def test_scores_are_within_the_bound(features: int, models: int) -> None:
    plan = LinearPlan(features, models, reach=2)
    weights = unit(generator.normal(size=(features, models)))
    scorer = LinearScorer.of(plan, LinearColumns.of(weights), 0.3)
    embedding = unit(generator.normal(size=features))
    error = np.abs(scores_of(plan, scorer, embedding) - (embedding @ weights - 0.3)).max()
    assert error <= scorer.bound.total + plan.scale.decode(np.array([1]))[0]
    assert scorer.bound.total < 1e-3


def test_norms_are_folded_in_as_defined() -> None:
    """Z- and T-norm of `models`, from columns that the protocol squares and compares."""
    models, cohort = unit(generator.normal(size=(32, 5))), unit(generator.normal(size=(32, 8)))
    impostors, trials = unit(generator.normal(size=(32, 50))), unit(generator.normal(size=(32, 20)))
    norms = [ScoreNorm((impostors.T @ m).mean(0), (impostors.T @ m).std(0, ddof=1)) for m in (models, cohort)]
    columns = LinearColumns.of(models, cohort, *norms)
    weights, offsets = columns.folded(LinearPlan(32, 5, 8), 1.5)
    found = trials.T @ weights + offsets
    normed = [z_norm(torch.tensor(trials.T @ m), torch.tensor(impostors.T @ m)) for m in (models, cohort)]
    wanted = t_norm(*normed).numpy()
    spread = np.sqrt(np.square(found[:, 5:]).sum(1, keepdims=True)) / 1.5
    assert np.allclose(found[:, :5] / spread, wanted)


def test_without_a_cohort_the_threshold_is_taken_off() -> None:
    weights, offsets = LinearColumns.of(np.eye(3)).folded(LinearPlan(3, 3), 0.25)
    assert np.array_equal(weights, np.eye(3))
    assert offsets.tolist() == [-0.25] * 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"features": 0},
        {"models": 0},
        {"cohort": 1},
        {"cohort": -2},
        {"norm": 0.0},
        {"norm": float("nan")},
        {"reach": 30},
    ],
)
def test_plans_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises((ModelError, RangeError)):
        LinearPlan(**{"features": 4, "models": 2, **wrong})  # type: ignore[arg-type]


def test_models_that_do_not_fit_are_refused() -> None:
    plan = LinearPlan(4, 2, reach=1)
    with pytest.raises(ModelError, match="shapes"):
        LinearScorer.of(plan, LinearColumns.of(np.zeros((4, 3))), 0.0)
    with pytest.raises(RangeError, match="raise its reach"):
        LinearScorer.of(plan, LinearColumns.of(np.full((4, 2), 2.0)), 0.0)
    with pytest.raises(ModelError, match="finite"):
        LinearScorer.of(plan, LinearColumns.of(np.zeros((4, 2))), float("nan"))
    with pytest.raises(ModelError, match="spread > 0"):
        LinearColumns.of(np.zeros((4, 2)), norm=ScoreNorm(np.zeros(2), np.zeros(2)))


@pytest.mark.parametrize("embedding", [np.zeros(3), np.zeros((4, 1)), np.full(4, 0.6), np.array([np.nan, 0, 0, 0])])
def test_embeddings_that_cannot_be_are_refused(embedding: np.ndarray) -> None:
    with pytest.raises(RangeError):
        LinearPlan(4, 2).rows(embedding)
