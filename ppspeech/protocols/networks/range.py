"""No value of a network leaves the range of its shares, whatever was said: bounds from weights and clipped frames.

What goes into a layer has every number in an interval, and every frame a length of at most r. Then, for a column w of
the matrix over windows of n frames, with bias b and an error of the product of at most e (`crypto.lattice`),

    z  lies in  b + Σ_i w_i [lo_i, hi_i] ± e   and in   b ± (|w| √n r + e),
    |z| <= |W| √n r + |b| + e √outputs         (|W|: the largest singular value)

whichever is narrower; and f(z) where the lines' ends and knots lie, within L |z| + |f(0)| √outputs for the steepest
slope L. A mean is no longer than what it is of; the largest of n frames no longer than √n of them. The public range of
a layer is the next power of two: it tells a few bits of the weights. Theorem 2.19 in docs/theory/asking.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice import EncodedWeights, encode_weights, error_bound
from ppspeech.crypto.shares import text_residues
from ppspeech.errors import ModelError, PpspeechError, RangeError
from ppspeech.protocols.meeting import WORKERS
from ppspeech.protocols.networks.shape import MOST_RANGE, NetworkShape

ROUNDS = 6
GUESS = 6


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """The server's: a network of a public shape.

    `matrices`: `(width * inputs, outputs)` each, window frames in order. `biases`: `(outputs,)` each. `labels`: what
    the outputs are called; the first is the blank's where labels are told, and never looked at; none where scores are
    for what comes after. Raises PpspeechError for parts that do not fit each other, RangeError for values that could
    leave the shape's range.
    """

    shape: NetworkShape
    matrices: tuple[Reals, ...]
    biases: tuple[Reals, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_parts(self)
        needed = ranges(self)
        for number, (layer, bits) in enumerate(zip(self.shape.layers, needed, strict=True)):
            if bits > layer.range_bits:
                raise RangeError(
                    f"values of layer {number + 1} can reach ±2^{bits - 1} where the shape has ±2^"
                    f"{layer.range_bits - 1}: find its ranges by fit_network"
                )

    @cached_property
    def integers(self) -> tuple[Reals, ...]:
        """The weights as products take them, in units of 2^-g: means of the layer before are divided here."""
        found = []
        for number, matrix in enumerate(self.matrices):
            factor = self.shape.layers[number - 1].mean_factor if number else 1.0
            found.append(np.rint(np.ldexp(matrix * factor, self.shape.weight_bits(number))))
        return tuple(found)

    @cached_property
    def rounded(self) -> tuple[Reals, ...]:
        """The same, as the numbers that they stand for."""
        return tuple(np.ldexp(each, -self.shape.weight_bits(number)) for number, each in enumerate(self.integers))

    @cached_property
    def encoded(self) -> tuple[EncodedWeights, ...]:
        """For the products: once for all clients."""
        return tuple(
            encode_weights(self.shape.product(number), each, WORKERS) for number, each in enumerate(self.rounded)
        )

    @cached_property
    def offsets(self) -> tuple[Residues, ...]:
        """The biases as shares hold them."""
        steps = (np.rint(np.ldexp(each, self.shape.fraction)).astype(np.int64) for each in self.biases)
        return tuple(each.view(np.uint64) for each in steps)

    @cached_property
    def texts(self) -> Residues:
        """The labels, `(places, residues)`; the blank has none."""
        told = self.labels[1:] if self.shape.output == "labels" else self.labels
        return text_residues(told, self.shape.label_bytes)

    @cached_property
    def bounds(self) -> tuple[Reals, Reals]:
        """The least and the most that every output can be, whatever was said, errors included, `(outputs,)` each."""
        *_, last = _intervals(self)
        return last.low, last.high

    def scores(self, frames: Reals) -> Reals:
        """The last layer's values in real numbers, with activations by lines, `(frames that come out, labels)`: what
        the shares hold, but for rounding. `frames`: as `NetworkShape.clipped` gives them.
        """
        values = frames
        for layer, matrix, bias in zip(self.shape.layers, self.matrices, self.biases, strict=True):
            values = layer.windows(values) @ matrix + bias
            values = values if layer.lines is None else layer.lines(values)
            pooled = values[: len(values) // layer.pool_width * layer.pool_width]
            pooled = pooled.reshape(-1, layer.pool_width, layer.outputs)
            values = pooled.max(axis=1) if layer.pool == "max" else pooled.mean(axis=1)
        return values


def fit_network(
    shape: NetworkShape, matrices: tuple[Reals, ...], biases: tuple[Reals, ...], labels: tuple[str, ...]
) -> NetworkArrays:
    """The network in the narrowest ranges that hold all its values for certain; those of `shape` are not looked at.

    Raises RangeError where no ring does.
    """
    found = _with_ranges(shape, [GUESS] * len(shape.layers))
    loose = object.__new__(NetworkArrays)
    for _ in range(ROUNDS):  # errors of products, which count, depend on their range
        for name, value in (("shape", found), ("matrices", matrices), ("biases", biases), ("labels", labels)):
            object.__setattr__(loose, name, value)
        _check_parts(loose)
        needed = ranges(loose)
        if needed == [layer.range_bits for layer in found.layers]:
            break
        found = _with_ranges(shape, needed)
    return NetworkArrays(found, matrices, biases, labels)


def ranges(network: NetworkArrays) -> list[int]:
    """The bits R of each layer that hold its values for certain. Raises RangeError for more than there can be."""
    found = []
    for number, each in enumerate(_intervals(network)):
        bits = int(np.floor(np.log2(each.widest * (1 + 1e-9)))) + 2
        if bits > MOST_RANGE:
            raise RangeError(
                f"values of layer {number + 1} can reach {each.widest:,.0f}, and shares hold less than "
                f"2^{MOST_RANGE - 1}: lower the radius of frames, or scale the weights down"
            )
        found.append(max(bits, 2))
    return found


class _Interval(NamedTuple):
    """What every number that comes out of a layer lies in, and the widest that is compared in it."""

    low: Reals
    high: Reals
    widest: float


def _intervals(network: NetworkArrays) -> Iterator[_Interval]:
    """Of each layer, from the first to the last."""
    shape, step = network.shape, 2.0**-network.shape.fraction
    low, high, length = np.full(shape.dimensions, -shape.radius), np.full(shape.dimensions, shape.radius), shape.radius
    for number, (layer, matrix, bias) in enumerate(zip(shape.layers, network.rounded, network.biases, strict=True)):
        lines, root = layer.lines, float(np.sqrt(layer.outputs))
        norm = float(np.abs(matrix).sum(axis=0).max())
        error = error_bound(shape.precision(number), 0.0, norm, len(matrix), layer.outputs).total + 2 * step
        middle, half = np.tile((low + high) / 2, layer.width), np.tile((high - low) / 2, layer.width)
        window = float(np.sqrt(layer.width)) * length
        center, spread = middle @ matrix, half @ np.abs(matrix)
        reach = np.linalg.norm(matrix, axis=0) * window
        low = bias + np.maximum(center - spread, -reach) - error
        high = bias + np.minimum(center + spread, reach) + error
        length = float(np.linalg.norm(matrix, 2)) * window + float(np.linalg.norm(bias)) + root * error
        widest = max(float(high.max()), -float(low.min()))
        if lines is not None:
            widest += lines.furthest
            ends = np.stack([lines(low), lines(high)])
            knots = [np.where((low < at) & (at < high), lines(np.array([at]))[0], ends[0]) for at in lines.knots]
            every = np.stack([*ends, *knots])
            low, high = every.min(axis=0) - step, every.max(axis=0) + step
            length = lines.steepest * length + root * (abs(float(lines(np.zeros(1))[0])) + step)
        if layer.pool == "max":
            length *= float(np.sqrt(layer.pool_width))
        low, high = np.minimum(low, 0) - step, np.maximum(high, 0) + step
        length = min(length + root * step, float(np.linalg.norm(np.maximum(-low, high))))
        if layer.pool == "max" or number == len(shape.layers) - 1:
            widest = max(widest, float(high.max() - low.min()))
        yield _Interval(low, high, widest)


def _with_ranges(shape: NetworkShape, bits: list[int]) -> NetworkShape:
    layers = (replace(layer, range_bits=each) for layer, each in zip(shape.layers, bits, strict=True))
    return replace(shape, layers=tuple(layers))


def _check_parts(network: NetworkArrays) -> None:
    shape = network.shape
    if not len(network.matrices) == len(network.biases) == len(shape.layers):
        raise PpspeechError(f"{len(shape.layers)} layers need as many matrices and biases")
    for number, (matrix, bias) in enumerate(zip(network.matrices, network.biases, strict=True)):
        expected = shape.inner(number), shape.layers[number].outputs
        if matrix.shape != expected or bias.shape != expected[1:]:
            raise PpspeechError(f"layer {number + 1} has a matrix {expected}, got {matrix.shape} and {bias.shape}")
        if not (np.isfinite(matrix).all() and np.isfinite(bias).all()):
            raise ModelError(f"layer {number + 1} has weights that are not finite")
    named = 0 if shape.output == "scores" else shape.labels
    if len(network.labels) != named:
        raise PpspeechError(f"{named} outputs need as many labels, got {len(network.labels)}")
    if named:
        text_residues(network.labels[shape.output == "labels" :], shape.label_bytes)
