"""Speakers as parties, at small size: the stand-ins for the network add up what the parties would."""

import pytest
import torch

from ppspeech.evidence.experiments import speech_parties
from ppspeech.evidence.experiments.speech_parties import Speakers, _averaged, _central, _descended, descent
from ppspeech.training.together.average import local_minimizer


@pytest.fixture
def speakers(monkeypatch: pytest.MonkeyPatch) -> Speakers:
    """Six made-up speakers of three words that are easy to tell apart."""
    monkeypatch.setattr(speech_parties, "PARTIES", 6)
    made = Speakers.__new__(Speakers)
    generator = torch.Generator().manual_seed(0)
    made.classes = 3
    made.y = torch.arange(360) % 3
    made.x = 0.8 * torch.eye(5, dtype=torch.double)[made.y] + 0.1 * torch.randn(
        360, 5, generator=generator, dtype=torch.double
    )
    made.parts = list(zip(torch.split(made.x, 60), torch.split(made.y, 60), strict=True))
    made.test_x, made.test_y = made.x[:90], made.y[:90]
    return made


def test_every_way_learns_and_noise_is_there(speakers: Speakers) -> None:
    terms = speakers.averaging(20.0)
    assert terms.count == 6
    local = [local_minimizer(terms, x, y, place, torch.arange(len(y))) for place, (x, y) in enumerate(speakers.parts)]
    assert _averaged(speakers, terms, local) > 0.80
    assert _central(speakers, terms) > 0.80
    assert _descended(speakers, 20.0) > 0.80
    assert speakers.accuracy(torch.zeros(3, 6, dtype=torch.double)) == pytest.approx(1 / 3)


def test_too_little_budget_is_too_much_noise(speakers: Speakers) -> None:
    """The noise of all parties really is added: at a tiny epsilon nothing is learned."""
    found = [_descended(speakers, 0.02) for _ in range(6)]
    assert sum(found) / 6 < 0.75
    assert descent(360).rounds == 20
