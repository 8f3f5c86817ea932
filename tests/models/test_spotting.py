"""Best segments of keywords and phrases, in the clear: against looking at every segment."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.errors import ModelError
from ppspeech.models import GaussianEmission, HiddenMarkovModel, left_right
from ppspeech.models.decoding import (
    Chain,
    best_average,
    best_of_blocks,
    best_segments,
    in_blocks,
    spot,
)


def chain_score(ratios: np.ndarray) -> float:
    """The best path through all states of a segment: every way to cut it."""
    frames, states = ratios.shape
    cuts = itertools.combinations(range(1, frames), states - 1)
    edges = [(0, *cut, frames) for cut in cuts]
    return max(sum(ratios[a:b, j].sum() for j, (a, b) in enumerate(itertools.pairwise(cut))) for cut in edges)


def every_segment(ratios: np.ndarray) -> dict[tuple[int, int], float]:
    frames, states = ratios.shape
    return {
        (start, end): chain_score(ratios[start:end])
        for start in range(frames)
        for end in range(start + states, frames + 1)
    }


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(0, 6), st.integers(0, 10_000))
def test_the_best_segment_is_the_best_of_all(states: int, more: int, seed: int) -> None:
    ratios = np.random.default_rng(seed).normal(size=(states + more, states))
    scores = every_segment(ratios)
    found = best_segments(torch.tensor(ratios))
    best = max(scores, key=lambda at: scores[at])
    assert (int(found.start), int(found.end)) == best
    assert float(found.score) == pytest.approx(scores[best])
    assert int(found.length) == best[1] - best[0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_the_best_phrase_has_its_words_in_order_with_anything_between(seed: int) -> None:
    ratios = np.random.default_rng(seed).normal(size=(9, 3))
    first, second = every_segment(ratios[:, :2]), every_segment(ratios[:, 2:])
    pairs = {(a, b): x + y for (a, x), (b, y) in itertools.product(first.items(), second.items()) if a[1] <= b[0]}
    one, other = max(pairs, key=lambda at: pairs[at])
    found = best_segments(torch.tensor(ratios), (2, 1))
    assert (*found.starts.tolist(), int(found.end)) == (one[0], other[0], other[1])
    assert float(found.score) == pytest.approx(pairs[one, other])


def test_whole_numbers_are_searched_as_real_ones_are() -> None:
    ratios = torch.randint(-9, 9, (5, 40, 4), generator=torch.Generator().manual_seed(0))
    whole, real = best_segments(ratios), best_segments(ratios.double())
    assert torch.equal(whole.score.double(), real.score)
    assert torch.equal(whole.starts, real.starts)
    assert torch.equal(whole.end, real.end)


def test_blocks_find_whatever_is_no_longer_than_their_overlap() -> None:
    ratios = torch.full((60, 3), -4.0)
    for at in range(0, 52):
        said = ratios.clone()
        said[at : at + 8] = torch.tensor([[2.0, -1.0, -1.0]] * 3 + [[-1.0, 2.0, -1.0]] * 2 + [[-1.0, -1.0, 2.0]] * 3)
        found = spot(said, block=10, longest=8)
        assert (int(found.start), int(found.end), float(found.score)) == (at, at + 8, 16.0)
    assert in_blocks(ratios, 10, 8).shape == (6, 18, 3)
    assert float(in_blocks(ratios, 10, 8)[-1, -1, 0]) == -20.0
    cut = best_segments(in_blocks(ratios, 10, 8))
    assert float(best_of_blocks(cut, 10).score) == -12.0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_the_best_average_is_the_best_of_all_averages(seed: int) -> None:
    ratios = np.random.default_rng(seed).normal(size=(9, 2))
    constant = 0.7
    averages = {(a, b): (score + constant) / (b - a) for (a, b), score in every_segment(ratios).items()}
    best = max(averages, key=lambda at: averages[at])
    for passes in (6, 7, 8):
        found = best_average(torch.tensor(ratios), 9, 9, constant, passes)
        assert (int(found.start), int(found.end)) == best
        assert float(found.score) == pytest.approx(averages[best])


def test_the_score_is_that_of_the_bank_where_a_clip_is_the_segment() -> None:
    """A path through all states of a clip scores what Viterbi says, up to leaving the last state."""
    torch.manual_seed(0)
    bank = HiddenMarkovModel(left_right(3, must_finish=True), GaussianEmission(1, 3, features=2)).double()
    bank.emission.gaussians.mean.data.copy_(3 * torch.randn(1, 3, 2))
    frames = bank.emission.gaussians.mean.detach()[0].repeat_interleave(4, 0)
    with torch.no_grad():
        emissions = bank.emission.log_likelihood(frames[None], 0)[0]
        said = float(bank.best_path(frames[None], torch.tensor([len(frames)]), 0).score)
        chain = Chain.of_bank(bank, 0)
        found = best_segments(chain.ratios(emissions, torch.full((len(frames),), -30.0)))
    assert (int(found.start), int(found.end)) == (0, len(frames))
    last = 3 * float(chain.stays[-1] - bank.log_transitions().detach()[0, -1, -1])
    score = float(found.score) + chain.constant - 30.0 * len(frames)
    assert score == pytest.approx(said + last, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: best_segments(torch.zeros(2, 3)), "2 frames of 3"),
        (lambda: best_segments(torch.zeros(5, 3), (2, 2)), "words of"),
        (lambda: in_blocks(torch.zeros(5, 3), 0, 2), "at least one frame"),
        (lambda: best_average(torch.zeros(5, 1), 5, 5, passes=0), "at least one pass"),
        (lambda: Chain.of_bank(HiddenMarkovModel(left_right(3, 1), GaussianEmission(1, 3, 2)), 0), "chains"),
    ],
    ids=["short", "words", "blocks", "passes", "leaps"],
)
def test_what_cannot_be_searched_is_refused(call: object, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        call()  # type: ignore[operator]
