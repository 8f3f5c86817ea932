"""Emotions with privacy: what is learned where there is no noise, and from what."""

import pytest
import torch

from ppspeech.evidence.experiments import dp_emotions


def made(people: int = 10, each: int = 12, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    emotions = torch.arange(people * each) % classes
    centers = 2 * torch.randn(classes, 6, generator=generator)
    x = centers[emotions] + 0.3 * torch.randn(len(emotions), 6, generator=generator)
    return x, emotions, torch.arange(people).repeat_interleave(each)


def test_emotions_of_others_are_learned_without_noise_and_not_from_the_start() -> None:
    x, emotions, people = made()
    heard = dp_emotions._recognized(x, emotions, people, dp_emotions.NO_NOISE)
    assert float((heard == emotions).double().mean()) > 0.9
    assert len(dp_emotions._recognized(x, emotions, people, None).unique()) == 1
    figures = dp_emotions._figures("nonprivate", heard[None], emotions, people)
    assert figures[0].value == pytest.approx(float((heard == emotions).double().mean()), abs=0.01)
