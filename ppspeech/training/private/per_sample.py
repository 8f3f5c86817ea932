"""The gradient of every example's loss, by `torch.func`: one forward pass, any number of inputs, any layers.

Each example is a batch of its own, so that its loss cannot look at another. Recurrent layers, whose kernels give no
per-sample gradients, are computed step by step; attention by its plain formula; dropout draws for each example.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from ppspeech.errors import PrivacyError
from ppspeech.training.private.recurrent import unrolled

Step = Callable[..., Any]
"""A `training_step`: a batch, and perhaps its number, to its loss."""


class Losses(nn.Module):
    """A module whose forward pass is the losses of another, for `functional_call`.

    Those that its `losses(batch)` tells; without it the one loss that `step` returns for a batch of one.
    """

    def __init__(self, module: nn.Module, step: Step | None = None) -> None:
        super().__init__()
        self.module, self.step = module, step

    def forward(self, batch: Any) -> Tensor:
        """The losses of a batch, `(batch,)`."""
        told: Callable[[Any], Tensor] | None = getattr(self.module, "losses", None)
        if callable(told):
            return told(batch)
        assert self.step is not None
        found = self.step(batch, 0) if len(signature(self.step).parameters) > 1 else self.step(batch)
        loss = found.get("loss") if isinstance(found, Mapping) else found
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise PrivacyError(
                f"training_step must return one loss, or a dict with one as `loss`, got {type(found).__name__}"
            )
        return loss.reshape(1)


def mapped(change: Callable[[Tensor], Tensor], batch: Any) -> Any:
    """A batch of the same form (tensors in dicts, lists and tuples) with every tensor changed."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return {name: mapped(change, value) for name, value in batch.items()}
    if isinstance(batch, tuple | list):
        return [mapped(change, value) for value in batch]
    raise PrivacyError(
        f"a batch for private gradients holds tensors, in dicts, lists or tuples, got {type(batch).__name__}"
    )


def size_of(batch: Any) -> int:
    """Examples in a batch."""
    while not isinstance(batch, Tensor):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch))
    return len(batch)


def per_sample_gradients(
    module: nn.Module, batch: Any, names: Sequence[str], chunk: int | None = None, step: Step | None = None
) -> tuple[list[Tensor], Tensor]:
    """The gradient of every example's loss, `(batch, *parameter)` a name, and the losses `(batch,)`."""
    if size_of(batch) == 0:
        return _of_nobody(module, names)
    whole, parameters = Losses(module, step), dict(module.named_parameters())
    fixed = {f"module.{name}": value.detach() for name, value in parameters.items() if name not in set(names)}
    wanted = {f"module.{name}": parameters[name].detach() for name in names}

    def loss(chosen: dict[str, Tensor], one: Any) -> Tensor:
        alone = mapped(lambda tensor: tensor.unsqueeze(0), one)
        found: Tensor = functional_call(whole, {**fixed, **chosen}, (alone,))
        return found.squeeze(0)

    each = vmap(grad_and_value(loss), in_dims=(None, 0), chunk_size=chunk, randomness="different")
    with _differentiable(module), sdpa_kernel(SDPBackend.MATH):
        gradients, losses = each(wanted, batch)
    return [gradients[f"module.{name}"] for name in names], losses


def gradients_one_by_one(
    module: nn.Module, batch: Any, names: Sequence[str], step: Step | None = None
) -> tuple[list[Tensor], Tensor]:
    """The same by a loop, for modules that `torch.func` cannot batch: a backward pass an example."""
    if size_of(batch) == 0:
        return _of_nobody(module, names)
    whole, parameters = Losses(module, step), dict(module.named_parameters())
    wanted = [parameters[name] for name in names]
    found: list[Sequence[Tensor]] = []
    losses: list[Tensor] = []
    with _differentiable(module), torch.enable_grad():
        for i in range(size_of(batch)):
            loss = whole(mapped(lambda tensor, i=i: tensor[i : i + 1], batch)).squeeze(0)  # type: ignore[misc]
            found.append(torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True))
            losses.append(loss.detach())
    return [torch.stack(each) for each in zip(*found, strict=True)], torch.stack(losses)


def _of_nobody(module: nn.Module, names: Sequence[str]) -> tuple[list[Tensor], Tensor]:
    parameters = dict(module.named_parameters())
    return [parameters[n].new_zeros((0, *parameters[n].shape)) for n in names], parameters[names[0]].new_zeros(0)


@contextmanager
def _differentiable(module: nn.Module) -> Iterator[None]:
    """Recurrent layers unrolled, and nothing logged: what an example's loss is, is told to nobody."""
    recurrent = [layer for layer in module.modules() if isinstance(layer, nn.RNNBase)]
    changed: list[tuple[Any, str, Any]] = [(layer, "forward", partial(unrolled, layer)) for layer in recurrent]
    changed += [(module, name, lambda *_, **__: None) for name in ("log", "log_dict") if hasattr(module, name)]
    for owner, name, function in changed:
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, _ in changed:
            delattr(owner, name)
