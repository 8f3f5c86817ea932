"""The client's own part of recognition: from a waveform to the numbers that are encrypted. Nothing here leaves it."""

import math

import numpy as np
import torch
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.audio import Mfcc, Sound, utterance_statistics, waveform_at
from ppspeech.service.description import StatisticsScale, WordOffer


class FrontEnd:
    """Speech to the input of one offered model.

    Args:
        offer: what the server said of it.
    """

    def __init__(self, offer: WordOffer) -> None:
        self.config = offer.mfcc
        self._statistics = offer.statistics
        self._mfcc = Mfcc(offer.mfcc)

    @torch.no_grad()
    def frames(self, sound: Sound, rate: int | None = None) -> Reals:
        """The model's input: `(frames, features)`, or one vector of statistics `(1, 4 * features)`.

        Raises:
            AudioError: for sound that cannot be used.
        """
        frames = self._mfcc(self.waveform(sound, rate))
        if self._statistics is not None:
            return _scaled(utterance_statistics(frames), self._statistics).numpy()
        return np.asarray(frames.features[0].numpy())

    def waveform(self, sound: Sound, rate: int | None = None) -> Tensor:
        """One channel at the model's rate; see `waveform_at`."""
        return waveform_at(sound, rate, self.config.sample_rate)


def _scaled(statistics: Tensor, scale: StatisticsScale) -> Tensor:
    """As `UtteranceClassifier` and its model do: centered, scaled, and clipped to the public radius."""
    mean, std = torch.tensor(scale.mean), torch.tensor(scale.std)
    vector = (statistics - mean) / (std * math.sqrt(len(mean)))
    if scale.radius is None:
        return vector
    clipped: Tensor = vector * (scale.radius / vector.norm(dim=-1, keepdim=True).clamp_min(scale.radius))
    return clipped
