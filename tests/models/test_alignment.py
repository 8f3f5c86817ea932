"""Dynamic time warping in the clear: against all walks, and a recognizer of a few templates."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from ppspeech.errors import ModelError
from ppspeech.models.decoding import TemplateRecognizer, align, resampled, similarities, warp, within_radius


def best_walk(scores: np.ndarray, band: int) -> float:
    @cache
    def walk(i: int, j: int) -> float:
        if abs(i - j) > band or i < 0 or j < 0:
            return -np.inf
        before = 0.0 if i == j == 0 else max(walk(i - 1, j - 1), walk(i - 1, j), walk(i, j - 1))
        return float(scores[i, j]) + before

    return walk(len(scores) - 1, len(scores) - 1)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(0, 8), st.integers(0, 10_000))
def test_warping_is_the_best_walk(length: int, band: int, seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(2, length, length))
    found = warp(torch.tensor(scores), band)
    assert found.tolist() == pytest.approx([best_walk(each, band) for each in scores])
    whole = torch.tensor(np.rint(8 * scores).astype(np.int64))
    assert warp(whole, band).tolist() == [best_walk(each, band) for each in whole.numpy()]


def test_similarities_are_minus_half_of_squared_distances() -> None:
    left, right = torch.randn(5, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    wanted = -(cdist(left.numpy(), right.numpy()) ** 2) / 2
    np.testing.assert_allclose(similarities(left, right).numpy(), wanted, atol=1e-12)


def test_an_alignment_walks_through_both_and_scores_what_warping_does() -> None:
    torch.manual_seed(1)
    left, right = torch.randn(7, 3, dtype=torch.float64), torch.randn(7, 3, dtype=torch.float64)
    found, scores = align(left, right, 3), similarities(left, right)
    assert found.pairs[0] == (0, 0)
    assert found.pairs[-1] == (6, 6)
    steps = {(c - a, d - b) for (a, b), (c, d) in zip(found.pairs, found.pairs[1:], strict=False)}
    assert steps <= {(0, 1), (1, 0), (1, 1)}
    assert found.score == pytest.approx(sum(float(scores[i, j]) for i, j in found.pairs))
    assert found.score == pytest.approx(float(warp(scores, 3)))


def test_utterances_are_resampled_by_straight_lines() -> None:
    frames = torch.tensor([[0.0, 5.0], [1.0, 3.0], [3.0, 1.0]])
    assert resampled(frames, 5).tolist() == [[0.0, 5.0], [0.5, 4.0], [1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]
    assert resampled(frames[:1], 2).tolist() == [[0.0, 5.0], [0.0, 5.0]]
    assert within_radius(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0).norm(dim=-1).tolist() == pytest.approx([1.0, 0.5])


def test_a_recognizer_names_the_nearest_template() -> None:
    torch.manual_seed(2)
    clips = [torch.randn(length, 4).cumsum(0) for length in (9, 14, 30)]
    recognizer = TemplateRecognizer.of(clips, ["a", "b", "c"], length=12, band=4)
    for clip, label in zip(clips, "abc", strict=True):
        slower = clip.repeat_interleave(2, 0) + 0.1 * torch.randn(2 * len(clip), 4)
        assert recognizer.recognize(slower) == label
    assert recognizer.scores(clips[0]).shape == (3,)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: resampled(torch.zeros(0, 3), 5), "at least one frame"),
        (lambda: warp(torch.zeros(3, 4), 2), "square"),
        (lambda: TemplateRecognizer(torch.zeros(2, 5, 3), ("a",), 2, 1.0), "differ"),
        (lambda: TemplateRecognizer(torch.zeros(1, 5, 3), ("a",), 2, 0.0), "radius"),
    ],
    ids=["empty", "oblong", "labels", "radius"],
)
def test_what_cannot_be_warped_is_refused(call: object, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        call()  # type: ignore[operator]
