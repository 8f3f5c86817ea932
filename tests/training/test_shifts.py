"""People's shifts: nobody moves the released sum by more than 1, the noise is what is booked, and means are found."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch
from scipy.stats import chi2

from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.errors import PrivacyError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.topology import left_right
from ppspeech.privacy import Accountant, Relation
from ppspeech.privacy.mechanisms import ShiftRelease
from ppspeech.training import PrivacyHook, WordModels
from ppspeech.training.private import PersonSums, ShiftPrivacy, ShiftSpace, StatisticsPrivacy

MODELS, STATES, FEATURES = 3, 4, 6
Make = Callable[..., lightning.Trainer]


def bank() -> HiddenMarkovModel:
    model = HiddenMarkovModel(left_right(STATES), GaussianEmission(MODELS, STATES, FEATURES, covariance="diagonal"))
    mean = 3 * torch.randn(MODELS, STATES, FEATURES, generator=torch.Generator().manual_seed(0))
    model.emission.gaussians.set_moments_(mean, torch.ones_like(mean))  # type: ignore[union-attr]
    return model


def people(model: HiddenMarkovModel, count: int, shift: float, seed: int = 1) -> PersonSums:
    """Everyone says every word once; their frames are shifted by a common amount and one of their own."""
    generator = torch.Generator().manual_seed(seed)
    words, who = torch.arange(MODELS).repeat(count), torch.arange(count).repeat_interleave(MODELS)
    path = torch.arange(6 * STATES) // 6
    mean = model.emission.gaussians.mean.detach()[words][:, path]  # type: ignore[union-attr]
    own = 0.1 * torch.randn(count, 1, FEATURES, generator=generator)[who]
    features = mean + shift + own + torch.randn(mean.shape, generator=generator)
    return PersonSums.of(model, features, torch.full((len(words),), 6 * STATES), words, who)


def test_no_person_moves_the_sum_by_more_than_one() -> None:
    release = ShiftRelease(1.0, 1e-5, 20, clip=0.5)
    generator = torch.Generator().manual_seed(0)
    for loudness in (1e-3, 1.0, 1e6):
        added = release.bounded(loudness * torch.randn(50, 20, generator=generator))
        assert float(added.norm(dim=1).max()) <= 1 + 1e-12
    assert float(added.norm(dim=1).min()) > 1 - 1e-9  # the loud use all of it
    with pytest.raises(PrivacyError, match="20 numbers"):
        release.bounded(torch.zeros(1, 3))


@pytest.mark.parametrize("strange", [math.nan, math.inf])
def test_a_vector_that_is_not_finite_is_nobodys(strange: float) -> None:
    release = ShiftRelease(1.0, 1e-5, 4, clip=1.0)
    vectors = torch.ones(2, 4)
    vectors[1, 2] = strange
    added = release.bounded(vectors)
    assert not added[1].any()
    assert bool(added[0].any())


def test_the_noise_is_what_is_booked_and_fresh() -> None:
    """Passed by chance with probability 1e-6."""
    release = ShiftRelease(1.0, 1e-5, 2000, clip=3.0, iterations=2)
    rho = release.event.zcdp()
    first, second = (release.release(torch.zeros(0, 2000)).value for _ in range(2))
    for noise in (first, second):
        low, high = chi2.ppf([5e-7, 1 - 5e-7], 2001)
        assert low < float((noise * math.sqrt(2 * rho)).square().sum()) < high
    assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) * math.sqrt(2001) < 4.9
    account = Accountant(release.relation)
    account.compose(release.event, 2)
    assert 0.97 < account.epsilon(1e-5) <= 1.001


def test_coordinates_are_orthonormal_and_the_clip_is_the_public_median() -> None:
    model = bank()
    public = people(model, 9, 0.0)
    space = ShiftSpace.around(model, public, kinds=3)
    torch.testing.assert_close(space.basis.mT @ space.basis, torch.eye(space.basis.shape[1]), rtol=0, atol=1e-5)
    assert space.bands.unique().tolist() == [0, 1, 2, 3, 4, 5]
    assert space.clip == pytest.approx(float(space.vectors(public).norm(dim=1).median()))
    assert float(space.occupancy.sum()) == pytest.approx(1.0)


def test_how_much_someone_says_does_not_count() -> None:
    model = bank()
    some = people(model, 2, 0.5)
    space = ShiftSpace.around(model, people(model, 9, 0.0))
    before = space.vectors(some)
    some.count *= 1000
    some.first *= 1000
    after = space.vectors(some)
    assert float((after - before).norm() / before.norm()) < 0.25  # the little that a start weighs


@pytest.mark.parametrize(("epsilon", "found"), [(1e3, True), (1e-3, False)])
def test_a_common_shift_is_found_with_little_noise_and_noise_alone_moves_nothing(epsilon: float, found: bool) -> None:
    model, truth = bank(), 0.4
    space = ShiftSpace.around(model, people(model, 9, 0.0, seed=5))
    release = ShiftRelease(epsilon, 1e-5, space.dimension, 4 * space.clip)
    before = model.emission.gaussians.mean.detach().clone()  # type: ignore[union-attr]
    noisy = release.release(space.vectors(people(model, 60, truth))).value
    space.move_(model, *release.means(noisy))
    moved = (model.emission.gaussians.mean.detach() - before).mean()  # type: ignore[union-attr]
    assert (abs(float(moved) - truth) < 0.15) is found
    if not found:
        assert abs(float(moved)) < 0.2


def test_a_number_of_people_that_may_be_noise_blows_nothing_up() -> None:
    release = ShiftRelease(1.0, 1e-5, 3, clip=2.0)
    told = torch.tensor([1.0, -1.0, 2.0, 1e-9], dtype=torch.float64)
    for few in (told, -told):
        mean, variance = release.means(few)
        assert float(mean.abs().max()) < 2.0 * 2.0 / release.mechanism.sigma
        assert variance < 1.0
    many = torch.tensor([1.0, -1.0, 2.0, 100 * math.sqrt(release.counted)], dtype=torch.float64)
    assert float(release.means(many)[0][2]) == pytest.approx(2.0 * 2.0 / math.sqrt(0.95) / 100)


def settings() -> list[Any]:
    return [
        ({"unit": "speaker", "epsilon": 1.0}, ShiftPrivacy),
        ({"unit": "speaker", "epsilon": 1.0, "emission_norm": 0.6}, StatisticsPrivacy),
        ({"unit": "speaker", "epsilon": 1.0, "adjacency": "replace"}, StatisticsPrivacy),
        ({"unit": "utterance", "epsilon": 1.0}, StatisticsPrivacy),
    ]


@pytest.mark.parametrize(("block", "kind"), settings())
def test_the_hook_takes_shifts_for_whole_speakers(
    block: dict[str, Any], kind: type[Any], voices: SpeechDataModule, trainer: Make
) -> None:
    module, hook = WordModels(states=3, covariance="diagonal", start="public"), PrivacyHook(**block)
    trainer(max_epochs=2, callbacks=[hook]).fit(module, datamodule=voices)
    assert type(hook.way) is kind
    guarantee = hook.guarantee()
    assert guarantee.relation == Relation(block["unit"], block.get("adjacency", "add_remove"))
    assert 0.97 < guarantee.epsilon <= 1.001
    assert hook.spent == 2
    assert all(bool(parameter.isfinite().all()) for parameter in module.parameters())
    if kind is ShiftPrivacy:
        later = ShiftPrivacy(1.0, 1e-5, 2, guarantee.relation)
        with pytest.raises(PrivacyError, match="cannot be resumed"):
            later.spent = 1


def test_replace_is_refused() -> None:
    with pytest.raises(PrivacyError, match="one more or less"):
        ShiftRelease(1.0, 1e-5, 3, 1.0, relation=Relation("speaker", "replace"))
