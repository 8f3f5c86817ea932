"""Output perturbation: the stated sensitivity is never exceeded and nearly reached."""

import pytest
import torch

from ppspeech.errors import PrivacyError
from ppspeech.models.linear import LogisticRegression
from ppspeech.privacy import Relation
from ppspeech.privacy.convex.bounds import logistic_head, softmax_head
from ppspeech.privacy.convex.output import OutputPerturbation
from ppspeech.privacy.relation import Adjacency


def hook(delta: float = 0.0, adjacency: Adjacency = "add_remove") -> OutputPerturbation:
    return OutputPerturbation(epsilon=1.0, delta=delta, relation=Relation("record", adjacency), regularization=20.0)


@pytest.mark.parametrize(("adjacency", "times"), [("add_remove", 1), ("replace", 2)])
def test_one_record_moves_the_minimizer_by_nearly_the_sensitivity(adjacency: Adjacency, times: int) -> None:
    """One record (R, +-1) among zero rows: R / Lambda up to curvature; a mix-up of lambda and lambda / 2 would show."""
    plan = hook(adjacency=adjacency).for_head(logistic_head(), 1.0, (1, 2))
    assert plan.sensitivity == pytest.approx(times / 20, rel=1e-5)
    zero = torch.zeros(5, 1, dtype=torch.double)
    found = []
    for label in (0, 1, None):
        model = LogisticRegression(1, constant=0.0, dtype=torch.double)
        x = zero if label is None else torch.cat([zero, zero[:1] + 1])
        y = torch.zeros(len(x), dtype=torch.long)
        if label is not None:
            y[-1] = label
        model.fit(x, y, quadratic=20.0)
        found.append(model.weight.detach())
    moved = (found[1] - (found[0] if times == 2 else found[2])).norm()
    # the record's slope at 0 is one half of its bound
    assert 0.48 * plan.sensitivity < moved < plan.sensitivity


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_guarantee_and_events_state_the_budget(delta: float) -> None:
    plan = hook(delta).for_head(softmax_head(3), 2.0, (3, 4), averaged=True)
    assert plan.guarantee.epsilon == pytest.approx(1.0, rel=1e-5)
    assert (plan.guarantee.delta, plan.guarantee.float_safe) == (delta, True)
    assert plan.event.epsilon(delta) == pytest.approx(1.0, rel=1e-5)


def test_bad_budgets_are_refused() -> None:
    with pytest.raises(PrivacyError, match="regularization"):
        OutputPerturbation(epsilon=1.0, relation=Relation("record", "replace"), regularization=0.0)
    with pytest.raises(PrivacyError, match="heads"):
        hook().for_head(logistic_head(), 1.0, (0, 2))
