"""From a network in a bundle to one that is evaluated on shares, in ranges that hold all its values for certain."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from ppspeech.arrays import Reals
from ppspeech.bundle import Bundle
from ppspeech.errors import ModelError, RangeError
from ppspeech.models import FrameLayer, FrameNetwork, SequenceNetwork, StateNetwork
from ppspeech.protocols.networks import Layer, NetworkArrays, NetworkShape, fit_network
from ppspeech.service.export import label_bytes
from ppspeech.service.tasks.sentences import SentenceDeployment


@torch.no_grad()
def export_network(module: nn.Module, labels: tuple[str, ...]) -> NetworkArrays:
    """The encrypted layer's form of a network on frames. Activations that are no lines are drawn by lines, each within
    `Polyline.error`; scores are means over frames, taken before the last layer where that is the same.

    Raises ModelError for a module that is no such network; RangeError where its values fit in no ring.
    """
    if not isinstance(module, FrameNetwork):
        raise ModelError(f"a {type(module).__name__} is no network on frames: ppspeech.models.FrameNetwork is")
    layers = _layers(module.shapes)
    last = Layer(len(labels), activation="none")
    if module.left > 1 and layers and layers[-1].pool == "none":
        layers[-1] = _pooled(layers[-1], module.left)
    elif module.left > 1:
        last = _pooled(last, module.left)
    return _fitted(module, (*layers, last), module.frames, labels)


@torch.no_grad()
def export_sequence(module: nn.Module, labels: tuple[str, ...], frames: int) -> NetworkArrays:
    """The same of a network that is read greedily, for utterances of up to so many frames, a multiple of its stride:
    zeros on both sides are a part of what its shape takes. Raises as `export_network`.
    """
    if not isinstance(module, SequenceNetwork):
        raise ModelError(f"a {type(module).__name__} is read by no CTC: train one with `ppspeech train sentences_ctc`")
    layers = (*_layers(module.shapes), Layer(1 + len(labels), activation="none"))
    return _fitted(module, layers, frames + module.span - module.stride, ("", *labels))


def export_ctc(bundle: Bundle, deployment: SentenceDeployment | None = None) -> NetworkArrays:
    """The same of a bundle, for the longest utterance that whoever serves it chooses. Raises RangeError for a choice
    of bits: a network says itself what its values need.
    """
    chosen = deployment or SentenceDeployment()
    if chosen.bits is not None:
        raise RangeError(f"a network's layers say how many bits they need, got bits={chosen.bits}: leave it out")
    return export_sequence(bundle.model, bundle.labels, chosen.frames_of(bundle.mfcc))


@torch.no_grad()
def export_states(module: nn.Module, frames: int) -> NetworkArrays:
    """The same of a network that scores the states of a graph, for utterances of up to so many frames: its priors and
    its scale are a part of the last layer. Raises as `export_network`.
    """
    if not isinstance(module, StateNetwork):
        raise ModelError(
            f"a {type(module).__name__} scores no states: train one with `ppspeech train sentences_network`"
        )
    inner = module.network
    layers = (*_layers(inner.shapes), Layer(inner.head.out_features, activation="none"))
    found = _fitted(inner, layers, frames + inner.span - 1, ())
    last = module.scale * found.matrices[-1], module.scale * (found.biases[-1] - _reals(module.log_prior))
    return fit_network(found.shape, (*found.matrices[:-1], last[0]), (*found.biases[:-1], last[1]), ())


def at_frames(network: NetworkArrays, frames: int) -> NetworkArrays:
    """The same for utterances of up to so many frames."""
    span, stride = network.shape.span
    shape = replace(network.shape, frames=frames + span - stride)
    return NetworkArrays(shape, network.matrices, network.biases, network.labels)


def _fitted(
    module: FrameNetwork | SequenceNetwork, layers: tuple[Layer, ...], frames: int, labels: tuple[str, ...]
) -> NetworkArrays:
    windows = [each for each in module.layers if isinstance(each, nn.Conv1d)]
    matrices = [_windows(each.weight) for each in windows]
    biases = [_reals(each.bias) for each in windows if each.bias is not None]
    shape = NetworkShape(
        frames,
        windows[0].in_channels if windows else module.head.in_features,
        layers,
        "word" if isinstance(module, FrameNetwork) else "labels" if labels else "scores",
        radius=float(module.radius),
        label_bytes=label_bytes(labels) if labels else 1,
    )
    parts = (*matrices, _reals(module.head.weight.T)), (*biases, _reals(module.head.bias))
    return fit_network(shape, *parts, labels)


def _layers(shapes: tuple[FrameLayer, ...]) -> list[Layer]:
    return [
        Layer(shape.outputs, shape.width, shape.stride, shape.dilation, shape.activation, shape.pool, shape.pool_width)
        for shape in shapes
    ]


def _pooled(layer: Layer, width: int) -> Layer:
    return Layer(layer.outputs, layer.width, layer.stride, layer.dilation, layer.activation, "mean", width)


def _windows(weight: Tensor) -> Reals:
    """`(outputs, inputs, width)` as a matrix of windows, `(width * inputs, outputs)`."""
    return _reals(weight.permute(2, 1, 0).flatten(0, 1))


def _reals(values: Tensor) -> Reals:
    found: Reals = values.detach().double().cpu().numpy()
    return found
