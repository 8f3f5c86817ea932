"""A network on frames: its public sizes, and the rings that its values are shared in.

Every layer is a window over frames times a matrix, plus a bias; an activation by lines; a pooling over frames:

    z_t = W [h_{t s}, h_{t s + d}, …, h_{t s + (w - 1) d}] + b,      h'_t = pool f(z)

A linear layer has a window of one frame, a TDNN's has several with a dilation d, a convolution's a stride s too.

Rings. A share of h that the client encrypts is right up to multiples of 2^R, R the bits before the point; times weights
with g bits after the point these become multiples of 2^(R - g), which vanish in a product known modulo 2^(R - g). So
the input of a layer is shared with g bits more than its result. A result has at most 32 bits (`crypto.lattice`). Where
what the next layer takes off fits, a result is shared with so many bits from the start; elsewhere it has as few as it
needs, and is widened after the activation, for one table of two a value (`crypto.shares.widen`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.crypto import Ring, Scale
from ppspeech.crypto.lattice import KEPT_BITS, MatrixPlan, Precision, plan_product
from ppspeech.errors import RangeError
from ppspeech.protocols.networks.lines import ACTIVATIONS, Activation, Polyline, lines_of
from ppspeech.protocols.params import Params

Pool = Literal["none", "mean", "max"]
POOLS: tuple[Pool, ...] = get_args(Pool)
Output = Literal["word", "labels", "scores"]
"""What the client is told: the label of the whole utterance; greedy CTC's, each label where it begins; or nothing, as
scores of all frames stay on shares for what comes after (`protocols.sentences`)."""
OUTPUTS: tuple[Output, ...] = get_args(Output)

MOST = {"frames": 2_000, "dimensions": 2_000, "label_bytes": 252}
MOST_LAYER = {"outputs": 4_096, "width": 100, "stride": 100, "dilation": 100, "pool_width": 2_000}
MOST_LAYERS = 32
MOST_VALUES = 1 << 22
"""Values of a layer that are computed at once."""
MOST_LINES = 1 << 23
"""Knots of a layer's values."""
LEAST_FRACTION, MOST_FRACTION = 4, 12
FIRST_WEIGHT_BITS = 14
"""After the point of the first layer's weights, whose input is no share."""
WEIGHT_BITS = 10
"""After the point of all others."""
MOST_RANGE = 20
MOST_CHAINED = 26
"""Bits of a result that is shared with more than it needs: a reply keeps 32 bits of its residues, and what they are
rounded by, times a ternary secret, must stay below a step."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. `pool_width`: frames that are pooled into one; 1 for none. `range_bits`: R, so that every z, z less a
    knot, and difference of two results, is within ±2^(R - 1) for certain: `range.py` finds it from weights.
    """

    outputs: int
    width: int = 1
    stride: int = 1
    dilation: int = 1
    activation: Activation = "relu"
    pool: Pool = "none"
    pool_width: int = 1
    range_bits: int = 8

    def __post_init__(self) -> None:
        for name, most in MOST_LAYER.items():
            _check_size(name, getattr(self, name), 1, most)
        _check_size("range_bits", self.range_bits, 2, MOST_RANGE)
        if self.activation not in ACTIVATIONS or self.pool not in POOLS:
            raise RangeError(
                f"activations are {', '.join(ACTIVATIONS)}, pools {', '.join(POOLS)}, got {self.activation!r} and "
                f"{self.pool!r}"
            )
        if (self.pool == "none") != (self.pool_width == 1):
            raise RangeError(f"a pool has two frames or more, none has one, got {self.pool} of {self.pool_width}")

    @property
    def lines(self) -> Polyline | None:
        """Its activation."""
        return lines_of(self.activation)

    @property
    def slope_bits(self) -> int:
        """After the point of the activation's slopes: what it takes off a ring."""
        return 0 if self.lines is None else self.lines.fraction

    @property
    def mean_bits(self) -> int:
        """c, so that a mean is a sum over 2^c, and `mean_factor`: what it takes off a ring."""
        return (self.pool_width - 1).bit_length() if self.pool == "mean" else 0

    @property
    def mean_factor(self) -> float:
        """What is left to divide a sum over 2^c by: the next layer's weights do."""
        return 2.0**self.mean_bits / self.pool_width if self.pool == "mean" else 1.0

    def frames_before_pool(self, frames: int) -> int:
        """How many windows so many frames have; 0 or fewer where there is none."""
        return (frames - 1 - (self.width - 1) * self.dilation) // self.stride + 1

    def frames_after(self, frames: int) -> int:
        """How many frames come out; those that fill no pool are left."""
        return self.frames_before_pool(frames) // self.pool_width

    def windows(self, values: NDArray[Any]) -> NDArray[Any]:
        """The frames of every window side by side: `(frames, numbers)` to `(windows, width * numbers)`."""
        starts = np.arange(self.frames_before_pool(len(values))) * self.stride
        index = starts[:, None] + np.arange(self.width) * self.dilation
        return np.ascontiguousarray(values[index].reshape(len(starts), -1))


