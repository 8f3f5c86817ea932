"""Models from speech that nobody sees: joint EM is central EM to the grid, and becomes a bundle."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ppspeech.audio.mfcc_config import MfccConfig
from ppspeech.bundle import BundleConfig, LargeMarginClassifierSettings, SpeakerUbmSettings, load_bundle
from ppspeech.errors import BundleError, ModelError
from ppspeech.models import UtteranceClassifier
from ppspeech.models.gaussian.em import run_em
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.topology import left_right
from ppspeech.models.margin.gaussians import LargeMarginGaussians
from ppspeech.privacy import Guarantee, Relation
from ppspeech.privacy.mechanisms import Moments, StatisticsRelease, UnitSums
from ppspeech.protocols.sums.joint import JointSum, PlainSum
from ppspeech.training.private.statistics import hmm_moments, maximize_mixture_, mixture_moments
from ppspeech.training.together.average import JointTraining, train_jointly
from ppspeech.training.together.group import write_joint_bundle
from ppspeech.training.together.statistics import (
    fit_hmm_privately_,
    fit_mixture_jointly_,
    fit_mixture_privately_,
    hmm_dimension,
    mixture_dimension,
    statistics_shares,
)
from tests.training.joint_parties import examples, together


def speech(seed: int, count: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 12, 3, generator=generator) + torch.randn(3, generator=generator)
    return features, torch.arange(count) % 4 + 9


def mixture() -> GaussianMixture:
    model = GaussianMixture(4, 3)
    model.gaussians.set_moments_(torch.randn(4, 3, generator=torch.Generator().manual_seed(9)), torch.ones(4, 3))
    return model


def test_joint_em_is_central_em_to_the_grid() -> None:
    users = [speech(seed) for seed in range(3)]

    def program(features: Tensor, lengths: Tensor) -> Callable[[Any], GaussianMixture]:
        def run(add_up: Any) -> GaussianMixture:
            model = mixture()
            fit_mixture_jointly_(model, PlainSum(add_up), features, lengths, rounds=4)
            return model

        return run

    found = together([program(*user) for user in users], [4 * (1 + 3 + 3)] * 4)
    frames = torch.cat([f[:n] for features, lengths in users for f, n in zip(features, lengths, strict=True)])
    central = run_em(mixture(), frames, iterations=4, tolerance=-1.0).model
    for model in found:
        for name, tensor in model.state_dict().items():
            torch.testing.assert_close(tensor, central.state_dict()[name], rtol=0, atol=4 * 4 * 2.0**-16)
    assert torch.equal(found[0].gaussians.mean, found[2].gaussians.mean)


RELEASE = StatisticsRelease(
    epsilon=1000.0, iterations=2, relation=Relation("speaker", "add_remove"), transition_share=0.1
)


def test_joint_private_em_is_the_central_one_to_the_grid() -> None:
    """Each user is one speaker: clipping at home is clipping in one place."""
    users = [speech(seed) for seed in range(3)]
    dimension = mixture_dimension(mixture())

    def program(features: Tensor, lengths: Tensor) -> Callable[[Any], GaussianMixture]:
        def run(add_up: Any) -> GaussianMixture:
            model = mixture()
            fit_mixture_privately_(model, PlainSum(add_up, 2.0**-30), features, lengths, RELEASE)
            return model

        return run

    found = together([program(*user) for user in users], [dimension] * 2)
    central = mixture()
    for _ in range(2):
        sums = UnitSums(RELEASE, 3)
        for place, (features, lengths) in enumerate(users):
            sums.add(mixture_moments(central, features, lengths), lengths, torch.full_like(lengths, place))
        total = sums.total()
        assert len(total) == dimension
        shapes = [part.shape[1:] for part in mixture_moments(central, *users[0]).parts]
        pieces = torch.split(total, [shape.numel() for shape in shapes])
        parts = zip(pieces, shapes, RELEASE.scales, strict=True)
        moments = Moments(*((piece / scale).view(1, *shape) for piece, shape, scale in parts))
        maximize_mixture_(central, moments, RELEASE)
    for name, tensor in found[0].state_dict().items():
        torch.testing.assert_close(tensor, central.state_dict()[name], rtol=1e-4, atol=1e-5)


def test_a_private_background_model_becomes_a_bundle(tmp_path: Path) -> None:
    release = StatisticsRelease(
        epsilon=2.0, iterations=2, relation=Relation("speaker", "add_remove"), transition_share=0.0
    )
    mfcc = MfccConfig()
    model = GaussianMixture(2, mfcc.features)
    shares = statistics_shares(release, 3, mixture_dimension(model))
    users = [torch.randn(4, 20, mfcc.features, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    lengths = torch.full((4,), 20)

    def program(features: Tensor) -> Callable[[Any], tuple[GaussianMixture, JointSum]]:
        def run(add_up: Any) -> tuple[GaussianMixture, JointSum]:
            own, joint = GaussianMixture(2, mfcc.features), JointSum(add_up, shares)
            fit_mixture_privately_(own, joint, features, lengths, release)
            return own, joint

        return run

    found = together([program(user) for user in users], [shares.dimension] * 2)
    trained, joint = found[1]
    assert torch.equal(trained.gaussians.mean, found[0][0].gaussians.mean)
    guarantee = joint.guarantee(release.delta)
    assert 1.9 < guarantee.epsilon <= 2.0
    settings = SpeakerUbmSettings(components=2, covariance="diagonal", floor=trained.gaussians.floor, relevance=16.0)
    config = BundleConfig(settings, (), mfcc)
    options: dict[str, Any] = {"model": trained, "config": config, "account": joint.account()}
    write_joint_bundle(tmp_path / "ubm", guarantee=guarantee, **options)
    bundle = load_bundle(tmp_path / "ubm")
    assert bundle.statement.guarantee == guarantee
    assert any("colluding" in line for line in bundle.statement.caveats)
    nothing = Guarantee(kind="none", relation=Relation("speaker", "add_remove"), caveat="no noise")
    with pytest.raises(BundleError, match="no guarantee to state"):
        write_joint_bundle(tmp_path / "none", guarantee=nothing, **options)


def test_a_joint_large_margin_classifier_becomes_a_bundle(tmp_path: Path) -> None:
    mfcc = MfccConfig.hamm2015()
    values = 4 * mfcc.features
    training = JointTraining(
        model="large_margin",
        features=values,
        classes=2,
        radius=2.0,
        epsilon=1.0,
        regularization=50.0,
        parties=2,
        unit="utterance",
    )
    rows = [examples(12, values, seed=seed) for seed in range(2)]
    programs = [
        lambda add_up, place=place, own=own: train_jointly(training, add_up, *own, place, torch.arange(12))
        for place, own in enumerate(rows)
    ]
    found = together(programs, [training.dimension])[0]
    assert isinstance(found.module, LargeMarginGaussians)
    assert torch.linalg.eigvalsh(found.module.phi().detach()).min() > -1e-9
    settings = LargeMarginClassifierSettings(label="word", width=0.5, radius=2.0)
    config = BundleConfig(settings, ("no", "yes"), mfcc)
    classifier = UtteranceClassifier(found.module.float())
    write_joint_bundle(
        tmp_path / "words", model=classifier, config=config, account=found.account, guarantee=found.guarantee
    )
    assert load_bundle(tmp_path / "words").statement.guarantee.epsilon <= 1.0


def test_word_models_from_users() -> None:
    def bank() -> HiddenMarkovModel:
        model = HiddenMarkovModel(left_right(3), GaussianEmission(2, 3, 3, covariance="diagonal"))
        mean = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(2))
        model.emission.gaussians.set_moments_(mean, torch.ones_like(mean))  # type: ignore[union-attr]
        return model

    users = [speech(seed) for seed in range(2)]
    labels = torch.arange(6) % 2
    dimension = hmm_dimension(bank())
    moments = hmm_moments(bank(), *users[0], labels)
    assert dimension == sum(part[0].numel() for part in moments.parts)
    release = replace(RELEASE, epsilon=8.0)
    shares = statistics_shares(release, 2, dimension)

    def program(features: Tensor, lengths: Tensor) -> Callable[[Any], HiddenMarkovModel]:
        def run(add_up: Any) -> HiddenMarkovModel:
            own = bank()
            fit_hmm_privately_(own, JointSum(add_up, shares), features, lengths, labels, release)
            return own

        return run

    found = together([program(*user) for user in users], [dimension] * 2)
    for name, tensor in found[0].state_dict().items():
        assert torch.equal(tensor, found[1].state_dict()[name])
        assert tensor.isfinite().any()
    start = bank().emission.gaussians.mean  # type: ignore[union-attr]
    assert (found[0].emission.gaussians.mean - start).abs().max() > 0.01  # type: ignore[union-attr]
    several = HiddenMarkovModel(left_right(3), GaussianEmission(2, 3, 3, components=2))
    with pytest.raises(ModelError, match="one Gaussian"):
        hmm_dimension(several)
