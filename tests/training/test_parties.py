"""Parties who train together: sensitivities that hold, models near the central ones, and what averaging cannot do."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ppspeech.audio.mfcc_config import MfccConfig
from ppspeech.bundle import BundleConfig, load_bundle
from ppspeech.bundle.model_types import LargeMarginClassifierSettings, SpeakerUbmSettings
from ppspeech.bundle.utterance_classifier import UtteranceClassifier
from ppspeech.errors import BundleError, ModelError, PpspeechError, PrivacyError
from ppspeech.models.em import fit
from ppspeech.models.emissions import GaussianEmission
from ppspeech.models.hmm import HiddenMarkovModel
from ppspeech.models.large_margin import LargeMarginGaussians
from ppspeech.models.logistic import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.models.mixture import GaussianMixture
from ppspeech.models.topology import left_right
from ppspeech.network import run_mesh
from ppspeech.network.mesh import Group, Member
from ppspeech.privacy.guarantee import Guarantee
from ppspeech.protocols.aggregation import CuratorSession, PartySession
from ppspeech.protocols.parties import JointSum, PlainSum
from ppspeech.reproduce.parties_bounds import PENALTY, descended, minimiser, two_kinds
from ppspeech.training.parties import JointTraining, local_minimiser, train_jointly
from ppspeech.training.parties_bounds import AggregateBounds
from ppspeech.training.parties_bundle import write_joint_bundle
from ppspeech.training.parties_gradients import JointDescent, clipped_gradient, descend_jointly_, personalise
from ppspeech.training.parties_group import terms_of
from ppspeech.training.parties_statistics import (
    fit_hmm_privately_,
    fit_mixture_jointly_,
    fit_mixture_privately_,
    hmm_dimension,
    mixture_dimension,
    statistics_shares,
)
from ppspeech.training.private_em import hmm_moments, maximize_mixture_, mixture_moments
from ppspeech.training.private_statistics import Moments, StatisticsRelease, UnitSums

SIZES = (20, 60, 45)
TERMS: dict[str, Any] = {"model": "logistic", "features": 3, "classes": 2, "radius": 1.0, "epsilon": 1.0}
PUBLIC: dict[str, Any] = TERMS | {"penalty": 0.05, "sizes": SIZES}
PRIVATE: dict[str, Any] = TERMS | {"regularisation": 4.0, "parties": 3}


def together(
    parties: Sequence[Callable[[Callable[[np.ndarray], np.ndarray]], Any]], counts: Sequence[int]
) -> list[Any]:
    """Run parties who each get a way to add up, and a curator, in memory."""

    def hub(channels: Any) -> None:
        session = CuratorSession({str(place): channel for place, channel in channels.items()})
        for count in counts:
            session.sum(count)

    programs: list[Callable[[Any], Any]] = [
        lambda channels, work=work: work(PartySession(channels[0], len(parties)).sum) for work in parties
    ]
    return run_mesh([hub, *programs])[1:]


def examples(n: int, features: int = 3, classes: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=generator, dtype=torch.double)
    return x / x.norm(dim=1, keepdim=True), torch.arange(n) % classes


@pytest.mark.parametrize("model", ["logistic", "softmax", "huber_svm", "large_margin"])
@pytest.mark.parametrize("terms", [PUBLIC, PRIVATE])
def test_no_record_moves_the_average_by_more_than_is_stated(model: Any, terms: dict[str, Any]) -> None:
    """Unequal sizes; the record of each party in turn is replaced (or removed) by the worst of several others."""
    classes = 2 if model in ("logistic", "huber_svm") else 3
    training = JointTraining(**(terms | {"model": model, "classes": classes}))
    largest = 0.0
    for place, size in enumerate(SIZES):
        # Rows that agree leave the objective as flat as it gets, so that one record moves it furthest.
        x, y = torch.zeros(size, 3, dtype=torch.double), torch.arange(size) % classes
        x[0], y[0] = torch.tensor([1.0, 0.0, 0.0]), 1
        before = training.weight(place) * local_minimiser(training, x, y, place)
        for other in range(2 * classes):
            changed, labels = x.clone(), y.clone()
            changed[0] = torch.tensor([(-1.0) ** other, 0.0, 0.0])
            labels[0] = other // 2
            if training.adjacency == "add_remove":
                changed, labels = changed[1:], labels[1:]
            after = training.weight(place) * local_minimiser(training, changed, labels, place)
            largest = max(largest, float((before - after).norm()))
    assert largest <= training.sensitivity
    assert largest > 0.2 * training.sensitivity  # a bound too loose by far, or a missing weight, would show


def test_public_sizes_cost_what_central_training_costs() -> None:
    uneven = JointTraining(**PUBLIC)
    even = JointTraining(**(PUBLIC | {"sizes": (60, 65)}))
    assert uneven.sensitivity == pytest.approx(even.sensitivity)
    gradient = math.sqrt(2)  # of radius 1 and constant 1
    assert uneven.sensitivity == pytest.approx(gradient / (sum(SIZES) * 0.05), rel=1e-5)
    assert (uneven.adjacency, JointTraining(**PRIVATE).adjacency) == ("replace", "add_remove")


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_all_parties_hold_the_same_private_model(delta: float) -> None:
    training = JointTraining(**(PUBLIC | {"epsilon": 5.0, "delta": delta}))
    rows = [examples(size, seed=place) for place, size in enumerate(SIZES)]
    fits = together(
        [
            lambda add_up, place=place, own=own: train_jointly(training, add_up, *own, place)
            for place, own in enumerate(rows)
        ],
        [training.dimension],
    )
    average = sum(training.weight(place) * local_minimiser(training, *own, place) for place, own in enumerate(rows))
    for found in fits:
        assert torch.equal(found.theta, fits[0].theta)
        assert torch.equal(found.module.weight.detach(), found.theta)
        assert found.guarantee.epsilon <= 5.0
        assert found.guarantee.kind == ("approximate" if delta else "pure")
        assert found.guarantee.float_safe
        assert found.account.epsilon(delta) == pytest.approx(found.guarantee.epsilon)
    distance = float((fits[0].theta - average).abs().max())
    assert 0 < distance < 40 * training.sensitivity


def test_speakers_count_once_however_much_they_say() -> None:
    training = JointTraining(**(PUBLIC | {"unit": "speaker", "sizes": (2, 3, 2)}))
    x, y = examples(30)
    groups = torch.tensor([0] * 29 + [1])
    theta = local_minimiser(training, x, y, 0, groups)
    doubled = torch.cat([x[:29], x[:29], x[29:]]), torch.cat([y[:29], y[:29], y[29:]])
    again = local_minimiser(training, *doubled, 0, torch.tensor([0] * 58 + [1]))
    torch.testing.assert_close(theta, again, rtol=1e-4, atol=1e-6)
    with pytest.raises(PrivacyError, match="groups"):
        local_minimiser(training, x, y, 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sizes": None}, "sizes and penalty"),
        ({"regularisation": 1.0}, "penalty belongs"),
        ({"parties": 3, "regularisation": 1.0}, "and not both"),
        ({"sizes": (3, 0)}, "size"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"radius": -1.0}, "radius"),
        ({"classes": 3}, "two classes"),
        ({"model": "forest"}, "model must be"),
        ({"unit": "party"}, "unit"),
        ({"penalty": -0.1}, "penalty"),
    ],
)
def test_terms_that_cannot_hold_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises((PrivacyError, ModelError), match=said):
        JointTraining(**(PUBLIC | change))


def test_a_party_cannot_lie_about_its_size() -> None:
    training = JointTraining(**PUBLIC)
    with pytest.raises(PrivacyError, match="the terms say 20 units for party 0, but there are 21"):
        local_minimiser(training, *examples(21), 0)
    with pytest.raises(PrivacyError, match="numbered from 0"):
        local_minimiser(training, *examples(20), 3)


def test_terms_of_a_group() -> None:
    members = tuple(Member(f"p{i}", "party", f"{i}" * 64) for i in range(3))
    hub = Member("c", "curator", "c" * 64)
    plain = PUBLIC | {"sizes": list(SIZES)}

    def group(params: dict[str, Any]) -> Group:
        from ppspeech.network import Address

        curator = Member(hub.name, hub.role, hub.pin, Address("127.0.0.1", 7000))
        return Group("aggregate", (curator, *members), "c", params)

    assert terms_of(group({"training": plain})) == JointTraining(**PUBLIC)
    for params, said in (
        ({}, "hold no training"),
        ({"training": plain | {"color": 1}}, "color"),
        ({"training": plain | {"sizes": [1, 2]}}, "2 parties"),
    ):
        with pytest.raises(PpspeechError, match=said):
            terms_of(group(params))


# Parties whose data differ in kind.


def test_averages_of_two_kinds_stay_wrong_and_sums_of_gradients_do_not() -> None:
    for records in (50, 500, 5000):
        parts = two_kinds(records)
        pooled = minimiser(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
        average = torch.stack([minimiser(x, y) for x, y in parts]).mean(0)
        bounds = AggregateBounds(parties=2, smallest=records, penalty=PENALTY, dimension=2)
        assert float((average - pooled).norm()) > max(2.9, bounds.claimed_distance)
        for x, y in parts:
            assert float((minimiser(x, y) - pooled).norm()) <= bounds.distance(0.5)
        assert float((descended(parts) - pooled).norm()) < 1e-6


def test_a_descent_through_the_curator_reaches_the_minimiser_of_all_rows() -> None:
    parts = two_kinds(40)
    pooled = minimiser(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
    terms = JointDescent(rounds=150, step=2 / 80, clip=1.0, regularisation=2 * 80 * PENALTY)

    def program(x: Tensor, y: Tensor) -> Callable[[Any], Tensor]:
        def run(add_up: Any) -> Tensor:
            module = LogisticRegression(2, constant=0.0, dtype=torch.double)
            descend_jointly_(module, PlainSum(add_up, 2.0**-30), x, y, terms)
            return module.weight.detach()[0, :-1]

        return run

    found = together([program(*part) for part in parts], [3] * terms.rounds)
    assert torch.equal(found[0], found[1])
    assert float((found[0] - pooled).norm()) < 1e-3


def test_a_private_descent_keeps_its_budget() -> None:
    parts = two_kinds(4000)
    pooled = minimiser(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
    module = LogisticRegression(2, constant=0.0, dtype=torch.double)
    terms = JointDescent(rounds=30, step=4 / 8000, clip=1.0, regularisation=2 * 8000 * PENALTY, momentum=0.5)
    shares = terms.shares(module, epsilon=1.0, delta=1e-5, parties=2)
    x, y = torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])
    joint = JointSum(lambda steps: steps + shares.share(), shares)  # the other party's share
    descend_jointly_(module, joint, x, y, terms)
    assert 0.9 < joint.guarantee(1e-5).epsilon <= 1.0
    assert float((module.weight.detach()[0, :-1] - pooled).norm()) < 1.0  # the average is 2.9 away
    with pytest.raises(PrivacyError, match="too long"):
        descend_jointly_(module, lambda g: g * math.inf, x, y, terms)


@pytest.mark.parametrize("kind", ["logistic", "softmax", "huber_svm"])
@pytest.mark.parametrize("clip", [0.3, 10.0])
def test_clipped_gradients_against_autograd_one_record_at_a_time(kind: str, clip: float) -> None:
    module: Any = {
        "logistic": LogisticRegression(3, radius=2.0, dtype=torch.double),
        "softmax": SoftmaxRegression(3, 4, dtype=torch.double),
        "huber_svm": HuberSvm(3, dtype=torch.double),
    }[kind]
    x, y = examples(9, classes=4 if kind == "softmax" else 2)
    x = 3 * x
    module.weight.data.normal_(generator=torch.Generator().manual_seed(1))
    expected = torch.zeros_like(module.weight)
    for row in range(9):
        (gradient,) = torch.autograd.grad(module.loss(x[row : row + 1], y[row : row + 1]).sum(), module.weight)
        expected += gradient * min(1.0, clip / max(float(gradient.norm()), 1e-300))
    torch.testing.assert_close(clipped_gradient(module, x, y, clip), expected)


def test_a_personal_model_fits_its_own_data_and_stays_near_the_common_one() -> None:
    (x, y), _ = two_kinds(40)
    common = SoftmaxRegression(2, 2, dtype=torch.double)
    common.weight.data.fill_(0.5)
    loose, tight = (personalise(common, x, y, strength) for strength in (0.1, 1e6))
    assert float((tight.weight - common.weight).detach().norm()) < 1e-3
    assert loose.loss(x, y).sum() < common.loss(x, y).sum() / 10
    assert torch.equal(common.weight.detach(), torch.full((2, 3), 0.5, dtype=torch.double))
    for other in (HuberSvm(2, dtype=torch.double), LogisticRegression(2, dtype=torch.double)):
        assert type(personalise(other, x, y, 1.0)) is type(other)


def test_the_last_iterates_are_averaged() -> None:
    (x, y), _ = two_kinds(40)

    def end(rounds: int, averaged: int) -> Tensor:
        module = LogisticRegression(2, constant=0.0, dtype=torch.double)
        terms = JointDescent(rounds=rounds, step=0.02, clip=0.4, regularisation=1.0, averaged=averaged)
        descend_jointly_(module, lambda gradient: gradient, x, y, terms)
        return module.weight.detach().clone()

    iterates = [end(rounds, 1) for rounds in (5, 6, 7)]
    torch.testing.assert_close(end(7, 3), torch.stack(iterates).mean(0))
    assert not torch.allclose(end(7, 3), iterates[-1])


@pytest.mark.parametrize(
    "change", [{"rounds": 0}, {"step": -1.0}, {"clip": 0.0}, {"momentum": 1.0}, {"averaged": 0}, {"averaged": 4}]
)
def test_descents_that_cannot_be_are_refused(change: dict[str, Any]) -> None:
    terms: dict[str, Any] = {"rounds": 3, "step": 0.1, "clip": 1.0, "regularisation": 1.0}
    with pytest.raises(PrivacyError):
        JointDescent(**(terms | change))


def test_the_seeds_bounds() -> None:
    """Equations 3 and 4 of seed 002 are special cases of theorem 4.3."""
    bounds = AggregateBounds(parties=5, smallest=100, penalty=0.5, dimension=7, failure=0.1)
    assert bounds.claimed_excess(1e12) == pytest.approx(16 * 1.5 / (2 * 100**2 * 0.25))
    alone = AggregateBounds(parties=1, smallest=100, penalty=0.5, dimension=7, failure=0.1)
    assert alone.claimed_excess(0.3) == pytest.approx(2 * 49 * 1.5 / (1e4 * 0.09 * 0.25) * math.log(70) ** 2)
    assert alone.claimed_distance == 0
    assert bounds.claimed_true_excess(1.0, 500) > 2 * bounds.claimed_excess(1.0)
    with pytest.raises(PrivacyError):
        AggregateBounds(parties=5, smallest=0, penalty=0.5, dimension=7)


# Speech that nobody sees.


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
    central = fit(mixture(), frames, iterations=4, tolerance=-1.0).model
    for model in found:
        for name, tensor in model.state_dict().items():
            torch.testing.assert_close(tensor, central.state_dict()[name], rtol=0, atol=4 * 4 * 2.0**-16)
    assert torch.equal(found[0].gaussians.mean, found[2].gaussians.mean)


RELEASE = StatisticsRelease(epsilon=1000.0, iterations=2, unit="speaker", transition_share=0.1)


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
    release = StatisticsRelease(epsilon=2.0, iterations=2, unit="speaker", transition_share=0.0)
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
    settings = SpeakerUbmSettings(
        components=2, covariance="diagonal", floor=trained.gaussians.floor, relevance=16.0, threshold=None
    )
    config = BundleConfig(settings, (), mfcc)
    options: dict[str, Any] = {"model": trained, "config": config, "account": joint.account()}
    write_joint_bundle(tmp_path / "ubm", guarantee=guarantee, **options)
    bundle = load_bundle(tmp_path / "ubm")
    assert bundle.statement.guarantee == guarantee
    assert any("colluding" in line for line in bundle.statement.caveats)
    nothing = Guarantee(kind="none", unit="speaker", adjacency="add_remove", caveat="no noise")
    with pytest.raises(BundleError, match="no guarantee to state"):
        write_joint_bundle(tmp_path / "none", guarantee=nothing, **options)


def test_a_joint_large_margin_classifier_becomes_a_bundle(tmp_path: Path) -> None:
    mfcc = MfccConfig.seed003()
    values = 4 * mfcc.features
    training = JointTraining(
        model="large_margin",
        features=values,
        classes=2,
        radius=2.0,
        epsilon=1.0,
        regularisation=50.0,
        parties=2,
        unit="utterance",
    )
    rows = [examples(12, values, seed=seed) for seed in range(2)]
    programs = [
        lambda add_up, place=place, own=own: train_jointly(training, add_up, *own, place)
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
