"""Models that tell what kind of utterance it was, from its statistics."""

from dataclasses import dataclass
from typing import Literal

from ppspeech.bundle.model_types import model_type
from ppspeech.models import UtteranceClassifier
from ppspeech.models.margin import LargeMarginGaussians, MarginLoss


@model_type("large_margin_classifier", "recognize")
@dataclass(frozen=True, slots=True, kw_only=True)
class LargeMarginClassifierSettings:
    """Large-margin Gaussians on utterance statistics."""

    label: Literal["emotion", "gender", "word", "speaker"]
    width: float
    radius: float

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        return f"Tells which {self.label} of {len(labels)} a whole utterance has, by large-margin Gaussians."

    def build(self, labels: tuple[str, ...], features: int) -> UtteranceClassifier:
        """The classifier: features and lengths to scores, `(batch, classes)`."""
        loss = MarginLoss(width=self.width)
        model = LargeMarginGaussians(len(labels), 4 * features, loss=loss, psd="projection", radius=self.radius)
        return UtteranceClassifier(model)
