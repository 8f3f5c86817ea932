"""Who speaks? Voices as directions, enrolled and claimed, used in the clear.

A background model's means move towards a voice; measured from where they were and brought to length 1, they are a
direction (Campbell et al. 2006). A public network says one too. The cosine of two directions says how alike two voices
are, here and under encryption. A direction is a template, and the device that hears the voice computes it; so are the
means as they are, those of the speaker's mixture (Reynolds et al. 2000), where there is a background model.

Which cosine is enough depends on how much was said and on how it was recorded: a claim is decided by the rate at which
strangers reach it, among the people of a cohort (`ppspeech.models.impostors`). Speech that is unlike the cohort's is
not accepted: nothing is known about the strangers there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ppspeech.arrays import Reals
from ppspeech.audio import Sound
from ppspeech.bundle.config import BundleConfig
from ppspeech.errors import ModelError
from ppspeech.models import UNUSUAL, Impostors, UbmVoices, Voices, one_direction

FALSE_ACCEPT = 0.01
UNUSUAL_ELSEWHERE = 0.03
"""The share of a bundle's cohort's own speech that is called unlike it: where the model is used nobody has compared."""


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether a claim holds: its score, a cosine, is at or above the threshold, and the speech like the cohort's.

    Attributes:
        false_accept: the rate at which strangers reach the threshold; None where a threshold was given.
        unlike: what is unlike the cohort's speech, in words for people; nothing is accepted at a rate then.
    """

    value: bool
    score: float
    threshold: float
    false_accept: float | None
    unlike: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Identified:
    """Whose voice it is, None where it is nobody's known; scores and thresholds by name, the rest as in `Verified`.

    `false_accept` is the rate at which a stranger gets any name.
    """

    value: str | None
    scores: Mapping[str, float]
    thresholds: Mapping[str, float]
    false_accept: float | None
    unlike: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verifier:
    """What hears voices, in the clear, and the cohort that thresholds are set among; None where none was released.

    `unusual` is the share of the cohort's own speech that would be called unlike it; smaller for a cohort that was
    brought because it is recorded like those who will try.
    """

    voices: Voices
    impostors: Impostors | None
    unusual: float = UNUSUAL_ELSEWHERE

    @classmethod
    def of(cls, model: nn.Module, config: BundleConfig) -> "Verifier":
        """A trained model of a kind that verifies."""
        settings: Any = config.settings
        return cls(settings.voices(model, config), settings.impostors(model))

    @property
    def size(self) -> int:
        """Numbers of a template."""
        return self.voices.size

    @property
    def background(self) -> UbmVoices:
        """The background model. Raises ModelError where a public network hears voices."""
        if not isinstance(self.voices, UbmVoices):
            raise ModelError(
                "likelihood ratios need a background model (speaker_ubm), and these voices are heard by a public "
                "network: take scoring=linear or hardened"
            )
        return self.voices

    def among(self, people: Iterable[Sequence[Sound]], rate: int | None = None) -> "Verifier":
        """The same with a cohort of one's own: clips of each person; see `Impostors.of` for what it refuses."""
        clips = [self.features(own, rate) for own in people]
        return replace(self, impostors=Impostors.of(self.voices, clips), unusual=UNUSUAL)

    def verify(
        self,
        claimed: Sequence[Sound],
        sounds: Sequence[Sound],
        rate: int | None = None,
        *,
        false_accept: float = FALSE_ACCEPT,
        threshold: float | None = None,
    ) -> Verified:
        """Is this the voice of the person whose clips are `claimed`?

        `rate` is of waveforms, in Hz; files know their own. A threshold, if given, goes before the false-accept rate.
        Raises AudioError for sound that cannot be used; ModelError without clips, or without cohort and threshold.
        """
        found = self.identify(sounds, {"": claimed}, rate, false_accept=false_accept, threshold=threshold)
        return Verified(
            found.value is not None, found.scores[""], found.thresholds[""], found.false_accept, found.unlike
        )

    def identify(
        self,
        sounds: Sequence[Sound],
        speakers: Mapping[str, Sequence[Sound]],
        rate: int | None = None,
        *,
        false_accept: float = FALSE_ACCEPT,
        threshold: float | None = None,
    ) -> Identified:
        """Whose voice is it, if any of these people's, whose clips come by name? The rest as in `verify`.

        The rate is that of a stranger who gets any name: each of the people has an equal part of it.
        """
        if not speakers or not all(speakers.values()) or not sounds:
            raise ModelError("enrollment needs at least one clip of each speaker, and a trial at least one clip")
        if self.impostors is None and threshold is None:
            raise ModelError(
                "the model has no cohort, and does not know which score is rare among strangers: give clips of other "
                "people recorded like these (--cohort FOLDER, one folder each), or a cosine of your own (--threshold)"
            )
        enrolled = {name: torch.cat(self.features(own, rate)) for name, own in speakers.items()}
        heard = torch.cat(self.features(sounds, rate))
        unlike = self.unlike({"the trial": heard} | {_enrolled(name): own for name, own in enrolled.items()})
        if threshold is None and self.impostors is not None:
            heard = heard[: self.impostors.frames[-1]]
        trial = torch.from_numpy(self.direction([heard]))
        templates = {name: torch.from_numpy(self.direction([own])) for name, own in enrolled.items()}
        scores = {name: float(template @ trial) for name, template in templates.items()}
        least = dict.fromkeys(scores, threshold or 0.0)
        if threshold is None:
            each = false_accept / len(speakers)
            least = {name: self.least(template, len(heard), each) for name, template in templates.items()}
        best = max(scores, key=lambda name: scores[name] - least[name])
        accepted = scores[best] >= least[best] and not (threshold is None and unlike)
        return Identified(
            best if accepted else None, scores, least, false_accept if threshold is None else None, tuple(unlike)
        )

    def least(self, template: Tensor, frames: int, rate: float) -> float:
        """The cosine that a stranger's so many frames reach with a direction at a rate. ModelError without a cohort."""
        if self.impostors is None:
            raise ModelError("the model has no cohort to set a threshold among: give one, or a threshold")
        return self.impostors.threshold(template, frames, rate)

    def unlike(self, speech: Mapping[str, Tensor]) -> list[str]:
        """Which of these, frames by what they are, is unlike all speech of the cohort, in words for people."""
        if self.impostors is None:
            return []
        found = []
        for name, frames in speech.items():
            usual, least = self.impostors.usualness(self.voices, frames, self.unusual)
            if usual < least:
                found.append(
                    f"{name} is unlike the cohort's speech: {usual:.3g} {self.voices.unit}, theirs {least:.3g}+"
                )
        return found

    def features(self, sounds: Sequence[Sound], rate: int | None = None) -> list[Tensor]:
        """Features of each clip, `(frames, features)`."""
        return self.voices.features(sounds, rate)

    def direction(self, clips: Sequence[Tensor]) -> Reals:
        """The direction of what one speaker said, `(size,)`, of unit length; from features `(frames, features)`."""
        return one_direction(self.voices, self._joined(clips))

    def means(self, clips: Sequence[Tensor]) -> Reals:
        """The means of the speaker's mixture, `(size,)`. Raises ModelError without a background model."""
        return self.background.means(self._joined(clips))

    def _joined(self, clips: Sequence[Tensor]) -> Tensor:
        if not clips:
            raise ModelError("a template needs at least one clip")
        return torch.cat(list(clips))


def _enrolled(name: str) -> str:
    return f"what {name or 'the claimed person'} was enrolled with"
