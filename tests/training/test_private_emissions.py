"""Private discriminative emissions: a guarantee for the right unit, words told apart, labels from public models."""

import pytest
import torch

from ppspeech.errors import PrivacyError
from ppspeech.models import GaussianEmission, HiddenMarkovModel, flat_start_, left_right
from ppspeech.privacy import ObjectivePerturbation, Relation
from ppspeech.training.private.emissions import fit_private_emissions

STATES, D = 2, 3


def speech(utterances: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two words that pass through other places of the unit ball."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.arange(utterances) % 2
    places = torch.tensor([[[0.8, 0.0, 0.0], [0.0, 0.8, 0.0]], [[0.0, 0.8, 0.0], [0.0, 0.0, 0.8]]])
    frames = places[words].repeat_interleave(6, dim=1)
    return frames + 0.05 * torch.randn(frames.shape, generator=generator), torch.full((utterances,), 12), words


def public_bank() -> HiddenMarkovModel:
    bank = HiddenMarkovModel(left_right(STATES), GaussianEmission(2, STATES, D, covariance="diagonal", floor=0.01))
    flat_start_(bank, *speech(20, seed=1))
    return bank


def hook(epsilon: float, unit: str = "utterance") -> ObjectivePerturbation:
    return ObjectivePerturbation(epsilon=epsilon, relation=Relation(unit, "add_remove"), regularization=1.0)  # type: ignore[arg-type]


def test_words_are_told_apart_and_the_guarantee_names_the_unit() -> None:
    features, lengths, words = speech(60, seed=2)
    trained = fit_private_emissions(public_bank(), features, lengths, words, torch.arange(60), hook(1e4), radius=1.0)
    assert trained.fit.guarantee.unit == "utterance"
    assert trained.fit.guarantee.epsilon == pytest.approx(1e4)
    test = speech(40, seed=3)
    assert (trained(test[0], test[1]).argmax(-1) == test[2]).float().mean() > 0.9


def test_one_loud_speaker_counts_once() -> None:
    """Doubling one speaker's utterances changes nothing that is averaged: the solver sees the same objective."""
    features, lengths, words = speech(20, seed=4)
    again = torch.cat([torch.arange(20), torch.zeros(20, dtype=torch.long)])
    budget = hook(1e7, "speaker")
    once = fit_private_emissions(public_bank(), features, lengths, words, torch.arange(20), budget, radius=1.0)
    many = fit_private_emissions(
        public_bank(), features[again], lengths[again], words[again], torch.cat([torch.arange(20), again[20:]]), budget,
        radius=1.0,
    )  # fmt: skip
    torch.testing.assert_close(many.fit.solution.theta, once.fit.solution.theta, atol=1e-2, rtol=0)


def test_a_record_is_no_unit_here() -> None:
    features, lengths, words = speech(4, seed=5)
    with pytest.raises(PrivacyError):
        fit_private_emissions(public_bank(), features, lengths, words, torch.arange(4), hook(1.0, "nobody"), radius=1.0)
