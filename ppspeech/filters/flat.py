"""Any nn.Module as a function of one vector: what solvers move is u, whatever the filter is made of."""

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from ppspeech.errors import ModelError


class FlatFilter:
    """g(x; u) of Hamm 2015: a filter with its trainable parameters laid out in one vector.

    The module maps `(n, ...)` to `(n, features)` or `(n, frames, features)`; parameters that do not require gradients
    stay as they are. Raises ModelError if nothing in it can be trained.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._free = {name: value for name, value in module.named_parameters() if value.requires_grad}
        if not self._free:
            raise ModelError(f"{type(module).__name__} has no parameter that requires gradients: nothing to learn")

    @property
    def size(self) -> int:
        """The length of u."""
        return sum(value.numel() for value in self._free.values())

    def vector(self) -> Tensor:
        """u as it is in the module, `(size,)`."""
        return parameters_to_vector(self._free.values()).detach().clone()

    def __call__(self, u: Tensor, inputs: Tensor) -> Tensor:
        """The filtered inputs with these parameters, one observation a row: `(observations, features)`."""
        sizes = [value.numel() for value in self._free.values()]
        parts = torch.split(u, sizes)
        parameters = {name: part.view_as(old) for (name, old), part in zip(self._free.items(), parts, strict=True)}
        filtered: Tensor = functional_call(self.module, parameters, (inputs,))
        return filtered.flatten(0, -2)

    def load_(self, u: Tensor) -> None:
        """Write u into the module."""
        vector_to_parameters(u, self._free.values())
