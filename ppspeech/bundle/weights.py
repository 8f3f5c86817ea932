"""`model.safetensors`: exactly the tensors that the registered type lists, finite, float32, and nothing beside them."""

import struct
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from ppspeech.bundle.format import SIZES, WEIGHTS
from ppspeech.bundle.model_types import Shapes
from ppspeech.bundle.strict_json import read_json
from ppspeech.errors import BundleError


def write_weights(model: nn.Module, shapes: Shapes) -> bytes:
    """The model's state dict as safetensors without metadata; BundleError if it is not the list, or not finite."""
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    described = {name: (str(tensor.dtype), tuple(tensor.shape)) for name, tensor in state.items()}
    _compare({name: ("torch.float32", tuple(shape)) for name, shape in shapes.items()}, described)
    _check_finite(state)
    # Clones: safetensors refuses tensors that share memory, and a view could drag its whole storage along.
    data: bytes = safetensors.torch.save({name: tensor.clone() for name, tensor in sorted(state.items())})
    if len(data) > SIZES[WEIGHTS]:
        raise BundleError(f"the weights take {len(data):,} bytes; a bundle holds at most {SIZES[WEIGHTS]:,}")
    return data


def read_weights(data: bytes, shapes: Shapes) -> dict[str, Tensor]:
    """The tensors of a safetensors file; its header is compared with the list before anything is allocated.

    Raises BundleError for a damaged file, metadata, or tensors that are not exactly the list, or not finite.
    """
    described = {name: _described(name, entry) for name, entry in _header(data).items()}
    _compare({name: ("F32", tuple(shape)) for name, shape in shapes.items()}, described)
    try:
        state: dict[str, Tensor] = safetensors.torch.load(data)
    except (SafetensorError, ValueError, RuntimeError) as damaged:
        raise BundleError(f"{WEIGHTS} is damaged: {damaged}") from None
    _check_finite(state)
    return state


def _header(data: bytes) -> dict[str, Any]:
    """The JSON header of a safetensors file: 8 bytes of length, little-endian, then the object."""
    length = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else 0
    if not 2 <= length <= len(data) - 8:
        raise BundleError(f"{WEIGHTS} is not a safetensors file")
    header = read_json(data[8 : 8 + length], f"the header of {WEIGHTS}")
    if "__metadata__" in header:
        raise BundleError(f"{WEIGHTS} has metadata: a bundle holds weights and nothing beside them")
    return header


def _described(name: str, entry: Any) -> tuple[str, tuple[int, ...]]:
    try:
        return str(entry["dtype"]), tuple(int(size) for size in entry["shape"])
    except (TypeError, KeyError, ValueError):
        raise BundleError(f"{WEIGHTS} does not describe its tensor {name!r:.80}") from None


def _compare(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    missing, unknown = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    if missing or unknown:
        raise BundleError(
            f"the model's tensors are {', '.join(sorted(wanted))}: missing {', '.join(missing) or 'none'}, unknown "
            f"{', '.join(unknown)[:200] or 'none'}"
        )
    for name, (kind, shape) in wanted.items():
        if found[name] != (kind, shape):
            raise BundleError(
                f"tensor {name} must be {kind} of shape {shape}, got {found[name][0]} of {found[name][1]}"
            )


def _check_finite(state: dict[str, Tensor]) -> None:
    for name, tensor in state.items():
        if not bool(torch.isfinite(tensor).all()):
            raise BundleError(f"tensor {name} holds values that are not finite: such a model gives no scores")
