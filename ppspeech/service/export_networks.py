"""From a network in a bundle to one that is evaluated on shares, in ranges that hold all its values for certain."""

import torch
from torch import Tensor, nn

from ppspeech.arrays import Reals
from ppspeech.errors import ModelError
from ppspeech.models import FrameNetwork
from ppspeech.protocols.networks import Layer, NetworkArrays, NetworkShape, fit_network
from ppspeech.service.export import label_bytes


@torch.no_grad()
def export_network(module: nn.Module, labels: tuple[str, ...]) -> NetworkArrays:
    """The encrypted layer's form of a network on frames. Activations that are no lines are drawn by lines, each within
    `Polyline.error`; scores are means over frames, taken before the last layer where that is the same.

    Raises ModelError for a module that is no such network; RangeError where its values fit in no ring.
    """
    if not isinstance(module, FrameNetwork):
        raise ModelError(f"a {type(module).__name__} is no network on frames: ppspeech.models.FrameNetwork is")
    layers = [
        Layer(shape.outputs, shape.width, shape.stride, shape.dilation, shape.activation, shape.pool, shape.pool_width)
        for shape in module.shapes
    ]
    last = Layer(len(labels), activation="none")
    if module.left > 1 and layers and layers[-1].pool == "none":
        layers[-1] = _pooled(layers[-1], module.left)
    elif module.left > 1:
        last = _pooled(last, module.left)
    matrices = [_windows(each.weight) for each in module.layers if isinstance(each, nn.Conv1d)]
    biases = [_reals(each.bias) for each in module.layers if isinstance(each, nn.Conv1d) and each.bias is not None]
    shape = NetworkShape(
        module.frames,
        module.layers[0].in_channels if layers else module.head.in_features,  # type: ignore[arg-type]
        (*layers, last),
        radius=float(module.radius),
        label_bytes=label_bytes(labels),
    )
    parts = (*matrices, _reals(module.head.weight.T)), (*biases, _reals(module.head.bias))
    return fit_network(shape, *parts, labels)


def _pooled(layer: Layer, width: int) -> Layer:
    return Layer(layer.outputs, layer.width, layer.stride, layer.dilation, layer.activation, "mean", width)


def _windows(weight: Tensor) -> Reals:
    """`(outputs, inputs, width)` as a matrix of windows, `(width * inputs, outputs)`."""
    return _reals(weight.permute(2, 1, 0).flatten(0, 1))


def _reals(values: Tensor) -> Reals:
    found: Reals = values.detach().double().cpu().numpy()
    return found
