"""Models that say who speaks: a background model from which devices enroll."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from ppspeech.bundle.model_types import model_type
from ppspeech.errors import BundleError
from ppspeech.models import Impostors
from ppspeech.models.gaussian import Covariance, GaussianMixture

DIRECTIONS, LIKELIHOODS = "cohort_directions", "cohort_likelihoods"  # tensors beside those of the mixture


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortSettings:
    """Whose voices are in the bundle to set thresholds by; the fields of `Impostors` that are no tensors.

    Attributes:
        source: `public` speech, or people of the `validation` part of the private corpus, who then are in the bundle.
        voices: where they come from, for people.
    """

    source: Literal["public", "validation"]
    voices: str
    frames: tuple[int, ...]
    owners: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.frames or not self.owners or list(self.frames) != sorted({*self.frames}) or self.frames[0] < 1:
            raise BundleError(f"a cohort has increasing amounts of speech and owners of trials, got {self.frames}")

    def __str__(self) -> str:
        return f"{len(set(self.owners))} people of {self.voices}"


@model_type("speaker_ubm", "verify", "identify")
@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerUbmSettings:
    """A background model, from which a device enrolls its own speaker; a cohort where one is released."""

    components: int
    covariance: Covariance
    floor: float
    relevance: float
    cohort: CohortSettings | None = None

    def task(self, labels: tuple[str, ...]) -> str:  # noqa: ARG002
        """What it is for."""
        decides = "It decides only with a cohort of your own, other people recorded alike."
        if self.cohort is not None:
            decides = f"Thresholds by false-accept rate and amount of speech are set among {self.cohort}."
        return f"Verifies speakers: a background model from which speakers are enrolled on their own device. {decides}"

    def build(self, labels: tuple[str, ...], features: int) -> GaussianMixture:
        """The mixture, with the cohort's tensors beside its own."""
        if labels:
            raise BundleError(f"a background model has no labels, got {len(labels)}")
        ubm = GaussianMixture(self.components, features, self.covariance, self.floor)
        if self.cohort is not None:
            shape = len(self.cohort.frames), len(self.cohort.owners)
            ubm.register_buffer(DIRECTIONS, torch.zeros(*shape, self.components * features))
            ubm.register_buffer(LIKELIHOODS, torch.zeros(shape))
        return ubm

    def impostors(self, ubm: GaussianMixture) -> Impostors | None:
        """The cohort of a model that `build` made; None without."""
        if self.cohort is None:
            return None
        tensors = ubm.get_buffer(DIRECTIONS), ubm.get_buffer(LIKELIHOODS)
        return Impostors(self.cohort.frames, self.cohort.owners, *tensors)

    @staticmethod
    def upgraded(plain: Any) -> Any:
        """Settings of the first bundles, whose threshold was for likelihood ratios and carried over to nobody."""
        if isinstance(plain, Mapping) and "threshold" in plain and "cohort" not in plain:
            return {name: value for name, value in plain.items() if name != "threshold"} | {"cohort": None}
        return plain


def add_cohort_(ubm: GaussianMixture, found: Impostors) -> None:
    """Put a cohort's tensors beside those of the mixture."""
    ubm.register_buffer(DIRECTIONS, found.directions.float())
    ubm.register_buffer(LIKELIHOODS, found.likelihoods.float())