@dataclass(frozen=True, slots=True)
class NetworkShape(Params):
    """Sizes and ranges: nothing here depends on a voice.

    Attributes:
        frames: what every utterance is padded to, with frames of zeros.
        dimensions: numbers of a frame.
        layers: the last has an output a label, and no activation.
        output: `word`, one label; `labels`, of which the first is the blank and never told; or `scores`, none.
        radius: bound on a frame's length; longer ones are shortened to it.
        fraction: bits of a share after the point.
        label_bytes: every label is padded to this.

    Raises RangeError for sizes that this party does not agree to, or values that no ring holds for certain.
    """

    WHAT: ClassVar[str] = "networks"

    frames: int
    dimensions: int
    layers: tuple[Layer, ...]
    output: Output = "word"
    radius: float = 16.0
    fraction: int = 7
    label_bytes: int = 28

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            _check_size(name, getattr(self, name), 1, most)
        _check_size("fraction", self.fraction, LEAST_FRACTION, MOST_FRACTION)
        if isinstance(self.radius, bool) or not isinstance(self.radius, int | float) or not 0 < self.radius <= 1_000:
            raise RangeError(f"the radius must lie in (0, 1000], got {self.radius!r}")
        if self.output not in OUTPUTS:
            raise RangeError(f"an output is one of {', '.join(OUTPUTS)}, got {self.output!r}")
        if not 1 <= len(self.layers) <= MOST_LAYERS or not all(isinstance(each, Layer) for each in self.layers):
            raise RangeError(f"a network has 1 to {MOST_LAYERS} layers, got {len(self.layers)}")
        if self.layers[-1].activation != "none" or self.layers[-1].outputs < 2:
            raise RangeError(f"the last layer has no activation, and two labels or more, got {self.layers[-1]}")
        frames = self.frames
        for layer in self.layers:
            values, frames = layer.frames_before_pool(frames) * layer.outputs, layer.frames_after(frames)
            if frames < 1:
                raise RangeError(f"{self.frames} frames are too few for {layer}: nothing comes out")
            if values > MOST_VALUES or values * len(layer.lines.knots if layer.lines else ()) > MOST_LINES:
                raise RangeError(f"a layer computes {values:,} values at once, too many: use fewer frames or outputs")
        if self.output == "word" and frames != 1:
            raise RangeError(f"a word needs one frame in the end, got {frames}: pool all of them")
        for number in range(len(self.layers)):
            self.precision(number)  # refuses what a product cannot hold

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """What a peer proposes, checked."""
        try:
            return cls(**{**params, "layers": tuple(Layer(**each) for each in params["layers"])})
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise RangeError(f"not the shape of {cls.WHAT}: {error}") from None

    @property
    def rings(self) -> "Rings":
        """How the values of every layer are shared."""
        return _rings(self)

    @property
    def labels(self) -> int:
        """How many."""
        return self.layers[-1].outputs

    @property
    def load(self) -> int:
        """Bits of a label's place; 0 is nobody's, or the blank's."""
        return (self.labels - (self.output == "labels")).bit_length()

    @property
    def span(self) -> tuple[int, int]:
        """Frames that one which comes out looks at, and how many it is after the one before."""
        span, stride = 1, 1
        for layer in self.layers:
            span += ((layer.width - 1) * layer.dilation + (layer.pool_width - 1) * layer.stride) * stride
            stride *= layer.stride * layer.pool_width
        return span, stride

    @property
    def told(self) -> int:
        """Labels that the client is told at the most: none, one, or one a frame that comes out."""
        return 0 if self.output == "scores" else self.frames_of(len(self.layers))

    @property
    def answer_bits(self) -> int:
        """What an answer tells at the most."""
        return self.told * self.load

    @property
    def weights(self) -> int:
        """Numbers of all matrices."""
        return sum(self.inner(number) * layer.outputs for number, layer in enumerate(self.layers))

    def frames_of(self, number: int) -> int:
        """Frames that go into a layer; those that come out of all for the number after the last."""
        frames = self.frames
        for layer in self.layers[:number]:
            frames = layer.frames_after(frames)
        return frames

    def rows(self, number: int) -> int:
        """Windows of a layer."""
        return self.layers[number].frames_before_pool(self.frames_of(number))

    def inner(self, number: int) -> int:
        """Numbers of a window."""
        return self.layers[number].width * (self.layers[number - 1].outputs if number else self.dimensions)

    def weight_bits(self, number: int) -> int:
        """g, after the point of a layer's weights."""
        return WEIGHT_BITS if number else FIRST_WEIGHT_BITS

    def precision(self, number: int) -> Precision:
        """Of a layer's product."""
        rings, bits = self.rings, self.weight_bits(number)
        limit = float(self.radius)
        if number:  # a share: up to half of its ring, less a step, so that it lies within half of the prime
            limit = float(2 ** (rings.inputs[number] - 1) - 1) * 2.0**-self.fraction
        return Precision(limit=limit, weights=Scale(40, bits), result=Scale(rings.results[number], self.fraction))

    def product(self, number: int) -> MatrixPlan:
        """A layer's windows by its matrix."""
        return _product(self, number)

    def signs(self, number: int) -> Ring:
        """That holds a layer's z less a knot, and differences of its results."""
        return Ring(self.layers[number].range_bits + self.fraction)

    def clipped(self, frames: Reals) -> Reals:
        """An utterance `(frames, dimensions)` within the radius, and padded. Raises RangeError for one that is too
        long, empty, of other dimensions or not finite.
        """
        given = np.asarray(frames, np.float64)
        if given.ndim != 2 or given.shape[1] != self.dimensions or not np.isfinite(given).all():
            raise RangeError(f"frames are finite and have {self.dimensions} numbers each, got shape {given.shape}")
        if not 1 <= len(given) <= self.frames:
            raise RangeError(f"an utterance has 1 to {self.frames} frames here, got {len(given)}")
        norm = np.linalg.norm(given, axis=1, keepdims=True)
        padded = np.zeros((self.frames, self.dimensions))
        padded[: len(given)] = given * (self.radius / np.maximum(norm, self.radius))
        return padded.clip(-self.radius, self.radius)


