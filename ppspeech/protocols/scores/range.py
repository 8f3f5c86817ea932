"""Why no score ever leaves its ring: bounds that hold for every voice, every order and every structure of states.

Shares mod 2^k with f bits after the point tell two scores apart while these differ by less than 2^(k - 1 - f) nats;
beyond, the greater one looks like the smaller. So before anything is compared, what a frame scores in a state (ln of
staying there included) is brought into [-F, 0]: the server takes off a constant that no score exceeds, and what is
below -F counts as -F (`at_least`, on shares), or cannot be below for any frame within the public limit and radius of
features (`frame_bounds`), in which case nothing needs to be done. Then, with

    T frames, C components, M moves, S states, u = 2^(1 - f) for rounding, R = -RAREST,
    A = R (1 + most moves that a path makes),      moves of a chain: min(S, T) - 1, of other structures T - 1,
    n = how many operations lie on one another, 0 for Viterbi,

1. A path's score is T scores of frames, a beginning and some moves. A beginning or move counts relative to staying in
   the state that it leads to, both of them in [-R, 0], so its magnitude is at most R, and that of staying is 0: every
   path lies in [-T F - A - T u, A + T u], with the rounding of frames and moves.
2. A maximum is exact. A log-add gives max - 1 to max + 1 (`log_add`: at most ln 2 and a rounding above, an eighth of a
   nat below). So a score of paths lies within n nats of the best of them, n = T (M - 1 + ⌈log2 C⌉) for steps and
   components, + ⌈log2 ends⌉; and where steps take L <= 8 frames, + min(S, T) (M + 3): whoever enters a state is joined
   with others M - 1 times, as often as log2 L, and once every L frames that it stays.
3. On shares, while speaking, in a circuit, the words at the end, the garbage model (a path of one state): two scores of
   utterances up to the same frame are compared, so they differ by at most T F + 2 A + 2 n + 2 T u.
4. A state that no path has reached counts as -(T F + A + n + T u + 16): 16 below every path, so that it wins against
   none and adds nothing to a log-add (whose table ends 4 nats away), and no further from any of them than in 3., + 32.

A shape (`WordShape`) is refused unless 2^(k - 1 - f) is at least T F + 2 A + 2 n + 2 T u + 32 nats, and word models
(`WordArrays`) unless their scores are what the shape says. Both are checked where they are made, so on either side.
Theorem 2.16 in docs/theory/asking.md.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.protocols.scores.monomials import Terms, weight_forms

if TYPE_CHECKING:
    from ppspeech.protocols.scores.states import WordShape

RAREST = -100.0  # ln of the rarest transition: what is rarer, or impossible, counts as this rare
APART = 16.0  # nats between what no path has reached and any path


def path_slack(shape: "WordShape") -> float:
    """A + n + T u: how far beyond its frames' scores, either way, a score of paths can lie."""
    frames, monotone = shape.frames, shape.moves[0] >= 0
    moves = min(shape.states, frames) - 1 if monotone else frames - 1
    return -RAREST * (1 + moves) + _operations(shape) + frames * 2.0 ** (1 - shape.fraction)


def most_apart(shape: "WordShape") -> float:
    """The nats that two scores which are compared can differ by; `shape.scale.bound` is what they may."""
    return shape.frames * shape.depth + 2 * (path_slack(shape) + APART)


def deepest_floor(shape: "WordShape") -> int:
    """The most nats, F, that a frame's score may lie below 0 in the shape's ring; less than 1 where it holds none."""
    room = shape.scale.bound - 2 * (path_slack(shape) + APART)
    return math.floor(room / shape.frames)


def unreached(shape: "WordShape") -> float:
    """What stands for a state that no path has reached."""
    return -(shape.frames * shape.depth + path_slack(shape) + APART)


def needed_bits(shape: "WordShape", depth: int) -> int:
    """Of shares, for scores of frames down to so many nats below 0."""
    return 1 + shape.fraction + math.ceil(math.log2(shape.frames * depth + 2 * (path_slack(shape) + APART)))


def _operations(shape: "WordShape") -> int:
    if shape.operation == "viterbi":
        return 0
    moves, entered = len(shape.moves), min(shape.states, shape.frames)
    ahead = entered * (moves + 3) if shape.moves[0] == 0 else 0
    return shape.frames * (moves - 1 + _levels(shape.components)) + ahead + _levels(len(shape.ends))


def _levels(count: int) -> int:
    """Of a tree over so many."""
    return (count - 1).bit_length()


