"""Kinds of models: one registered value each. A file names a kind; only what is registered is ever built.

A kind is a frozen dataclass of plain settings under `@model_type`. From it everything follows: `config.json`, the
module, the list of its tensors, what a bundle of it does in the clear; `ppspeech.service` registers how it is served
encrypted, under the same name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from torch import nn

from ppspeech.errors import BundleError
from ppspeech.registry import Registry

Shapes = Mapping[str, tuple[int, ...]]
"""Every tensor of a model by its name in the state dict, with its shape. All are float32."""

Use = Literal["recognize", "transcribe", "verify", "identify", "filter", "classify"]
"""What a model does in the clear; `classify` is for rows of a table, `recognize` for speech. A kind without any is a
module whose code is elsewhere."""


Takes = Literal["mfcc", "embedding", "columns"]
"""What a model is given: MFCCs of speech, vectors of a public embedding, or rows of a table."""


class ModelSettings(Protocol):
    """The public choices of one kind of model: a frozen dataclass of plain values, complete enough to build it.

    The tensors of a file are compared with those of the module on the meta device before anything is allocated, so
    constructors may look at sizes and never at values.

    Two names of fields mean something to a release: `cohort` says whose voices are in the bundle, and of people of the
    private corpus none may be where something is promised to them; `label` says what the labels are, and `speaker` that
    they are people of the training data. A kind whose first bundles had other fields has `upgraded(plain)`.
    """

    def task(self, labels: tuple[str, ...]) -> str:
        """What the model is for, in one sentence, for people."""
        ...

    def build(self, labels: tuple[str, ...], features: int) -> nn.Module:
        """The module, untrained, for inputs of so many features (a frame, or a row)."""
        ...


@dataclass(frozen=True, slots=True)
class ModelType:
    """One kind of model, by its name in `config.json`, in checkpoints and among `ppspeech.service`'s exporters."""

    name: str
    settings: type[ModelSettings]
    uses: tuple[Use, ...]
    takes: Takes


MODEL_TYPES: Registry[ModelType] = Registry("model type", "ppspeech.bundle.kinds", error=BundleError)

Settings = TypeVar("Settings", bound=type[ModelSettings])


def model_type(name: str, *uses: Use, takes: Takes | None = None) -> Callable[[Settings], Settings]:
    """Register the settings of a kind of model under the name that `config.json` gives it. It takes MFCCs, or rows if
    it classifies, unless it says otherwise.
    """
    usual: Takes = "columns" if "classify" in uses else "mfcc"

    def enter(settings: Settings) -> Settings:
        MODEL_TYPES.enter(name, ModelType(name, settings, uses, takes or usual))
        return settings

    return enter


def type_of(settings: ModelSettings) -> ModelType:
    """The registered kind of these settings. Raises BundleError if there is none."""
    for kind in MODEL_TYPES.values():
        if type(settings) is kind.settings:
            return kind
    raise BundleError(f"{type(settings).__name__} is not a registered model type")
