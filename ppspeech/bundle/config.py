"""`config.json`: which model a bundle holds, by public choices only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from ppspeech.audio import MfccConfig
from ppspeech.bundle.registry import ModelSettings, Shapes, settings_type, type_of
from ppspeech.bundle.strict_json import LONGEST_WORD, check_text, from_plain, to_plain
from ppspeech.errors import BundleError, PpspeechError

FORMAT = 1
MOST_LABELS = 10_000


@dataclass(frozen=True, slots=True)
class BundleConfig:
    """All that is needed to build the model, and to compute its input.

    Attributes:
        settings: of a registered type.
        labels: what the scores stand for, in order: words, emotions, speakers; empty for a background model.
        mfcc: the front end.

    Raises:
        BundleError: for a type that is not registered, or labels that are not distinct short texts.
    """

    settings: ModelSettings
    labels: tuple[str, ...]
    mfcc: MfccConfig

    def __post_init__(self) -> None:
        type_of(self.settings)
        if len(self.labels) > MOST_LABELS or len(set(self.labels)) < len(self.labels):
            raise BundleError(f"labels must be distinct and at most {MOST_LABELS}, got {len(self.labels)}")
        for label in self.labels:
            check_text("a label", label, longest=LONGEST_WORD)

    @property
    def type(self) -> str:
        """The registered name of the model."""
        return type_of(self.settings)

    @property
    def task(self) -> str:
        """What the model is for, in one sentence."""
        return self.settings.task(self.labels)

    def tensors(self) -> Shapes:
        """The tensors that belong to this model, and no others."""
        return self.settings.tensors(self.labels, self.mfcc)

    def build(self) -> nn.Module:
        """The untrained module.

        Raises:
            BundleError: if the settings do not make a model.
        """
        try:
            return self.settings.build(self.labels, self.mfcc)
        except PpspeechError as refused:
            raise BundleError(f"config.json does not make a model of type {self.type!r}: {refused}") from None

    def to_json(self) -> dict[str, Any]:
        """Plain values for `config.json`."""
        return {
            "format": FORMAT,
            "type": self.type,
            "settings": to_plain(self.settings),
            "labels": list(self.labels),
            "mfcc": to_plain(self.mfcc),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "BundleConfig":
        """Read what `to_json` wrote, and refuse anything else.

        Raises:
            BundleError: for another format, an unknown type, or a missing, unknown or mistyped field.
        """
        if set(plain) != {"format", "type", "settings", "labels", "mfcc"}:
            raise BundleError(
                f"config.json has the fields format, type, settings, labels and mfcc, got {sorted(plain)}"
            )
        if plain["format"] is not FORMAT:
            raise BundleError(f"this version reads bundles of format {FORMAT}, got {plain['format']!r:.80}")
        settings = from_plain(settings_type(plain["type"]), plain["settings"], "settings")
        labels = plain["labels"]
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise BundleError("labels must be a list of texts")
        return cls(settings, tuple(labels), from_plain(MfccConfig, plain["mfcc"], "mfcc"))
