"""Features that keep one label and hide another: a filter, used in the clear."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from ppspeech.audio import Mfcc, MfccConfig, Sound, features_of
from ppspeech.data import Level, inputs_of
from ppspeech.errors import ModelError


@dataclass(frozen=True, slots=True)
class Filterer:
    """A filter from a bundle. Without noise it promises nothing: see `ppspeech.filters.FeatureNoise`.

    The module maps `(..., inputs)` to `(..., features)`; `level` is what one sample is.
    """

    module: nn.Module
    level: Level
    mfcc: MfccConfig

    def filter_all(self, sounds: Sequence[Sound], rate: int | None = None) -> list[Tensor]:
        """Filtered features of utterances: waveforms `(samples,)` with one rate in Hz, or sound files.

        Returns `(features,)` of each where the filter takes an utterance's statistics, else `(frames, features)`.
        Raises ModelError for a filter of rows; AudioError for sound that cannot be used.
        """
        if self.level == "table":
            raise ModelError("this filter takes rows of a table, not sound: give them to `filter_rows`")
        return [
            self.filter_rows(inputs_of(frames, self.level)) for frames in features_of(sounds, Mfcc(self.mfcc), rate)
        ]

    @torch.no_grad()
    def filter_rows(self, inputs: Tensor) -> Tensor:
        """Filtered `(..., inputs)`: `(..., features)`."""
        return cast(Tensor, self.module(inputs))
