import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.hmm.forward_backward import (
    LOG_ZERO,
    backward_variables,
    forward_variables,
    log_likelihood,
    posteriors,
)
from ppspeech.models.hmm.topology import Topology, ergodic, left_right
from ppspeech.models.hmm.viterbi import viterbi

TOPOLOGIES = {
    "left_right": left_right(3),
    "skips": left_right(4, skips=1, must_finish=True),
    "ergodic": ergodic(3),
    "own": Topology(
        ((True, False, True), (True, True, False), (False, True, False)), (True, True, False), (False, True, True)
    ),
}


def problem(topology: Topology, batch: int, frames: int, models: int, seed: int = 0) -> dict[str, Tensor]:
    make = torch.Generator().manual_seed(seed)
    states = topology.states
    transitions, initial, final = topology.masks(torch.zeros(1))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=make, dtype=torch.float64)

    def masked(logits: Tensor, mask: Tensor) -> Tensor:
        return torch.where(mask, torch.where(mask, logits, LOG_ZERO).log_softmax(-1), LOG_ZERO)

    return {
        "log_emissions": 3 * normal(batch, frames, models, states),
        "log_transitions": masked(normal(models, states, states), transitions),
        "log_initial": masked(normal(models, states), initial),
        "lengths": torch.randint(1, frames + 1, (batch,), generator=make),
        "log_final": torch.where(final, 0.0, LOG_ZERO).double(),
    }


def every_path(p: dict[str, Tensor], b: int, m: int) -> dict[tuple[int, ...], float]:
    """The slow way: the log-probability of every state sequence of one utterance under one model."""
    length, states = int(p["lengths"][b]), p["log_emissions"].shape[-1]
    initial, final = p["log_initial"][m].tolist(), p["log_final"].tolist()
    emissions, transitions = p["log_emissions"][b, :, m].tolist(), p["log_transitions"][m].tolist()
    scores = {}
    for path in itertools.product(range(states), repeat=length):
        score = initial[path[0]] + final[path[-1]] + sum(emissions[t][s] for t, s in enumerate(path))
        scores[path] = score + sum(transitions[i][j] for i, j in itertools.pairwise(path))
    return scores


def log_sum(values: list[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("banded", [False, True])
def test_scores_and_posteriors_are_sums_over_every_path(name: str, banded: bool) -> None:
    topology = TOPOLOGIES[name]
    p = problem(topology, batch=4, frames=5, models=2)
    p["lengths"][0] = 5
    band = topology.offsets if banded else None
    found = posteriors(**p, band=band)
    score = log_likelihood(**p, band=band)
    best = viterbi(**p)
    for b, m in itertools.product(range(4), range(2)):
        paths = every_path(p, b, m)
        total = log_sum(list(paths.values()))
        if total < LOG_ZERO / 2:
            assert score[b, m] < LOG_ZERO / 2
            assert not found.states[b, :, m].any()
            continue
        assert score[b, m].item() == pytest.approx(total, abs=1e-9)
        assert found.log_likelihood[b, m].item() == pytest.approx(total, abs=1e-9)
        gamma = torch.zeros(5, topology.states, dtype=torch.float64)
        xi = torch.zeros(topology.states, topology.states, dtype=torch.float64)
        for path, value in paths.items():
            if value < LOG_ZERO / 2:
                continue
            share = math.exp(value - total)
            for t, s in enumerate(path):
                gamma[t, s] += share
            for i, j in itertools.pairwise(path):
                xi[i, j] += share
        torch.testing.assert_close(found.states[b, :, m], gamma, atol=1e-9, rtol=0)
        torch.testing.assert_close(found.transitions[b, m], xi, atol=1e-9, rtol=0)
        top = max(paths, key=lambda path: paths[path])
        assert best.score[b, m].item() == pytest.approx(paths[top], abs=1e-9)
        assert tuple(best.states[b, :, m].tolist()) == top + (-1,) * (5 - len(top))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), frames=st.integers(1, 12), name=st.sampled_from(sorted(TOPOLOGIES)))
def test_forward_and_backward_agree_at_every_frame(seed: int, frames: int, name: str) -> None:
    """sum_j alpha_t(j) beta_t(j) = p(x), whichever t one cuts at."""
    topology = TOPOLOGIES[name]
    p = problem(topology, batch=3, frames=frames, models=2, seed=seed)
    final = p.pop("log_final")
    alpha = forward_variables(**p, band=topology.offsets)
    p_backward = {k: v for k, v in p.items() if k != "log_initial"}
    beta = backward_variables(**p_backward, log_final=final)
    cut = torch.logsumexp(alpha + beta, dim=-1)
    score = log_likelihood(**p, log_final=final)
    for b, length in enumerate(p["lengths"].tolist()):
        for m in range(2):
            possible = can_last(topology, length)
            assert bool(score[b, m] > LOG_ZERO / 2) == possible
            if possible:
                torch.testing.assert_close(cut[b, :length, m], score[b, m].expand(length), atol=1e-9, rtol=1e-12)
            else:
                assert bool((cut[b, :length, m] < LOG_ZERO / 2).all())


def can_last(topology: Topology, frames: int) -> bool:
    """Whether a path of so many frames leads from an initial to a final state."""
    here = {state for state, allowed in enumerate(topology.initial) if allowed}
    for _ in range(frames - 1):
        here = {after for state in here for after, allowed in enumerate(topology.transitions[state]) if allowed}
    return any(topology.final[state] for state in here)