def column_bounds(weights: Reals, terms: Terms, limit: float) -> tuple[Reals, Reals]:
    """The least and the greatest that each column, of weights `(monomials, columns)`, can score for features within
    the limit; `(columns,)` each. Certain, not always reached.

    Two bounds each, and the closer one holds. By magnitudes: the constant, and every other weight times its monomial at
    the limit (a square is never negative). By the form c + b'x + x'Q x: x'Q x is between |x|² <= d limit² times the
    ends of Q's spectrum and 0; and where Q is negative definite, as that of a density, it peaks at c - b'Q⁻¹b / 4.
    """
    if terms == "linear":
        return _around(weights[-1], limit * np.abs(weights[:-1]).sum(axis=0))
    forms = weight_forms(weights, terms)
    d = forms.shape[-1] - 1
    quadratic, linear, constant = forms[:, :d, :d], 2 * forms[:, :d, d], forms[:, d, d]
    side = limit * np.abs(linear).sum(axis=1)
    squares = limit**2 * np.diagonal(quadratic, axis1=1, axis2=2)
    crossed = limit**2 * (np.abs(quadratic).sum(axis=(1, 2)) - np.abs(squares / limit**2).sum(axis=1))
    spectrum = np.linalg.eigvalsh(quadratic)
    longest = d * limit**2
    below = np.maximum(np.minimum(squares, 0).sum(axis=1) - crossed, longest * np.minimum(spectrum[:, 0], 0))
    above = np.minimum(np.maximum(squares, 0).sum(axis=1) + crossed, longest * np.maximum(spectrum[:, -1], 0))
    highest = constant + side + above
    peaked = spectrum[:, -1] < -1e-9 * np.abs(spectrum[:, 0])
    if peaked.any():
        top = np.linalg.solve(quadratic[peaked], linear[peaked][..., None])[..., 0]
        peak = constant[peaked] - (linear[peaked] * top).sum(axis=1) / 4
        highest[peaked] = np.minimum(highest[peaked], peak)
    return constant - side + below, highest


def ball_bounds(weights: Reals, terms: Terms, radius: float) -> tuple[Reals, Reals]:
    """As `column_bounds`, for features within |x| <= radius.

    By duality, for any μ that makes Q + μ positive definite, c + b'x + x'Q x is at least c - b'(Q + μ)⁻¹b / 4 - μ r² in
    the ball; the best μ makes it the least value itself. So whatever μ the search ends at, the bound is certain.
    """
    if terms == "linear":
        return _around(weights[-1], radius * np.linalg.norm(weights[:-1], axis=0))
    forms = weight_forms(weights, terms)
    d = forms.shape[-1] - 1
    spectrum, axes = np.linalg.eigh(forms[:, :d, :d])
    squared = (2 * np.einsum("cij,ci->cj", axes, forms[:, :d, d])) ** 2
    constant = forms[:, d, d]
    lowest = constant + _least_in_ball(spectrum, squared, radius)
    highest = constant - _least_in_ball(-spectrum[:, ::-1], squared[:, ::-1], radius)
    return lowest, highest


def _around(middle: Reals, reach: Reals) -> tuple[Reals, Reals]:
    return middle - reach, middle + reach


def frame_bounds(weights: Reals, terms: Terms, limit: float, radius: float | None) -> tuple[Reals, Reals]:
    """The least and the greatest that each column, of weights `(monomials, columns)`, can score for frames whose
    numbers are within the limit and, where there is one, whose length is within the radius; `(columns,)` each. Certain.
    """
    low, high = column_bounds(weights, terms, limit)
    if radius is None:
        return low, high
    least, greatest = ball_bounds(weights, terms, radius)
    return np.maximum(least, low), np.minimum(greatest, high)


def most_monomials(numbers: int, terms: Terms, limit: float, radius: float | None) -> float:
    """The largest sum of magnitudes that the monomials of such a frame, of so many numbers, can have."""
    longest = limit * numbers**0.5 if radius is None else min(radius, limit * numbers**0.5)
    first = min(longest * numbers**0.5, limit * numbers)
    squares = {"linear": 0.0, "diagonal": longest**2, "full": (longest**2 + first**2) / 2}[terms]
    return float(squares + first + 1)


def _least_in_ball(spectrum: Reals, squared: Reals, radius: float) -> Reals:
    """A lower bound on Σ λ_i y_i² + g_i y_i within the ball, of ascending λ and g_i²; `(columns,)`."""
    floor = np.maximum(0.0, -spectrum[:, 0])
    size = np.sqrt(squared.sum(axis=1))
    low, high = floor, floor + size / (2 * radius) + 1e-9 * (1 + np.abs(spectrum).max(axis=1))
    for _ in range(100):  # the norm of the solution falls with μ: it is the radius between low and high
        middle = (low + high) / 2
        norm = np.sqrt((squared / (2 * (spectrum + middle[:, None]).clip(1e-150)) ** 2).sum(axis=1))
        outside = norm > radius
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    shifted = (spectrum + high[:, None]).clip(1e-300)
    inside = squared / (4 * shifted)
    dual: Reals = -np.where(squared > 0, inside, 0.0).sum(axis=1) - high * radius**2
    return dual


def within_ball(frames: Reals, radius: float) -> Reals:
    """Frames `(count, d)`, those beyond the radius brought to it."""
    norms = np.linalg.norm(frames, axis=1, keepdims=True)
    shrunk: Reals = frames * np.minimum(1.0, radius / np.maximum(norms, radius))
    return shrunk