@dataclass(frozen=True, slots=True)
class Rings:
    """Bits of rings, a number a layer. `inputs`: of what goes into it, 0 for the first. `results`: of its product."""

    inputs: tuple[int, ...]
    results: tuple[int, ...]


@lru_cache(maxsize=256)
def _rings(shape: NetworkShape) -> Rings:
    """From the last layer back to the first. Raises RangeError where a layer fits in no ring."""
    layers, fraction = shape.layers, shape.fraction
    inputs, results = [0] * len(layers), [0] * len(layers)
    for number in reversed(range(len(layers))):
        layer = layers[number]
        off = layer.slope_bits + layer.mean_bits
        results[number] = layer.range_bits + fraction + off + 1
        if number + 1 < len(layers):
            chained = inputs[number + 1] + off
            if results[number] <= chained <= MOST_CHAINED:
                results[number] = chained
        if results[number] > KEPT_BITS:
            raise RangeError(
                f"values of layer {number + 1} within ±2^{layer.range_bits - 1} need {results[number]} bits with "
                f"{fraction} after the point, and a product has {KEPT_BITS}: lower the radius, scale the weights down, "
                "or pool fewer frames"
            )
        inputs[number] = results[number] + shape.weight_bits(number) if number else 0
    return Rings(tuple(inputs), tuple(results))


@lru_cache(maxsize=256)
def _product(shape: NetworkShape, number: int) -> MatrixPlan:
    outputs = shape.layers[number].outputs
    return plan_product(shape.rows(number), shape.inner(number), outputs, shape.precision(number))


def _check_size(name: str, given: Any, least: int, most: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise RangeError(f"{name} must lie in {least}..{most}, got {given!r}")
