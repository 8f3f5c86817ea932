"""Models that say who speaks: a background model, or a public network, by which devices enroll."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from torch import nn

from ppspeech.bundle.model_types import model_type
from ppspeech.errors import BundleError
from ppspeech.models import EmbeddedVoices, Impostors, UbmVoices
from ppspeech.models.gaussian import Covariance, GaussianMixture

if TYPE_CHECKING:
    from ppspeech.bundle.config import BundleConfig

DIRECTIONS, USUAL = "cohort_directions", "cohort_likelihoods"  # tensors beside those of the model


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortSettings:
    """Whose voices are in the bundle to set thresholds by; the fields of `Impostors` that are no tensors.

    Attributes:
        source: `public` speech; people of the `validation` part of the private corpus, or `people` who were recorded
            for it, who then are in the bundle.
        voices: where they come from, for people.
    """

    source: Literal["public", "validation", "people"]
    voices: str
    frames: tuple[int, ...]
    owners: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.frames or not self.owners or list(self.frames) != sorted({*self.frames}) or self.frames[0] < 1:
            raise BundleError(f"a cohort has increasing amounts of speech and owners of trials, got {self.frames}")

    def __str__(self) -> str:
        return f"{len(set(self.owners))} people of {self.voices}"

    def add_(self, model: nn.Module, size: int) -> None:
        """Make room in a module for a cohort's tensors, whose directions have so many numbers."""
        shape = len(self.frames), len(self.owners)
        model.register_buffer(DIRECTIONS, torch.zeros(*shape, size))
        model.register_buffer(USUAL, torch.zeros(shape))

    def impostors(self, model: nn.Module, *, stretched: bool = False) -> Impostors:
        """The cohort of a module that has it."""
        return Impostors(self.frames, self.owners, model.get_buffer(DIRECTIONS), model.get_buffer(USUAL), stretched)


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
            self.cohort.add_(ubm, self.components * features)
        return ubm

    def impostors(self, model: nn.Module) -> Impostors | None:
        """The cohort of a model that `build` made; None without."""
        return None if self.cohort is None else self.cohort.impostors(model)

    def voices(self, model: nn.Module, config: "BundleConfig") -> UbmVoices:
        """How the model hears voices."""
        return UbmVoices(cast(GaussianMixture, model), config.front_end, self.relevance)

    @staticmethod
    def upgraded(plain: Any) -> Any:
        """Settings of the first bundles, whose threshold was for likelihood ratios and carried over to nobody."""
        if isinstance(plain, Mapping) and "threshold" in plain and "cohort" not in plain:
            return {name: value for name, value in plain.items() if name != "threshold"} | {"cohort": None}
        return plain


@model_type("voice_embedding", "verify", "identify", takes="embedding")
@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceEmbeddingSettings:
    """A public network of voices: nothing in it is trained here, and a bundle holds a cohort alone, where one is
    released.
    """

    cohort: CohortSettings | None = None

    def task(self, labels: tuple[str, ...]) -> str:  # noqa: ARG002
        """What it is for."""
        decides = "It decides only with a cohort of your own, other people recorded alike."
        if self.cohort is not None:
            decides = f"Thresholds by false-accept rate and amount of speech are set among {self.cohort}."
        return f"Verifies speakers: a public network hears voices on people's own devices. {decides}"

    def build(self, labels: tuple[str, ...], features: int) -> nn.Module:
        """A module of the cohort's tensors alone."""
        if labels:
            raise BundleError(f"a network of voices has no labels, got {len(labels)}")
        model = nn.Module()
        if self.cohort is not None:
            self.cohort.add_(model, features)
        return model

    def impostors(self, model: nn.Module) -> Impostors | None:
        """The cohort of a model that `build` made; None without."""
        return None if self.cohort is None else self.cohort.impostors(model, stretched=True)

    def voices(self, model: nn.Module, config: "BundleConfig") -> EmbeddedVoices:  # noqa: ARG002
        """How the network hears voices. Raises BundleError for a public network of something else."""
        if config.embedding is None or config.embedding.name != "voice":
            raise BundleError("people are told apart through voice embeddings, and this bundle names others")
        return EmbeddedVoices(config.embedding)


def add_cohort_(model: nn.Module, found: Impostors) -> None:
    """Put a cohort's tensors beside those of a model."""
    model.register_buffer(DIRECTIONS, found.directions.float())
    model.register_buffer(USUAL, found.usual.float())
