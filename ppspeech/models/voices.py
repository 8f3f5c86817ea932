"""How voices become directions, whose cosines say how alike they are: by a background model, or by a public network.

    UbmVoices        how speech moves the means of a background model (Campbell et al. 2006)
    EmbeddedVoices   what a public network says of it (Wan et al. 2018)

Thresholds, cohorts, claims and encryption know neither: they take whatever is a `Voices`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.arrays import Reals
from ppspeech.audio import Frames, Mfcc, MfccConfig, Sound, features_of, in_usual_range, waveform_at
from ppspeech.audio.embeddings import EmbeddingConfig, VoiceEmbedding
from ppspeech.errors import AudioError
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.gaussian.statistics import mixture_statistics
from ppspeech.models.gaussian.ubm import map_adapt, supervectors
from ppspeech.models.speakers import adapt_speakers

AT_A_TIME = 16  # voices that a network hears at once


class Voices(Protocol):
    """What hears voices."""

    @property
    def size(self) -> int:
        """Numbers of a direction."""
        ...

    @property
    def unit(self) -> str:
        """Of how usual speech is, for people."""
        ...

    @property
    def amounts(self) -> tuple[int, ...]:
        """Frames of speech at which strangers are tried; between them thresholds are interpolated."""
        ...

    @property
    def stretched(self) -> bool:
        """Whether cosines come so near to 1 that their tail is that of Fisher's z, artanh of them."""
        ...

    def features(self, sounds: Sequence[Sound], rate: int | None = None) -> list[Tensor]:
        """What is heard of each clip, `(frames, features)`; whoever cuts or joins speech does it there."""
        ...

    def directions(self, x: Tensor) -> Tensor:
        """Of voices `(voices, frames, features)`, of unit length: `(voices, size)`."""
        ...

    def likelihoods(self, x: Tensor) -> Tensor | None:
        """The average log-likelihood of frames `(voices, frames, features)`, `(voices,)`; None without a model of
        them: how usual speech is, its direction then says among those of others.
        """
        ...


@dataclass(frozen=True, slots=True)
class UbmVoices:
    """A background model, from which voices are adapted, and the front end of its features."""

    ubm: GaussianMixture
    mfcc: MfccConfig
    relevance: float = 16.0

    @property
    def size(self) -> int:
        """Numbers of a direction."""
        return self.ubm.components * self.ubm.features

    @property
    def unit(self) -> str:
        """Of log-likelihoods."""
        return "nats a frame"

    @property
    def amounts(self) -> tuple[int, ...]:
        """From 0.3 s to 8 s."""
        return 30, 90, 270, 810

    @property
    def stretched(self) -> bool:
        """Cosines of strangers are small."""
        return False

    def features(self, sounds: Sequence[Sound], rate: int | None = None) -> list[Tensor]:
        """MFCCs of each clip."""
        return features_of(sounds, Mfcc(self.mfcc), rate)

    def directions(self, x: Tensor) -> Tensor:
        """How voices move the background model."""
        return voice_directions(self.ubm, x, self.relevance)

    @torch.no_grad()
    def likelihoods(self, x: Tensor) -> Tensor:
        """Under the background model."""
        return self.ubm.average_log_prob(x)

    @torch.no_grad()
    def means(self, x: Tensor) -> Reals:
        """The means of the mixture of one speaker's frames `(frames, features)`, `(size,)`, where the front end's
        features usually lie. Its weights and covariances are the background's.
        """
        adapted = adapt_speakers(self.ubm, x.unsqueeze(0), relevance=self.relevance)
        return in_usual_range(adapted.gaussians.mean.squeeze(0), self.mfcc).reshape(-1)


@dataclass(frozen=True, slots=True)
class EmbeddedVoices:
    """A public network, by its name and the hash of its weights; loaded when something is heard. Raises
    MissingPackageError then where they are not installed.
    """

    config: EmbeddingConfig

    @property
    def size(self) -> int:
        """Numbers of a direction."""
        return self.config.size

    @property
    def unit(self) -> str:
        """Of cosines."""
        return "cosine with the nearest voices"

    @property
    def amounts(self) -> tuple[int, ...]:
        """From 0.3 s to 8 s: what the network hears at a time, 1.6 s, is between them."""
        return 30, 90, 160, 230, 300, 500, 810

    @property
    def stretched(self) -> bool:
        """All voices have much in common, as numbers that are not negative have: cosines of strangers reach 0.9."""
        return True

    @torch.no_grad()
    def features(self, sounds: Sequence[Sound], rate: int | None = None) -> list[Tensor]:
        """Mel power of each clip, its silences left out."""
        network, found = _network(self.config), []
        for sound in sounds:
            try:
                found.append(network.frames(waveform_at(sound, rate, self.config.sample_rate)).features[0])
            except AudioError as error:
                if not isinstance(sound, str | Path) or str(sound) in str(error):
                    raise
                raise AudioError(f"{sound}: {error}") from None
        return found

    @torch.no_grad()
    def directions(self, x: Tensor) -> Tensor:
        """What the network says of voices."""
        network = _network(self.config)
        parts = [x[start : start + AT_A_TIME] for start in range(0, len(x), AT_A_TIME)]
        return torch.cat([network.voices(Frames(part, torch.full((len(part),), x.shape[1]))) for part in parts])

    def likelihoods(self, x: Tensor) -> None:  # noqa: ARG002
        """It has no model of frames."""
        return


@cache
def _network(config: EmbeddingConfig) -> VoiceEmbedding:
    return VoiceEmbedding(config).requires_grad_(False)


def one_direction(voices: Voices, x: Tensor) -> Reals:
    """The direction of frames `(frames, features)`, `(size,)`, of unit length in double precision."""
    found = voices.directions(x.unsqueeze(0)).squeeze(0).double()
    return np.asarray((found / found.norm().clamp_min(1e-12)).numpy())


@torch.no_grad()
def voice_directions(ubm: GaussianMixture, x: Tensor, relevance: float = 16.0) -> Tensor:
    """How voices move the background model, as unit vectors `(voices, size)`, from frames `(voices, frames, d)`.

    Their inner products are cosines of supervectors measured from the UBM's (Campbell et al. 2006).
    """
    moved = supervectors(ubm, map_adapt(ubm, mixture_statistics(ubm, x), relevance=relevance)) - supervectors(ubm, ubm)
    return functional.normalize(moved, dim=-1)
