"""Thresholds by false-accept rate: right for strangers like the cohort, cautious with few people."""

import numpy as np
import pytest
import torch

from ppspeech.audio import MfccConfig
from ppspeech.errors import ModelError
from ppspeech.models import (
    Impostors,
    UbmVoices,
    adapt_speakers,
    fit_mixture,
    rare_score,
    supervector_scores,
    voice_directions,
)
from ppspeech.models.gaussian import GaussianMixture


@pytest.fixture(scope="module")
def ubm() -> GaussianMixture:
    torch.manual_seed(0)
    return fit_mixture(torch.randn(2000, 3) * 2, 4, iterations=5)


def people(count: int, seed: int = 0, clips: int = 4, frames: int = 60) -> list[list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    middles = 0.7 * torch.randn(count, 3, generator=generator)
    return [[m + torch.randn(frames, 3, generator=generator) for _ in range(clips)] for m in middles]


def test_a_rare_score_is_exceeded_at_its_rate_by_people_who_were_not_there() -> None:
    """Skewed scores with a part of the person's own: the mean rate over draws of 16 people, and its worst."""
    generator = np.random.default_rng(0)

    def trials(count: int, each: int) -> tuple[np.ndarray, list[int]]:
        own = generator.gumbel(size=(count, 1))
        return (own + generator.gumbel(size=(count, each))).reshape(-1), np.repeat(range(count), each).tolist()

    fresh, _ = trials(20_000, 1)
    for rate in (0.01, 0.05):
        found = [float((fresh >= rare_score(*trials(16, 6), rate)).mean()) for _ in range(200)]
        assert rate / 2 <= np.mean(found) <= 1.5 * rate  # standard error of the mean: 6 % of it
    assert rare_score(fresh, list(range(len(fresh))), 0.3) == np.quantile(fresh, 0.7)


def test_few_people_make_a_cautious_threshold() -> None:
    scores = np.random.default_rng(1).normal(size=96)
    by_people = [rare_score(scores, (np.arange(96) % count).tolist(), 0.001) for count in (96, 16, 4, 1)]
    assert by_people == sorted(by_people)
    assert by_people[-1] > by_people[0] + 1
    assert rare_score(np.zeros(10), list(range(10)), 0.01) == 0.0
    with pytest.raises(ModelError, match="within 0 and 1"):
        rare_score(scores, [0] * 96, 0.0)


def test_strangers_are_tried_with_as_much_speech_as_the_trial_has(ubm: GaussianMixture) -> None:
    cohort = people(8, frames=80)
    found = Impostors.of(UbmVoices(ubm, MfccConfig(), 4.0), cohort)
    assert (found.frames, found.people, len(found.owners)) == ((30, 90, 270), 8, 32)
    second = torch.cat(cohort[3][1:3])[:90]  # goes on into the next clip
    claimed = people(1, seed=5)[0][0]
    models = [adapt_speakers(ubm, frames[None], relevance=4.0) for frames in (claimed, second)]
    direction = voice_directions(ubm, claimed[None], 4.0)[0]
    assert found.scores(direction)[1, 13] == pytest.approx(float(supervector_scores(ubm, *models)), abs=1e-5)
    least = [found.threshold(direction, frames, 0.05) for frames in (30, 52, 90, 1000)]
    by_hand = [rare_score((found.directions[at] @ direction).double().numpy(), found.owners, 0.05) for at in range(3)]
    assert least[0] == pytest.approx(by_hand[0], abs=1e-6)
    assert least[2] == pytest.approx(by_hand[1], abs=1e-6)
    assert least[3] == pytest.approx(by_hand[2], abs=1e-6)  # more speech than the cohort has is for the caller to cut
    assert least[1] == pytest.approx((by_hand[0] + by_hand[1]) / 2, abs=0.01)  # halfway in log frames


@torch.no_grad()
def test_speech_unlike_the_cohort_lies_below_its_likelihoods(ubm: GaussianMixture) -> None:
    found = Impostors.of(UbmVoices(ubm, MfccConfig()), people(8))
    like, far = people(1, seed=9)[0][0], people(1, seed=9)[0][0] + 25.0
    lowest = found.least_usual(60)
    assert float(ubm.average_log_prob(like[None])) > lowest > float(ubm.average_log_prob(far[None]))
    assert float((found.usual[0] < found.least_usual(30)).float().mean()) <= 0.05


def test_a_cohort_that_cannot_be(ubm: GaussianMixture) -> None:
    with pytest.raises(ModelError, match="5 people or more, got 4"):
        Impostors.of(UbmVoices(ubm, MfccConfig()), people(4))
    with pytest.raises(ModelError, match="one person has 12"):
        Impostors.of(UbmVoices(ubm, MfccConfig()), [*people(5), [torch.randn(12, 3)]])
    assert Impostors.of(UbmVoices(ubm, MfccConfig()), people(100, clips=1)).people == 64
