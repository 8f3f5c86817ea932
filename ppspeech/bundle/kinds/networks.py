"""Models that say by a small network on frames which word was spoken, or which words."""

from dataclasses import dataclass

from ppspeech.bundle.model_types import model_type
from ppspeech.errors import BundleError
from ppspeech.models import FrameLayer, FrameNetwork, SequenceNetwork, span_of

MOST_LAYERS = 31
LONGEST_STRIDE, LONGEST_SPAN = 32, 512  # frames: what utterances are padded to holds whole strides


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
        check_layers(self.layers)

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Says which of {len(labels)} words was spoken, by a network of {len(self.layers) + 1} layers on frames."

    def build(self, labels: tuple[str, ...], features: int) -> FrameNetwork:
        """The network: features and lengths to scores, `(batch, words)`."""
        return FrameNetwork(len(labels), features, self.frames, self.radius, self.layers)


@model_type("ctc_network", "transcribe")
@dataclass(frozen=True, slots=True, kw_only=True)
class CtcNetworkSettings:
    """A network that says every few frames which word begins, or none (`ppspeech.models.SequenceNetwork`): the blank is
    its first score, the words follow in their order.

    Attributes:
        radius: what frames are shortened to.
        layers: all but the last, which is linear; together they stride over a power of two of frames, up to 32.
    """

    radius: float
    layers: tuple[FrameLayer, ...]

    def __post_init__(self) -> None:
        check_layers(self.layers)
        span, stride = span_of(self.layers)
        if stride & (stride - 1) or stride > LONGEST_STRIDE or not stride <= span <= LONGEST_SPAN:
            raise BundleError(
                f"layers together stride over 1, 2, 4, … or {LONGEST_STRIDE} frames and look at all of them, up to "
                f"{LONGEST_SPAN}, got {stride} and {span}: change strides, pools or widths"
            )

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Writes down sentences of {len(labels)} words, by a network of {len(self.layers) + 1} layers on frames."

    def build(self, labels: tuple[str, ...], features: int) -> SequenceNetwork:
        """The network: features and lengths to scores, `(batch, frames, 1 + words)`."""
        return SequenceNetwork(1 + len(labels), features, self.radius, self.layers)


def check_layers(layers: tuple[FrameLayer, ...]) -> None:
    """Refuse, with a BundleError, more layers than a network has."""
    if not 0 <= len(layers) <= MOST_LAYERS:
        raise BundleError(f"a network has up to {MOST_LAYERS} layers before its last, got {len(layers)}")
