"""Sounds of all kinds, and how decisions that differ are counted."""

import numpy as np
import torch

from ppspeech.audio import Mfcc, MfccConfig, features_of
from ppspeech.evidence.experiments import encrypted_range as experiment


def test_sounds_are_of_all_kinds_and_features_of_them_are_finite() -> None:
    mfcc = MfccConfig.narrowband()
    sounds = [*experiment.made_sounds(10, 0.3, mfcc.sample_rate, np.random.default_rng(0))]
    assert all(len(sound) == 2_400 and float(sound.abs().max()) <= 1 for sound in sounds)
    assert len({sound.numpy().tobytes() for sound in sounds}) == 10
    assert all(torch.isfinite(features).all() for features in features_of(sounds, Mfcc(mfcc), mfcc.sample_rate))


def test_a_decision_that_differs_counts_unless_it_is_a_tie() -> None:
    margins = np.array([0.1, 3.0, 0.2, 50.0])
    found = experiment.Compared(margins, np.array([True, False, False, True]), tie=0.5)
    figures = {figure.metric: figure.value for figure in experiment._figures([found], 4)}
    assert figures == {"active.range.disagreements": 1, "active.range.ties": 1, "active.range.clips": 4}
