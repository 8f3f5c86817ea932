"""Recurrent layers step by step, of operations that `torch.func` can batch: the kernels of `nn.GRU` it cannot."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.errors import PrivacyError

State = tuple[Tensor, ...]
"""What a cell hands on: h, or h and c."""


def unrolled(layer: nn.RNNBase, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
    """What an `nn.GRU`, `nn.LSTM` or `nn.RNN` computes, to rounding: outputs and the last state, shaped as its own.

    Raises PrivacyError for packed sequences and projections.
    """
    if not isinstance(x, Tensor):
        raise PrivacyError(f"private gradients of {type(layer).__name__} take padded tensors, got {type(x).__name__}")
    if layer.proj_size:
        raise PrivacyError(f"private gradients of {type(layer).__name__} with proj_size are not known: leave it out")
    is_lstm, is_batched = isinstance(layer, nn.LSTM), x.dim() == 3
    if not is_batched:
        x = x.unsqueeze(0 if layer.batch_first else 1)
    if layer.batch_first:
        x = x.transpose(0, 1)
    ways = 2 if layer.bidirectional else 1
    if state is None:
        zero = x.new_zeros(layer.num_layers * ways, x.shape[1], layer.hidden_size)
        first: State = (zero, zero) if is_lstm else (zero,)
    else:
        given = tuple(state) if is_lstm else (state,)
        first = given if is_batched else tuple(part.unsqueeze(1) for part in given)
    last: list[State] = []
    for depth in range(layer.num_layers):
        if depth and layer.dropout:
            x = functional.dropout(x, layer.dropout, layer.training)
        passes: list[Tensor] = []
        for way in range(ways):
            ours = tuple(part[depth * ways + way] for part in first)
            outputs, end = _pass(layer, f"_l{depth}{'_reverse' if way else ''}", x.flip(0) if way else x, ours)
            passes.append(outputs.flip(0) if way else outputs)
            last.append(end)
        x = torch.cat(passes, dim=-1)
    end = tuple(torch.stack(parts) for parts in zip(*last, strict=True))
    if layer.batch_first:
        x = x.transpose(0, 1)
    if not is_batched:
        x, end = x.squeeze(0 if layer.batch_first else 1), tuple(part.squeeze(1) for part in end)
    return x, end if is_lstm else end[0]


def _pass(layer: nn.RNNBase, name: str, x: Tensor, state: State) -> tuple[Tensor, State]:
    """One direction of one layer over `(steps, batch, features)`."""
    weight, bias = getattr(layer, f"weight_hh{name}"), getattr(layer, f"bias_hh{name}") if layer.bias else None
    inputs = functional.linear(
        x, getattr(layer, f"weight_ih{name}"), getattr(layer, f"bias_ih{name}") if layer.bias else None
    )
    cell = _cell(layer)
    outputs: list[Tensor] = []
    for step in inputs.unbind(0):
        state = cell(step, functional.linear(state[0], weight, bias), state)
        outputs.append(state[0])
    return torch.stack(outputs), state


def _cell(layer: nn.RNNBase) -> Callable[[Tensor, Tensor, State], State]:
    if isinstance(layer, nn.GRU):
        return _gru
    if isinstance(layer, nn.LSTM):
        return _lstm
    squash = torch.relu if getattr(layer, "nonlinearity", "tanh") == "relu" else torch.tanh
    return lambda given, kept, _: (squash(given + kept),)


def _gru(given: Tensor, kept: Tensor, state: State) -> State:
    (reset_in, update_in, new_in), (reset, update, new) = given.chunk(3, -1), kept.chunk(3, -1)
    share = torch.sigmoid(update_in + update)
    fresh = torch.tanh(new_in + torch.sigmoid(reset_in + reset) * new)
    return (fresh + share * (state[0] - fresh),)


def _lstm(given: Tensor, kept: Tensor, state: State) -> State:
    take, forget, fresh, show = (given + kept).chunk(4, -1)
    cell = torch.sigmoid(forget) * state[1] + torch.sigmoid(take) * torch.tanh(fresh)
    return torch.sigmoid(show) * torch.tanh(cell), cell
