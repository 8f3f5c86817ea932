"""The 52-dimensional utterance vector against numpy."""

import numpy as np
import pytest
import torch

from ppspeech.audio import Frames, Mfcc, MfccConfig, utterance_statistics
from ppspeech.errors import AudioError
from tests.audio.test_mfcc import voice


def test_equals_numpy_and_ignores_padding() -> None:
    features = torch.randn(3, 20, 13, generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([20, 1, 7])
    vectors = utterance_statistics(Frames(features, lengths)).numpy()
    for row, length, vector in zip(features.numpy(), lengths.tolist(), vectors, strict=True):
        clip = row[:length]
        expected = np.concatenate([clip.mean(0), clip.max(0), clip.min(0), clip.std(0)])
        np.testing.assert_allclose(vector, expected, atol=1e-6)


def test_hamm2015_vector_has_52_values() -> None:
    frames = Mfcc(MfccConfig.hamm2015())(voice(16_000))
    assert frames.features.shape == (1, 99, 13)
    assert utterance_statistics(frames).shape == (1, 52)


def test_no_frames_is_refused() -> None:
    with pytest.raises(AudioError, match="without frames"):
        utterance_statistics(Frames(torch.zeros(1, 5, 13), torch.tensor([0])))
