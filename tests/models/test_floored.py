"""Scores with a floor under every frame: the obvious loop, and nothing changed where no frame is that low."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from ppspeech.models import (
    DiscreteEmission,
    GaussianEmission,
    HiddenMarkovModel,
    LargeMarginHmm,
    ScoreFloor,
    Topology,
    WordModel,
    ergodic,
    floored_scores,
    left_right,
    score_floor,
)
from ppspeech.models.floored import DEPTH, RAREST, ROOM


def made_bank(topology: Topology, components: int = 1) -> HiddenMarkovModel:
    torch.manual_seed(3)
    bank = HiddenMarkovModel(topology, GaussianEmission(2, topology.states, 3, components, dtype=torch.float64))
    for parameter in bank.parameters():
        nn.init.normal_(parameter)
    bank.transition_logits.data[0, 0, 1] = -500.0  # far rarer than counts
    return bank


def by_loop(bank: WordModel, x: torch.Tensor, floor: ScoreFloor, best_path: bool) -> np.ndarray:
    """Every path one step at a time, in plain numbers."""
    combine = max if best_path else lambda values: float(np.logaddexp.reduce(values))
    states, offsets = bank.topology.states, bank.topology.offsets
    a, pi = bank.log_transitions().clamp_min(RAREST).detach(), bank.log_initial().clamp_min(RAREST).detach()
    if isinstance(bank, LargeMarginHmm):
        scores = bank.emissions(x[None])[0].detach()[..., None]
    else:
        scores = bank.emission._log_density(x[None], None)[0].detach()
        scores = scores if bank.emission.components > 1 else scores[..., None]
    result = []
    for word in range(len(pi)):
        stay = [float(a[word, j, j]) if 0 in offsets else 0.0 for j in range(states)]

        def emission(t: int, j: int, word: int = word, stay: list[float] = stay) -> float:
            parts = [max(float(each), floor.level - stay[j]) for each in scores[t, word, j]]
            return float(np.logaddexp.reduce(parts))

        gamma = {j: float(pi[word, j]) + emission(0, j) for j in range(states) if bank.topology.initial[j]}
        for t in range(1, len(x)):
            came: dict[int, list[float]] = {}
            for i, move in product(gamma, offsets):
                if 0 <= i + move < states:
                    came.setdefault(i + move, []).append(gamma[i] + float(a[word, i, i + move]))
            gamma = {j: combine(values) + emission(t, j) for j, values in came.items()}
        result.append(combine([value for j, value in gamma.items() if bank.topology.final[j]]))
    return np.array(result)


SINGLE = [left_right(3, must_finish=True), left_right(4, 1), ergodic(2)]


@pytest.mark.parametrize(
    ("topology", "components", "best_path"),
    [*((topology, 1, best) for topology in SINGLE for best in (False, True)), (left_right(2), 3, False)],
)
def test_scores_are_those_of_the_loop(topology: Topology, components: int, best_path: bool) -> None:
    """The best path goes through states, whose components add up: it is tried with one component."""
    bank = made_bank(topology, components)
    for model in (bank, LargeMarginHmm.from_hmm(bank)) if components == 1 else (bank,):
        x = torch.randn(7, 3, dtype=torch.float64) * torch.tensor([1, 1, 9, 1, 90, 1, 1])[:, None]
        x = x if model is bank else x.float()
        floor = score_floor(model)
        assert floor is not None
        found = floored_scores(model, x[None], torch.tensor([7]), floor, best_path=best_path).detach()
        np.testing.assert_allclose(found[0].numpy(), by_loop(model, x, floor, best_path), rtol=1e-4)


@torch.no_grad()
def test_the_floor_leaves_every_state_its_room_and_ordinary_frames_alone() -> None:
    bank = made_bank(left_right(3))
    bank.transition_logits.data.zero_()
    floor = score_floor(bank)
    assert floor is not None
    assert floor.depth == DEPTH
    means = bank.emission.gaussians.mean.detach()
    peaks = bank.emission.log_likelihood(means.flatten(0, 1)[None])[0].flatten(1).diagonal().detach()
    assert float(peaks.min()) - floor.level > ROOM
    assert floor.level + floor.depth <= float(peaks.max())  # staying included
    x, lengths = means[:1], torch.tensor([3])
    torch.testing.assert_close(floored_scores(bank, x, lengths, floor), bank(x, lengths))
    far = 1e3 * torch.ones(1, 3, 3, dtype=torch.float64)
    assert (
        float(floored_scores(bank, far, lengths, floor).min()) > 3 * floor.level - 100 > float(bank(far, lengths).max())
    )
    apart = torch.tensor([1.0, 1e90], dtype=torch.float64).view(2, 1, 1, 1)
    bank.emission.gaussians.set_moments_(means, apart * torch.eye(3, dtype=torch.float64).expand(2, 3, 3, 3))
    wider = score_floor(bank)
    assert wider is not None
    assert wider.depth == 2 * DEPTH


def test_what_scores_no_frames_has_no_floor() -> None:
    assert score_floor(HiddenMarkovModel(left_right(2), DiscreteEmission(2, 2, 4))) is None
    assert score_floor(nn.Linear(2, 2)) is None
