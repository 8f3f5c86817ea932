"""`config.json`: which model a bundle holds, by public choices only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ppspeech.audio import GivenFeatures, MfccConfig
from ppspeech.audio.embeddings import EmbeddingConfig
from ppspeech.bundle.model_types import MODEL_TYPES, ModelSettings, ModelType, Shapes, type_of
from ppspeech.bundle.strict_json import LONGEST_WORD, check_text, from_plain, to_plain
from ppspeech.errors import BundleError, PpspeechError

FORMAT = 1
MOST_LABELS = 10_000
WANTED = {
    "columns": "rows, with names of columns",
    "mfcc": "speech, with an MFCC front end",
    "embedding": "speech, with a public embedding",
}


@dataclass(frozen=True, slots=True)
class BundleConfig:
    """All that is needed to build the model, and to compute its input.

    Raises BundleError for a type that is not registered, labels or columns that are not distinct short texts, or not
    just one of MFCCs, embedding and columns.

    Attributes:
        labels: what the scores stand for, in order: words, emotions, speakers; empty for a background model.
        mfcc: the front end of a model of speech; None for a model of rows or embeddings, or a module of one's own.
        columns: names of what a row of a table holds, in order; empty for a model of speech, or a module of one's own.
        embedding: the public network whose vectors a model of speech takes instead of MFCCs.
    """

    settings: ModelSettings
    labels: tuple[str, ...]
    mfcc: MfccConfig | None
    columns: tuple[str, ...] = ()
    embedding: EmbeddingConfig | None = None

    def __post_init__(self) -> None:
        has = {"mfcc": self.mfcc is not None, "columns": bool(self.columns), "embedding": self.embedding is not None}
        given = [name for name, there in has.items() if there]
        if not self.kind.uses:
            if given:
                raise BundleError(f"a {self.type} says itself what it takes: it has no front end and no columns")
        elif given != [self.kind.takes]:
            raise BundleError(f"a {self.type} takes {WANTED[self.kind.takes]}: it cannot have the other")
        for name, texts in (("labels", self.labels), ("columns", self.columns)):
            if len(texts) > MOST_LABELS or len(set(texts)) < len(texts):
                raise BundleError(f"{name} must be distinct and at most {MOST_LABELS}, got {len(texts)}")
            for text in texts:
                check_text(f"a {name[:-1]}", text, longest=LONGEST_WORD)

    @property
    def kind(self) -> ModelType:
        """The registered kind of the model."""
        return type_of(self.settings)

    @property
    def type(self) -> str:
        """Its name."""
        return self.kind.name

    @property
    def features(self) -> int:
        """Values in one frame, or in one row."""
        front_end = self.mfcc or self.embedding
        return len(self.columns) if front_end is None else front_end.features

    @property
    def front_end(self) -> MfccConfig:
        """The MFCCs that a model of speech takes. Raises BundleError for a model of rows or of embeddings."""
        if self.mfcc is None:
            raise BundleError(f"a {self.type} takes {self.input}, not MFCC features")
        return self.mfcc

    @property
    def input(self) -> str:
        """What the model takes, for people."""
        if not self.kind.uses:
            return "what its module takes"
        if self.embedding is not None:
            return f"{self.embedding}, from speech at {self.embedding.sample_rate:,} Hz"
        if self.mfcc is None:
            return f"rows of {self.features} columns"
        if isinstance(self.mfcc, GivenFeatures):
            return f"{self.features} given features a frame, as in the filtered corpus it was trained on"
        if self.mfcc.encoder is not None:
            return (
                f"{self.features} features a frame, by a public encoder of {self.mfcc.computed} MFCC features, from "
                f"speech at {self.mfcc.sample_rate:,} Hz"
            )
        return f"{self.features} MFCC features a frame, from speech at {self.mfcc.sample_rate:,} Hz"

    @property
    def task(self) -> str:
        """What the model is for, in one sentence."""
        return self.settings.task(self.labels)

    def tensors(self) -> Shapes:
        """The tensors of this model, and no others; nothing is allocated. Raises BundleError as `build` does."""
        try:
            with torch.device("meta"):
                state = self.build().state_dict()
        except (RuntimeError, OverflowError) as beyond:  # sizes that no tensor has
            raise BundleError(f"config.json does not make a model of type {self.type!r}: {beyond!s:.200}") from None
        return {name: tuple(tensor.shape) for name, tensor in state.items()}

    def build(self) -> nn.Module:
        """The untrained module. Raises BundleError if the settings do not make a model."""
        try:
            return self.settings.build(self.labels, self.features)
        except PpspeechError as refused:
            raise BundleError(f"config.json does not make a model of type {self.type!r}: {refused}") from None

    def to_json(self) -> dict[str, Any]:
        """Plain values for `config.json`: a model of speech has `mfcc` or `embedding`, one of rows has `columns`."""
        taken = {"columns": list(self.columns)} if self.mfcc is None else {"mfcc": to_plain(self.mfcc)}
        if self.embedding is not None:
            taken = {"embedding": to_plain(self.embedding)}
        return {
            "format": FORMAT,
            "type": self.type,
            "settings": to_plain(self.settings),
            "labels": list(self.labels),
            **taken,
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "BundleConfig":
        """Read what `to_json` wrote. Raises BundleError for anything else, down to one mistyped field."""
        common = {"format", "type", "settings", "labels"}
        if set(plain) not in (common | {taken} for taken in WANTED):
            raise BundleError(
                f"config.json has the fields format, type, settings, labels and one of {', '.join(WANTED)}, got "
                f"{sorted(plain)}"
            )
        if plain["format"] is not FORMAT:
            raise BundleError(f"this version reads bundles of format {FORMAT}, got {plain['format']!r:.80}")
        if not isinstance(plain["type"], str):
            raise BundleError(f"type must be a name, got {plain['type']!r:.80}")
        kind = MODEL_TYPES[plain["type"]].settings
        upgraded = getattr(kind, "upgraded", None)
        given = plain["settings"] if upgraded is None else upgraded(plain["settings"])
        settings = from_plain(kind, given, "settings")
        mfcc = None
        if "mfcc" in plain:
            ready = isinstance(plain["mfcc"], Mapping) and "given" in plain["mfcc"]
            given = plain["mfcc"]
            if isinstance(given, Mapping) and "encoder" not in given:  # of the first bundles, which had none
                given = {**given, "encoder": None}
            mfcc = from_plain(GivenFeatures if ready else MfccConfig, given, "mfcc")
        embedding = from_plain(EmbeddingConfig, plain["embedding"], "embedding") if "embedding" in plain else None
        return cls(settings, _texts(plain, "labels"), mfcc, _texts(plain, "columns"), embedding)


def _texts(plain: Mapping[str, Any], name: str) -> tuple[str, ...]:
    texts = plain.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise BundleError(f"{name} must be a list of texts")
    return tuple(texts)
