"""Models that say which word was spoken by a small network on its frames."""

from dataclasses import dataclass

from ppspeech.bundle.model_type import model_type
from ppspeech.errors import BundleError
from ppspeech.models import FrameLayer, FrameNetwork

MOST_LAYERS = 31


@model_type("keyword_network", "recognize")
@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordNetworkSettings:
    """A network on frames (`ppspeech.models.FrameNetwork`).

    Attributes:
        frames: what every utterance is brought to.
        radius: what frames are shortened to.
        layers: all but the last, which is linear and averaged over frames.
    """

    frames: int
    radius: float
    layers: tuple[FrameLayer, ...]

    def __post_init__(self) -> None:
        if not 0 <= len(self.layers) <= MOST_LAYERS:
            raise BundleError(f"a network has up to {MOST_LAYERS} layers before its last, got {len(self.layers)}")

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Says which of {len(labels)} words was spoken, by a network of {len(self.layers) + 1} layers on frames."

    def build(self, labels: tuple[str, ...], features: int) -> FrameNetwork:
        """The network: features and lengths to scores, `(batch, words)`."""
        return FrameNetwork(len(labels), features, self.frames, self.radius, self.layers)
