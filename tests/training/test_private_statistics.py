"""Private statistics: nobody moves the released vector by more than 1, the account is exact, models stay valid."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from torch import Tensor

from ppspeech.errors import ModelError, PrivacyError
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.topology import left_right
from ppspeech.privacy import Relation
from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma
from ppspeech.privacy.mechanisms.statistics import Moments, StatisticsRelease, UnitSums, normalized
from ppspeech.training.private.statistics import (
    about,
    free_transitions,
    hmm_moments,
    kept_share,
    maximize_hmm_,
    maximize_mixture_,
    mixture_moments,
)

MODELS, STATES, FEATURES = 3, 4, 5


SPEAKER = Relation("speaker", "add_remove")


def bank(seed: int = 0) -> HiddenMarkovModel:
    model = HiddenMarkovModel(left_right(STATES), GaussianEmission(MODELS, STATES, FEATURES, covariance="diagonal"))
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(MODELS, STATES, FEATURES, generator=generator)
    model.emission.gaussians.set_moments_(mean, torch.ones_like(mean))  # type: ignore[union-attr]
    return model


def speech(model: HiddenMarkovModel, count: int, shift: float = 0.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Utterances that the bank explains with equal parts, their words and three speakers."""
    words = torch.arange(count) % MODELS
    lengths = torch.full((count,), 3 * STATES)
    path = torch.arange(3 * STATES) // 3
    mean = model.emission.gaussians.mean.detach()[words][:, path]  # type: ignore[union-attr]
    features = mean + shift + torch.randn(mean.shape, generator=torch.Generator().manual_seed(1))
    return features, lengths, words, torch.arange(count) % 3


def total(release: StatisticsRelease, model: HiddenMarkovModel, rows: Tensor, data: tuple[Tensor, ...]) -> Tensor:
    features, lengths, words, speakers = (part[rows] for part in data)
    sums = UnitSums(release, 3)
    for half in torch.arange(len(rows)).split(4):  # a speaker's utterances come in several batches
        sums.add(hmm_moments(model, features[half], lengths[half], words[half]), lengths[half], speakers[half])
    return sums.total()


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e4])
def test_removing_any_unit_moves_the_sum_by_at_most_one(unit: Any, scale: float) -> None:
    model, release = bank(), StatisticsRelease(1.0, relation=Relation(unit, "add_remove"))
    features, *rest = speech(model, 12)
    data = (features * scale, *rest)
    everyone = torch.arange(12)
    whole = total(release, model, everyone, data)
    units = data[3] if unit == "speaker" else everyone
    for who in units.unique():
        without = total(release, model, everyone[units != who], data)
        moved = float((whole - without).double().norm())
        assert moved <= 1 + 1e-5
        assert moved > 0.01
    if scale > 1:  # far from the model, both parts of the budget are used up
        assert moved > math.sqrt(1 - release.transition_share) - 1e-3


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 1e6), st.floats(1.0, 1e6), st.floats(0.0, 0.9))
def test_no_unit_has_a_norm_above_one(seed: int, radius: float, frames: float, share: float) -> None:
    """Random, and adversarial: all frames in one state at ||x|| = R."""
    generator = torch.Generator().manual_seed(seed)
    gaussians = bank(seed).emission.gaussians  # type: ignore[union-attr]
    x = torch.nn.functional.normalize(torch.randn(8, FEATURES, generator=generator), dim=-1) * radius
    owner = torch.randint(0, STATES, (8,), generator=generator)
    one_hot = torch.nn.functional.one_hot(owner, STATES).float() * frames
    sums = one_hot.unsqueeze(-1) * torch.cat([x.square(), x, torch.ones(8, 1)], dim=-1).unsqueeze(1)
    count, first, second = about(gaussians, sums, torch.zeros(8, dtype=torch.long))
    moves = torch.rand(8, 1, 6, generator=generator) * frames
    moments = Moments(count.unsqueeze(1), first.unsqueeze(1), second, count.sum(-1, keepdim=True), moves)
    vectors = normalized(moments, torch.full((8,), frames), StatisticsRelease(1.0, transition_share=share))
    assert float(vectors.double().norm(dim=1).max()) <= 1 + 1e-6


