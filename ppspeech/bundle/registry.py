"""The closed list of models a bundle may hold. A file names a type; only what is registered here is ever built."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from torch import nn

from ppspeech.audio import MfccConfig
from ppspeech.errors import BundleError

Shapes = Mapping[str, tuple[int, ...]]
"""Every tensor of a model by its name in the state dict, with its shape. All are float32."""


class ModelSettings(Protocol):
    """The public choices of one type of model: a frozen dataclass of plain values, complete enough to build it.

    The settings list the tensors before anything is built, so that a file is compared with the list first: no tensor
    beside them can enter a bundle, and no size in a file is allocated on its word.
    """

    def task(self, labels: tuple[str, ...]) -> str:
        """What the model is for, in one sentence, for people."""
        ...

    def tensors(self, labels: tuple[str, ...], mfcc: MfccConfig) -> Shapes:
        """The tensors that a bundle of this type holds, and no others."""
        ...

    def build(self, labels: tuple[str, ...], mfcc: MfccConfig) -> nn.Module:
        """The module, untrained; its state dict has exactly the `tensors`."""
        ...


Registered = TypeVar("Registered", bound=type[ModelSettings])
MODEL_TYPES: dict[str, type[ModelSettings]] = {}


def register_model(name: str) -> Callable[[Registered], Registered]:
    """Enter the settings of a type of model under the name that `config.json` gives it."""

    def enter(kind: Registered) -> Registered:
        if name in MODEL_TYPES:
            raise BundleError(f"a model type named {name!r} exists already ({MODEL_TYPES[name].__name__})")
        MODEL_TYPES[name] = kind
        return kind

    return enter


def type_of(settings: ModelSettings) -> str:
    """The registered name of these settings.

    Raises:
        BundleError: if their type is not registered.
    """
    for name, kind in MODEL_TYPES.items():
        if type(settings) is kind:
            return name
    raise BundleError(f"{type(settings).__name__} is not a registered model type")


def settings_type(name: object) -> type[ModelSettings]:
    """The settings of a type by its name.

    Raises:
        BundleError: for a name that is not on the list.
    """
    kind = MODEL_TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise BundleError(f"unknown model type {name!r:.80}; known: {', '.join(sorted(MODEL_TYPES))}")
    return kind