def test_no_path_is_as_long_as_a_word_is_short() -> None:
    finishing = TOPOLOGIES["skips"]
    assert [can_last(finishing, frames) for frames in (1, 2, 3, 4)] == [False, False, True, True]


def test_padding_and_company_change_nothing() -> None:
    p = problem(left_right(3), batch=5, frames=9, models=2)
    together = log_likelihood(**p)
    for b, length in enumerate(p["lengths"].tolist()):
        alone = {**p, "log_emissions": p["log_emissions"][b : b + 1, :length], "lengths": p["lengths"][b : b + 1]}
        torch.testing.assert_close(log_likelihood(**alone)[0], together[b], atol=1e-12, rtol=0)


def test_one_frame_and_twenty_thousand_frames() -> None:
    p = problem(left_right(3), batch=1, frames=1, models=1)
    assert log_likelihood(**p).item() == pytest.approx(p["log_emissions"][0, 0, 0, 0].item(), abs=1e-12)

    frames = 20_000
    p = problem(ergodic(2), batch=1, frames=frames, models=1)
    p["lengths"][0] = frames
    # The slow way: scaled probabilities in Python, frame by frame.
    transitions = p["log_transitions"][0].exp().tolist()
    emissions = p["log_emissions"][0, :, 0].tolist()
    alpha = [math.exp(v) for v in (p["log_initial"][0] + p["log_emissions"][0, 0, 0]).tolist()]
    logs = []
    for t in range(1, frames):
        scale = sum(alpha)
        logs.append(math.log(scale))
        a, b = alpha[0] / scale, alpha[1] / scale
        alpha = [(a * transitions[0][j] + b * transitions[1][j]) * math.exp(emissions[t][j]) for j in (0, 1)]
    expected = math.fsum([*logs, math.log(sum(alpha))])
    assert log_likelihood(**p).item() == pytest.approx(expected, rel=1e-12)
    single = {k: v.float() if v.is_floating_point() else v for k, v in p.items()}
    assert log_likelihood(**single).item() == pytest.approx(expected, rel=1e-5)


def test_an_empty_utterance_is_certain_and_teaches_nothing() -> None:
    p = problem(left_right(3), batch=2, frames=4, models=2)
    p["lengths"] = torch.tensor([0, 4])
    found = posteriors(**p)
    assert found.log_likelihood[0].tolist() == [0, 0]
    assert not found.states[0].any()
    assert not found.transitions[0].any()
    assert viterbi(**p).states[0].unique().tolist() == [-1]
    assert viterbi(**p).score[0].tolist() == [0, 0]


@pytest.mark.parametrize("band", [None, (0, 1)])
def test_the_gradient_of_the_score_is_right(band) -> None:
    p = problem(left_right(3), batch=2, frames=4, models=2)
    inputs = [p[k].requires_grad_() for k in ("log_emissions", "log_initial")]
    inside = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    mask = left_right(3).masks(inside)[0]

    def score(emissions: Tensor, logits: Tensor) -> Tensor:
        transitions = torch.where(mask, logits, LOG_ZERO).log_softmax(-1)
        return log_likelihood(emissions, transitions, p["log_initial"].detach(), p["lengths"], band=band)

    assert torch.autograd.gradcheck(score, (inputs[0], inside))


def test_the_gradient_is_gamma_and_finite_on_impossible_paths() -> None:
    p = problem(left_right(4, must_finish=True), batch=3, frames=6, models=2)
    p["lengths"] = torch.tensor([6, 2, 0])  # two frames cannot reach the fourth state
    emissions = p["log_emissions"].requires_grad_()
    log_likelihood(**p).sum().backward()
    assert emissions.grad is not None
    assert emissions.grad.isfinite().all()
    found = posteriors(**{**p, "log_emissions": emissions.detach()})
    torch.testing.assert_close(emissions.grad[0], found.states[0], atol=1e-10, rtol=0)
    assert not found.states[1].any()
    assert not emissions.grad[2].any()


def test_far_states_are_not_lost() -> None:
    """The only path that may end trails the others by thousands of nats: scaled probabilities would lose it."""
    emissions = torch.zeros(1, 3, 2, dtype=torch.float64)
    emissions[0, 1] = torch.tensor([0.0, -5000.0])
    logs = torch.tensor([[0.5, 0.5], [0.0, 1.0]], dtype=torch.float64).log().clamp_min(LOG_ZERO)
    emissions[0, 2] = torch.tensor([-9000.0, 0.0])
    final = torch.tensor([LOG_ZERO, 0.0], dtype=torch.float64)
    initial = torch.tensor([0.0, LOG_ZERO], dtype=torch.float64)
    score = log_likelihood(emissions, logs, initial, torch.tensor([3]), final)
    late, early = 2 * math.log(0.5), math.log(0.5) - 5000
    assert score.item() == pytest.approx(log_sum([late, early]), abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_emissions": torch.zeros(2, 0, 1, 3)}, "at least one frame"),
        ({"log_transitions": torch.zeros(1, 2, 2)}, "do not fit 3 states"),
        ({"lengths": torch.tensor([1])}, "one a batch entry"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(change, message) -> None:
    p = problem(left_right(3), batch=2, frames=4, models=1)
    for run in (log_likelihood, viterbi, posteriors):
        with pytest.raises(ModelError, match=message):
            run(**{**p, **change})