def test_a_speaker_of_a_million_frames_counts_once() -> None:
    model, release = bank(), StatisticsRelease(1.0, relation=SPEAKER)
    features, lengths, words, _ = speech(model, 3)
    moments = hmm_moments(model, features, lengths, words)
    some, many = UnitSums(release, 1), UnitSums(release, 1)
    nobody = torch.zeros(3, dtype=torch.long)
    some.add(moments, lengths, nobody)
    for _ in range(300):
        many.add(Moments(*(100 * part for part in moments.parts)), 100 * lengths, nobody)
    assert int(300 * 100 * lengths.sum()) > 10**6
    torch.testing.assert_close(many.total(), some.total(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_sums_are_the_same_bits_in_any_order_of_utterances(unit: Any) -> None:
    """In float32 they are not: the sum of normalized vectors moves with the order, by more than the clip's margin."""
    model, release = bank(), StatisticsRelease(1.0, relation=Relation(unit, "add_remove"))
    features, lengths, words, speakers = speech(model, 60)
    moments = hmm_moments(model, features, lengths, words)
    each = normalized(moments, lengths, release)
    found, floats = [], []
    for order in (torch.arange(60), torch.randperm(60, generator=torch.Generator().manual_seed(0))):
        sums = UnitSums(release, 3)
        for part in order.split(7):
            sums.add(Moments(*(p[part] for p in moments.parts)), lengths[part], speakers[part])
        found.append(sums.steps())
        floats.append(each[order].sum(0))
    assert found[0].dtype == torch.int64
    assert torch.equal(*found)
    assert not torch.equal(*floats)


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_utterance_that_is_not_finite_counts_as_silence(unit: Any, bad: float) -> None:
    model, release = bank(), StatisticsRelease(1.0, relation=Relation(unit, "add_remove"))
    features, lengths, words, speakers = speech(model, 6)
    moments, rest = hmm_moments(model, features, lengths, words), torch.arange(1, 6)
    moments.first[0, 0, 0, 0] = bad
    sums, without = UnitSums(release, 3), UnitSums(release, 3)
    sums.add(moments, lengths, speakers)
    without.add(Moments(*(part[rest] for part in moments.parts)), lengths[rest], speakers[rest])
    assert torch.equal(sums.steps(), without.steps())
    assert all(bool(part.isfinite().all()) for part in sums.released().parts)


def test_noise_is_the_mechanisms_in_every_number_and_release() -> None:
    """Two releases of the same sums share no noise, and both have the deviation stated; false alarms 1e-6 each."""
    model, release = bank(), StatisticsRelease(1.0, iterations=2)
    features, lengths, words, speakers = speech(model, 6)
    sums = UnitSums(release, 3)
    sums.add(hmm_moments(model, features, lengths, words), lengths, speakers)
    drawn = [release.release(sums.steps()).value - sums.total() for _ in range(40)]
    assert len(torch.cat(drawn).unique()) == 40 * len(drawn[0])
    assert kstest(torch.cat(drawn).numpy() / release.mechanism.sigma, "norm").pvalue > 1e-6
    assert abs(float(torch.corrcoef(torch.stack(drawn[:2]))[0, 1])) < 5 / math.sqrt(len(drawn[0]))


def test_moments_equal_a_loop_over_frames() -> None:
    model = bank()
    features, lengths, words, _ = speech(model, 2)
    found = hmm_moments(model, features, lengths, words)
    own = model.posteriors(features, lengths, words).states
    gaussians = model.emission.gaussians  # type: ignore[union-attr]
    for i, word in enumerate(words.tolist()):
        second = torch.zeros(FEATURES)
        for j in range(STATES):
            z = (features[i] - gaussians.mean[word, j]) / gaussians.variances()[word, j].sqrt()
            torch.testing.assert_close(found.count[i, word, j], own[i, :, j].sum())
            torch.testing.assert_close(found.first[i, word, j], (own[i, :, j, None] * z).sum(0), rtol=1e-4, atol=1e-4)
            second += (own[i, :, j, None] * (z.square() - 1)).sum(0)
        torch.testing.assert_close(found.second[i], second, rtol=1e-4, atol=1e-4)
        others = [w for w in range(MODELS) if w != word]
        assert not found.count[i, others].any()
        assert not found.transitions[i, others].any()


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_iterations_compose_to_exactly_epsilon(adjacency: Any) -> None:
    release = StatisticsRelease(2.0, iterations=10, relation=Relation("speaker", adjacency))
    mechanism = release.mechanism
    assert mechanism.sigma / mechanism.sensitivity == pytest.approx(6.305, abs=1e-3)
    z = mechanism.event.sigma / mechanism.event.l2
    assert math.sqrt(10) / z == pytest.approx(1 / gaussian_sigma(2.0, 1e-5), rel=1e-6)
    account = Accountant(Relation("speaker", adjacency))
    account.compose(mechanism.event, 10)
    assert 2.0 * (1 - 1e-5) < account.epsilon(1e-5) <= 2.0
    assert account.epsilon(1e-5, "pld") == pytest.approx(2.0, rel=2e-3)
    assert account.guarantee(1e-5).float_safe
    assert mechanism.sensitivity == (1.0 if adjacency == "add_remove" else 2.0)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
def test_models_stay_valid_under_any_noise(epsilon: float) -> None:
    model = bank()
    features, lengths, words, speakers = speech(model, 12)
    release = StatisticsRelease(epsilon, relation=SPEAKER)
    sums = UnitSums(release, 3)
    sums.add(hmm_moments(model, features, lengths, words), lengths, speakers)
    maximize_hmm_(model, sums.released(), release)
    transitions = model.log_transitions().exp()
    torch.testing.assert_close(transitions.sum(-1), torch.ones(MODELS, STATES))
    assert not transitions[:, ~model.topology.masks(transitions)[0]].any()
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())
    gaussians = model.emission.gaussians  # type: ignore[union-attr]
    assert float(gaussians.variances().detach().min()) > 0.1
    if epsilon < 1:  # nothing but noise z: a mean moves by sqrt(n) z / (1 + n) <= z / 2, and z > 6 once in 10^7 runs
        start = bank().emission.gaussians.mean  # type: ignore[union-attr]
        assert float((gaussians.mean - start).detach().abs().max()) < 3


def test_with_little_noise_the_means_are_found() -> None:
    model, truth = bank(), 0.5
    data = speech(model, 300, shift=truth)
    release = StatisticsRelease(1e3, iterations=1, emission_norm=20.0)
    sums = UnitSums(release, 3)
    before = model.emission.gaussians.mean.detach().clone()  # type: ignore[union-attr]
    sums.add(hmm_moments(model, *data[:3]), data[1], data[3])
    maximize_hmm_(model, sums.released(), release)
    moved = (model.emission.gaussians.mean.detach() - before).mean()  # type: ignore[union-attr]
    assert float(moved) == pytest.approx(truth, abs=0.15)


def test_a_background_model_learns_privately() -> None:
    generator = torch.Generator().manual_seed(0)
    model = GaussianMixture(2, FEATURES)
    model.gaussians.set_moments_(torch.tensor([[-1.0], [1.0]]).expand(2, FEATURES), torch.ones(2, FEATURES))
    side = torch.where(torch.rand(400, 10, 1, generator=generator) < 0.75, -3.0, 3.0)
    features = side + torch.randn(400, 10, FEATURES, generator=generator)
    lengths = torch.full((400,), 10)
    for _ in range(3):
        release = StatisticsRelease(50.0, iterations=3, emission_norm=6.0)
        sums = UnitSums(release, 1)
        sums.add(mixture_moments(model, features, lengths), lengths, torch.zeros(400, dtype=torch.long))
        maximize_mixture_(model, sums.released(), release)
    torch.testing.assert_close(model.log_weights().exp(), torch.tensor([0.75, 0.25]), atol=0.05, rtol=0)
    torch.testing.assert_close(model.gaussians.mean.mean(-1), torch.tensor([-3.0, 3.0]), atol=0.3, rtol=0)


def test_empirical_bayes_keeps_signal_and_drops_noise() -> None:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(4000, generator=generator)
    assert float(kept_share(noise * 10, 100.0).max()) < 0.02
    signal = 0.7 * torch.randn(4000, generator=generator)
    share = kept_share(signal + 0.5 * noise, 0.25)
    assert float(share.mean()) == pytest.approx(0.49 / 0.74, abs=0.05)


def test_only_free_transitions_are_released() -> None:
    free = free_transitions(left_right(3), torch.zeros(1))
    assert free.tolist() == [[True, True, False], [False, True, True], [False, False, False]]


def wrong() -> list[Any]:
    return [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1.0, "relation": Relation("frame", "add_remove")}, "frame"),
        ({"epsilon": 1.0, "iterations": 0}, "iterations"),
        ({"epsilon": 1.0, "transition_share": 1.0}, "transition_share"),
        ({"epsilon": 1.0, "weights": (1.0, 0.0, 1.0)}, "weight"),
        ({"epsilon": 1.0, "emission_norm": -1.0}, "emission_norm"),
    ]


@pytest.mark.parametrize(("settings", "message"), wrong())
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        StatisticsRelease(**settings)


def test_what_cannot_be_bounded_is_refused() -> None:
    with pytest.raises(PrivacyError, match="nothing to release"):
        UnitSums(StatisticsRelease(1.0), 1).total()
    sums = UnitSums(StatisticsRelease(1.0), 1)
    with pytest.raises(PrivacyError, match="only epsilon"):
        sums.with_release(replace(sums.release, emission_norm=9.0))
    full = HiddenMarkovModel(left_right(2), GaussianEmission(2, 2, FEATURES))
    with pytest.raises(ModelError, match="diagonal"):
        hmm_moments(full, torch.zeros(1, 4, FEATURES), torch.tensor([4]), torch.tensor([0]))
    with pytest.raises(ModelError, match="diagonal"):
        mixture_moments(GaussianMixture(2, FEATURES, "full"), torch.zeros(1, 4, FEATURES), torch.tensor([4]))
