"""Who speaks? A background model and voices enrolled from it, used in the clear.

Enrollment moves the background model's means towards a voice. As they are, they are the means of the speaker's mixture
(Reynolds et al. 2000). Measured from where they were and brought to length 1, they are a direction; the cosine of two
directions says how alike two voices are (Campbell et al. 2006). Either is a template, and the device that hears the
voice computes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from ppspeech.arrays import Reals
from ppspeech.audio import Mfcc, MfccConfig, Sound, features_of
from ppspeech.bundle.config import BundleConfig
from ppspeech.errors import ModelError
from ppspeech.models import SpeakerVerifier, adapt_speakers
from ppspeech.models.gaussian import GaussianMixture, supervectors


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether a claim holds: its score, a log-likelihood ratio in nats a frame, is at or above the threshold."""

    value: bool
    score: float
    threshold: float


@dataclass(frozen=True, slots=True)
class Identified:
    """Whose voice it is, None where nobody known scores at or above the threshold; scores by name, in nats a frame."""

    value: str | None
    scores: Mapping[str, float]
    threshold: float


@dataclass(frozen=True, slots=True)
class Verifier:
    """A background model in the clear, and the threshold trials are accepted at; None where none was released."""

    ubm: GaussianMixture
    mfcc: MfccConfig
    relevance: float
    threshold: float | None

    @classmethod
    def of(cls, model: nn.Module, config: BundleConfig) -> "Verifier":
        """A trained model of a kind that verifies."""
        settings: Any = config.settings
        return cls(cast(GaussianMixture, model), config.front_end, settings.relevance, settings.threshold)

    @property
    def size(self) -> int:
        """Numbers of a template."""
        return self.ubm.components * self.mfcc.features

    def verify(
        self,
        claimed: Sequence[Sound],
        sounds: Sequence[Sound],
        rate: int | None = None,
        *,
        threshold: float | None = None,
    ) -> Verified:
        """Is this the voice of the person whose clips are `claimed`?

        `rate` is of waveforms, in Hz; files know their own. The threshold is the model's by default. Raises AudioError
        for sound that cannot be used; ModelError without clips, or without a threshold.
        """
        least = self._least(threshold)
        score = float(self._scores([claimed], sounds, rate))
        return Verified(score >= least, score, least)

    def identify(
        self,
        sounds: Sequence[Sound],
        speakers: Mapping[str, Sequence[Sound]],
        rate: int | None = None,
        *,
        threshold: float | None = None,
    ) -> Identified:
        """Whose voice is it, if any of these people's, whose clips come by name? The rest as in `verify`."""
        least = self._least(threshold)
        scores = self._scores(list(speakers.values()), sounds, rate).tolist()
        found = dict(zip(speakers, scores, strict=True))
        best = max(found, key=lambda name: found[name])
        return Identified(best if found[best] >= least else None, found, least)

    def features(self, sounds: Sequence[Sound], rate: int | None = None) -> list[Tensor]:
        """Features of each clip, `(frames, features)`."""
        return features_of(sounds, Mfcc(self.mfcc), rate)

    @torch.no_grad()
    def direction(self, clips: Sequence[Tensor]) -> Reals:
        """The direction of what one speaker said, `(size,)`, of unit length; from features `(frames, features)`."""
        moved = (supervectors(self.ubm, self._adapted(clips)) - supervectors(self.ubm, self.ubm)).squeeze(0).double()
        return np.asarray(functional.normalize(moved, dim=-1).numpy())

    @torch.no_grad()
    def means(self, clips: Sequence[Tensor]) -> Reals:
        """The means of the speaker's mixture, `(size,)`; its weights and covariances are the background's."""
        return np.asarray(self._adapted(clips).gaussians.mean.double().flatten().numpy())

    def _adapted(self, clips: Sequence[Tensor]) -> GaussianMixture:
        if not clips:
            raise ModelError("a template needs at least one clip")
        return adapt_speakers(self.ubm, torch.cat(list(clips)).unsqueeze(0), relevance=self.relevance)

    @torch.no_grad()
    def _scores(self, speakers: Sequence[Sequence[Sound]], sounds: Sequence[Sound], rate: int | None) -> Tensor:
        if not speakers or not all(speakers) or not sounds:
            raise ModelError("enrollment needs at least one clip of each speaker, and a trial at least one clip")
        joined = [torch.cat(self.features(own, rate)) for own in speakers]
        lengths = torch.tensor([len(frames) for frames in joined])
        enrolled = pad_sequence(joined, batch_first=True)
        verifier = SpeakerVerifier.enroll(self.ubm, enrolled, lengths, relevance=self.relevance)
        scores: Tensor = verifier(torch.cat(self.features(sounds, rate)).unsqueeze(0)).squeeze(0)
        return scores

    def _least(self, chosen: float | None) -> float:
        found = self.threshold if chosen is None else chosen
        if found is None:
            raise ModelError("the bundle was released without a threshold: choose one (--threshold), such as 0.2")
        return found
