"""Where speech is expected to lie, it lies."""

from dataclasses import replace

import pytest
import torch

from ppspeech.audio import MfccConfig, features_of, in_usual_range, usual_range
from ppspeech.audio.mfcc import Mfcc
from ppspeech.audio.mfcc_config import GivenFeatures
from ppspeech.data import SyntheticCorpus

WIDE = MfccConfig(cmvn="none")


@pytest.mark.parametrize(
    "config",
    [
        WIDE,
        replace(WIDE, level="keep"),
        replace(MfccConfig.narrowband(), cmvn="none"),
        replace(WIDE, lifter=0, mel_filters=40),
        replace(WIDE, delta_reach=3, low_hz=100.0),
        MfccConfig.hamm2015(),
    ],
    ids=["wideband", "as recorded", "narrowband", "no lifter", "other band", "hamm2015"],
)
def test_speech_lies_in_its_usual_range(config: MfccConfig) -> None:
    """Its center within two spreads, its spread within a factor of four, nothing beyond eight."""
    corpus = SyntheticCorpus(words=("six", "one"), speakers=4, takes=1).build()
    frames = torch.cat(features_of([u.path for u in corpus], Mfcc(config)))
    scaled = in_usual_range(frames, config)
    assert abs(scaled.mean(0)).max() < 2
    assert 1 / 4 < scaled.std(0).min() <= scaled.std(0).max() < 4
    assert abs(scaled).max() < 8


@pytest.mark.parametrize("config", [MfccConfig(), GivenFeatures(given=7)], ids=["normalized", "given"])
def test_what_is_normalized_or_given_is_left(config: MfccConfig) -> None:
    center, spread = usual_range(config)
    assert center.tolist() == [0.0] * config.features
    assert spread.tolist() == [1.0] * config.features
