"""Models that say who speaks: a background model from which devices enroll."""

from dataclasses import dataclass

from ppspeech.bundle.model_type import model_type
from ppspeech.errors import BundleError
from ppspeech.models.gaussian import Covariance, GaussianMixture


@model_type("speaker_ubm", "verify", "identify")
@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerUbmSettings:
    """A background model, from which a device enrolls its own speaker; the threshold is None unless released."""

    components: int
    covariance: Covariance
    floor: float
    relevance: float
    threshold: float | None

    def task(self, labels: tuple[str, ...]) -> str:  # noqa: ARG002
        """What it is for."""
        return "Verifies speakers: a background model from which speakers are enrolled on their own device."

    def build(self, labels: tuple[str, ...], features: int) -> GaussianMixture:
        """The mixture; `SpeakerVerifier.enroll` takes it."""
        if labels:
            raise BundleError(f"a background model has no labels, got {len(labels)}")
        return GaussianMixture(self.components, features, self.covariance, self.floor)
