"""A public encoder of frames: a small network that whoever speaks runs on its own features, in the clear.

It is a part of the front end, and public as this is: its numbers travel in a bundle's config and in a server's offer,
in a fixed form, and never as code. A frame and its neighbors become

    h_1 = relu(W_1 (x_{t-r}, …, x_{t+r}) + b_1),   h_i = relu(W_i h_{i-1} + b_i),   y = W_n h_{n-1} + b_n;

beyond its ends an utterance goes on as it began and ended.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.errors import AudioError

if TYPE_CHECKING:
    from torch import Tensor

MOST_NUMBERS = 30_000
MOST_LAYERS, MOST_WIDTH, MOST_REACH = 8, 1_024, 32
LARGEST = 1e4


@dataclass(frozen=True)
class PublicEncoder:
    """The network as numbers. Raises AudioError for sizes that are none, too many numbers, or not finite ones.

    Attributes:
        reach: frames on each side that are looked at.
        widths: numbers of a frame, of every layer between, and of what comes out.
        numbers: of every layer its weights, a row an output, then its constants.
    """

    reach: int
    widths: tuple[int, ...]
    numbers: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.widths) <= MOST_LAYERS + 1 or not all(1 <= width <= MOST_WIDTH for width in self.widths):
            raise AudioError(f"an encoder has 1 to {MOST_LAYERS} layers of up to {MOST_WIDTH}, got {self.widths!r:.80}")
        if not 0 <= self.reach <= MOST_REACH:
            raise AudioError(f"an encoder looks at most {MOST_REACH} frames ahead, got {self.reach}")
        wanted = sum(rows * columns + rows for rows, columns in self.shapes)
        if wanted > MOST_NUMBERS or len(self.numbers) != wanted:
            raise AudioError(
                f"these layers have {wanted:,} numbers, got {len(self.numbers):,}; at most {MOST_NUMBERS:,} are taken"
            )
        if not all(math.isfinite(number) and abs(number) <= LARGEST for number in self.numbers):
            raise AudioError(f"the numbers of an encoder are finite, and at most {LARGEST:g}")

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of every layer's weights."""
        first, *others = pairwise(self.widths)
        return ((first[1], first[0] * (2 * self.reach + 1)), *((after, before) for before, after in others))

    @property
    def outputs(self) -> int:
        """Numbers of a frame that come out."""
        return self.widths[-1]

    def layers(self) -> list[tuple[Reals, Reals]]:
        """Weights `(outputs, inputs)` and constants `(outputs,)` of every layer."""
        found, at = [], 0
        for rows, columns in self.shapes:
            size = rows * columns
            numbers = np.array(self.numbers[at : at + size + rows])
            found.append((numbers[:size].reshape(rows, columns), numbers[size:]))
            at += size + rows
        return found

    def encoded(self, frames: Reals) -> Reals:
        """What it makes of one utterance's frames `(frames, inputs)`: `(frames, outputs)`."""
        places = np.arange(len(frames))[:, None] + np.arange(-self.reach, self.reach + 1)
        found: Reals = frames[np.clip(places, 0, len(frames) - 1)].reshape(len(frames), -1)
        for number, (weights, constants) in enumerate(self.layers()):
            if number:
                found = np.maximum(found, 0.0)
            found = found @ weights.T + constants
        return found

    @classmethod
    def of(cls, layers: "Sequence[tuple[Tensor, Tensor]]", inputs: int) -> "PublicEncoder":
        """From weights `(outputs, inputs)` and constants of every layer, rounded to five digits, which are alike on
        every machine; the first layer's inputs are of all frames that it looks at, the earliest first.
        """
        widths = (inputs, *(len(weights) for weights, _ in layers))
        flat = [value for layer in layers for part in layer for value in part.detach().double().flatten().tolist()]
        reach = layers[0][0].shape[1] // inputs // 2
        return cls(reach, widths, tuple(float(f"{value:.5g}") for value in flat))
