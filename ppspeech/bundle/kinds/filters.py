"""Minimax filters: features to features, with what it keeps and what it hides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from ppspeech.bundle.model_types import model_type
from ppspeech.bundle.strict_json import check_text
from ppspeech.data import Level
from ppspeech.errors import BundleError
from ppspeech.filters import CodeFilter, LinearFilter, Mlp, Scaling, SigmoidNetwork, Standardized

MOST_INPUTS = 100_000

Shape = Literal["linear", "sigmoid", "mlp", "codes"]


@model_type("minimax_filter", "filter")
@dataclass(frozen=True, slots=True, kw_only=True)
class MinimaxFilterSettings:
    """A filter of `inputs` values (for speech they follow from the front end), with `hidden` units; 0 if linear. One of
    `codes` lets so many through; 0 of the others.
    """

    shape: Shape
    inputs: int
    hidden: int
    features: int
    level: Level
    keep: str
    hide: str
    codes: int = 0

    @staticmethod
    def upgraded(plain: Any) -> Any:
        """Settings of the first filters, which had no codes."""
        return {"codes": 0, **plain} if isinstance(plain, Mapping) else plain

    def __post_init__(self) -> None:
        if not 1 <= self.features <= MOST_INPUTS or not 1 <= self.inputs <= MOST_INPUTS or self.hidden < 0:
            raise BundleError(f"a filter has 1 to {MOST_INPUTS:,} inputs and features, got {self}")
        if (self.shape == "linear") != (self.hidden == 0):
            raise BundleError(f"a {self.shape} filter cannot have {self.hidden} hidden units")
        if (self.shape == "codes") != (self.codes > 0) or not 0 <= self.codes <= MOST_INPUTS:
            raise BundleError(f"a {self.shape} filter cannot have {self.codes} codes")
        for name in ("keep", "hide"):
            check_text(name, getattr(self, name), longest=64)

    def task(self, labels: tuple[str, ...]) -> str:  # noqa: ARG002
        """What it is for."""
        into = f"one of {self.codes} codes" if self.codes else f"{self.features}"
        return (
            f"Turns {self.inputs} features of a sample ({self.level}) into {into} that keep {self.keep} and "
            f"should not show {self.hide}, to attackers like those it was measured with."
        )

    def build(self, labels: tuple[str, ...], features: int) -> nn.Module:
        """The filter: `(..., inputs)` to `(..., features)`; the non-linear ones carry the scale of their inputs."""
        if labels:
            raise BundleError(f"a filter has no labels, got {len(labels)}")
        per_sample = {"utterance": 4 * features, "frames": features, "table": self.inputs}[self.level]
        if per_sample != self.inputs:
            raise BundleError(
                f"the front end gives {per_sample} inputs a sample ({self.level}), the filter takes {self.inputs}"
            )
        if self.shape == "linear":
            return LinearFilter(self.inputs, self.features)
        inside: nn.Module
        if self.shape == "sigmoid":
            inside = SigmoidNetwork(self.inputs, self.hidden, self.features)
        elif self.shape == "codes":
            inside = CodeFilter(self.inputs, self.hidden, self.features, self.codes)
        else:
            inside = Mlp(self.inputs, [self.hidden], self.features)
        return Standardized(inside, Scaling.identity(self.inputs)).float()
