"""Modules of people's own: a bundle holds their tensors, and whoever has the module's code loads them into it."""

import re
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ppspeech.bundle.model_types import model_type
from ppspeech.bundle.strict_json import check_text
from ppspeech.errors import BundleError

MOST_TENSORS, LONGEST_NAME = 10_000, 256

_NAME = re.compile(r"\w+(\.\w+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class NamedShape:
    """One tensor of a state dict."""

    name: str
    shape: tuple[int, ...]


class NamedTensors(nn.Module):
    """Tensors under the dotted names of another module's state dict, and nothing that computes."""

    def __init__(self, shapes: tuple[NamedShape, ...]) -> None:
        super().__init__()
        for each in shapes:
            *path, leaf = each.name.split(".")
            place: nn.Module = self
            for part in path:
                inner = getattr(place, part, None)
                if not isinstance(inner, nn.Module):
                    inner = nn.Module()
                    place.add_module(part, inner)  # refuses a name that is taken
                place = inner
            place.register_buffer(leaf, torch.zeros(each.shape))


@model_type("weights")
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsSettings:
    """The tensors of a module that is not one of ours, by name and shape; all are float32.

    Raises BundleError for names that no state dict has, or too many.
    """

    module: str
    tensors: tuple[NamedShape, ...]

    def __post_init__(self) -> None:
        check_text("module", self.module, longest=64)
        names = [each.name for each in self.tensors]
        if not 1 <= len(names) <= MOST_TENSORS or len(set(names)) < len(names):
            raise BundleError(f"a module has 1 to {MOST_TENSORS:,} tensors of different names, got {len(names)}")
        for each in self.tensors:
            if len(each.name) > LONGEST_NAME or not _NAME.fullmatch(each.name) or min(each.shape, default=0) < 0:
                raise BundleError(f"no tensor of a module is called {each.name!r:.80} and has shape {each.shape}")

    @classmethod
    def of(cls, name: str, state: dict[str, Tensor]) -> "WeightsSettings":
        """The settings of a state dict in hand. Raises BundleError for what a bundle cannot hold."""
        for each, tensor in state.items():
            if not isinstance(tensor, Tensor) or tensor.dtype != torch.float32:
                found = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
                raise BundleError(f"{each} is {found}: a bundle holds tensors of float32, and nothing else")
        shapes = tuple(NamedShape(each, tuple(tensor.shape)) for each, tensor in state.items())
        return cls(module=name, tensors=shapes)

    def task(self, labels: tuple[str, ...]) -> str:  # noqa: ARG002
        """What it is for."""
        return (
            f"The weights of a {self.module}. Its code is not here: build the module and load them by "
            "`load_bundle(folder).load_into(module)`."
        )

    def build(self, labels: tuple[str, ...], features: int) -> NamedTensors:
        """The tensors by name."""
        if labels or features:
            raise BundleError("a module of one's own says itself what it takes and gives: no labels, no front end")
        try:
            return NamedTensors(self.tensors)
        except KeyError as clash:
            raise BundleError(f"the tensors' names cannot all be those of one module: {clash}") from None
