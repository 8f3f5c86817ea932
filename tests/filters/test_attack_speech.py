"""Attackers on frames: a GMM-UBM and an embedding network."""

import pytest
import torch
from torch import Tensor

from ppspeech.audio.frames import Frames, length_mask
from ppspeech.errors import ModelError
from ppspeech.filters.attack.attack import attack, attacker_names
from ppspeech.filters.attack.attackers import SPEECH_ATTACKERS
from ppspeech.filters.attack.attackers.attacker import Standardizing, frames_inside

SPEECH = tuple(SPEECH_ATTACKERS)


def utterances(separation: float, seed: int = 0, people: int = 3, each: int = 30) -> tuple[Frames, Tensor]:
    """Utterances of 10 to 24 frames of two sounds; people say the second one `separation` apart."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(people * each) % people
    lengths = torch.randint(10, 25, (len(labels),), generator=generator)
    x = torch.randn(len(labels), 24, 4, generator=generator)
    sound = torch.randint(0, 2, (len(labels), 24, 1), generator=generator)
    x = x + sound * (2 + separation * torch.eye(people, 4)[labels].unsqueeze(1))
    return Frames(x * length_mask(lengths, 24).unsqueeze(-1), lengths), labels


@pytest.mark.parametrize("name", SPEECH)
def test_speakers_who_differ_are_found(name: str) -> None:
    report = attack(*utterances(5.0), *utterances(5.0, seed=1), [name])
    assert report.worst.accuracy > 0.8
    assert report.worst.eer < 0.25


@pytest.mark.parametrize("name", SPEECH)
def test_speakers_who_do_not_differ_are_not(name: str) -> None:
    # 90 test utterances at chance 1/3: 0.54 is four standard deviations up.
    report = attack(*utterances(0.0), *utterances(0.0, seed=1), [name])
    assert report.worst.accuracy < 0.54


@pytest.mark.parametrize("name", SPEECH)
def test_padding_has_no_part_in_it(name: str) -> None:
    frames, labels = utterances(1.0)
    score = SPEECH_ATTACKERS[name](frames, labels, 3, 0)
    longer = Frames(torch.cat([frames.features, torch.zeros(len(labels), 7, 4)], dim=1), frames.lengths)
    torch.testing.assert_close(score(longer), score(frames), atol=1e-4, rtol=1e-4)


def test_attackers_on_vectors_see_statistics_over_time() -> None:
    report = attack(*utterances(3.0), *utterances(3.0, seed=1), ["logistic", "svm"])
    assert report["logistic"].accuracy > 0.8
    assert set(attacker_names(speech=True)) - set(attacker_names(speech=False)) == set(SPEECH)


def test_standardized_frames_have_mean_0_and_variance_1_and_a_constant_stays_0() -> None:
    frames, _ = utterances(1.0)
    flat = Frames(torch.cat([frames.features, torch.ones(*frames.features.shape[:2], 1)], dim=-1), frames.lengths)
    seen = frames_inside(Standardizing(flat)(flat))
    torch.testing.assert_close(seen.mean(0), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(seen.var(0, correction=0), torch.tensor([1.0, 1, 1, 1, 0]), atol=1e-4, rtol=0)


def test_frames_and_vectors_do_not_mix() -> None:
    frames, labels = utterances(1.0)
    with pytest.raises(ModelError, match="both be Frames"):
        attack(frames, labels, frames.features[:, 0], labels)
