"""Where the sigmoid network starts: as a stacked denoising autoencoder (Vincent et al. 2008), then on the task.

Hamm 2015 section 5.1 starts its non-linear filter so; from a random start the minimax game is lost before the network
has learned what a face is.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.filters.modules import SigmoidNetwork
from ppspeech.filters.tasks import Task

LEARNING_RATE = 1e-2


def pretrain_(
    network: SigmoidNetwork, inputs: Tensor, corruption: float = 0.2, steps: int = 200, seed: int = 0
) -> tuple[float, ...]:
    """Train each layer in turn to restore what it is given from a corrupted copy.

    The network is changed in place, on standardized inputs `(n, D)`. `corruption`, in [0, 1), is the share of the
    numbers that are set to zero; `steps` are of Adam on all inputs, for each layer. Returns the mean square error of
    each layer's restoration at the end. Raises ModelError for inputs of another size, or constants out of range.
    """
    if inputs.ndim != 2 or inputs.shape[1] != network.inputs:
        raise ModelError(f"inputs must be (n, {network.inputs}), got {tuple(inputs.shape)}")
    if not 0 <= corruption < 1 or steps < 1:
        raise ModelError(f"corruption must be in [0, 1) and steps >= 1, got {corruption} and {steps}")
    generator = torch.Generator(inputs.device).manual_seed(seed)
    errors = []
    given = inputs.detach().to(network.first.weight)
    for layer in (network.first, network.second):
        decoder = nn.Parameter(0.1 * torch.randn(layer.weight.mT.shape, generator=generator).to(given))
        offset = nn.Parameter(given.mean(0))
        optimizer = torch.optim.Adam([*layer.parameters(), decoder, offset], LEARNING_RATE)
        for _ in range(steps):
            kept = torch.rand(given.shape, generator=generator, device=given.device) >= corruption
            restored = torch.sigmoid(layer(given * kept)) @ decoder.mT + offset
            error = (restored - given).square().mean()
            _step(optimizer, error)
        errors.append(error.detach())
        given = torch.sigmoid(layer(given)).detach()
    return tuple(torch.stack(errors).tolist())


def supervise_(network: nn.Module, inputs: Tensor, tasks: Iterable[Task], steps: int = 200) -> float:
    """Train a filter and one linear model for each task together, without an adversary: the task alone. The network is
    changed in place, by `steps` of Adam on all inputs, standardized. Returns the loss at the end.
    """
    tasks = tuple(tasks)
    if not tasks or steps < 1:
        raise ModelError(f"need at least one task and one step, got {len(tasks)} and {steps}")
    with torch.no_grad():
        features = network(inputs).flatten(0, -2)
    heads = [nn.Parameter(task.best_response(features).parameters.to(features)) for task in tasks]
    optimizer = torch.optim.Adam([*network.parameters(), *heads], LEARNING_RATE)
    for _ in range(steps):
        features = network(inputs).flatten(0, -2)
        loss = torch.stack([t.importance * t.loss(v, features) for t, v in zip(tasks, heads, strict=True)]).sum()
        _step(optimizer, loss)
    return float(loss.detach())


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
