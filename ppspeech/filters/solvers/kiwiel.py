"""Algorithm 1 of Hamm 2015: Kiwiel's method of linearization for continuous minimax problems (Kiwiel 1987).

The function to minimize is Phi(u) = max_v f1(u, v) + min_w f2(u, w). For the classic min-max problem f2 does not
depend on w; the minimax filter has both, because it is a difference of two max functions. At a point u, along q,
each f is replaced by f(u, .) + <grad_u f(u, .), q> (eq. 13), and the step solves

    min over q of   max_v f1^l(q, v) + min_w f2^l(q, w) + |q|^2 / (2 tau)       (eq. 14).

The maximum is built up from cuts, one for each v that was a maximizer on the way, merged into one aggregate cut
(p, theta) as Kiwiel does. The minimum is concave in q; it is replaced by its newest piece, which lies above it and
touches it at the last q (convex-concave procedure). Then a line search on the true Phi.

Deviations from the paper: the weight 1 / tau of |q|^2 is 1 there. The maximum over all v of a linearized logistic loss
is infinite (the paper assumes that v is bounded); here it is the local maximum that the best response moves to, and tau
shrinks until that exists. As such a q can be far shorter than Phi allows, the line search may also lengthen it.
Proposition 4.3 and Correction 4.4 in docs/theory/filters.md.
"""

import math
from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor

from ppspeech.errors import ModelError


class Point(Protocol):
    """Phi at some u."""

    @property
    def u(self) -> Tensor:
        """Where, `(size,)`."""

    @property
    def value(self) -> Tensor:
        """Phi(u), a tensor of no dimensions."""


At = TypeVar("At", bound=Point)


@dataclass(frozen=True, eq=False)
class Piece:
    """f1 and f2 at u for some v and w: values of no dimensions, gradients by u `(size,)`."""

    max_value: Tensor
    max_gradient: Tensor
    min_value: Tensor
    min_gradient: Tensor


class MinimaxFunction(Protocol[At]):
    """What Algorithm 1 is given function pointers to."""

    def evaluate(self, u: Tensor, near: At | None) -> At:
        """Solve for Phi(u), starting near what was found at `near`."""

    def piece(self, at: At) -> Piece:
        """f1 and f2 at the best responses; its two gradients sum to that of Phi."""

    def linearized(self, at: At, q: Tensor) -> tuple[Tensor, Piece] | None:
        """Phi^l(q), and the piece of the responses to q; None if q is too long for there to be one."""


@dataclass(frozen=True)
class KiwielOptions:
    """The constants of the method."""

    accuracy: float = 1e-6  # xi > 0: stop when |p|^2 + Phi - theta, the promise at tau = 1, is no larger by 1 + |Phi|
    enough: float = 1e-4  # c in (0, 1): the share of the promised decrease that a step must keep
    quality: float = 0.1  # m in (0, 1): the share that the linearized Phi must keep for a direction to be taken
    cuts: int = 5  # directions tried in one iteration (T_aux of the paper)
    halvings: int = 40  # of a step, at most

    def __post_init__(self) -> None:
        if not self.accuracy > 0 or not 0 < self.enough < self.quality < 1 or self.cuts < 1 or self.halvings < 1:
            raise ModelError(f"need accuracy > 0, 0 < enough < quality < 1 and cuts, halvings >= 1, got {self}")


@dataclass(frozen=True)
class Descent:
    """How Algorithm 1 ended."""

    history: tuple[float, ...]  # Phi at the start and after every iteration; it never goes up
    promised: float  # the decrease that the last model of Phi promises at tau = 1 (-Psi of the paper)
    converged: bool  # it is no more than `accuracy`


@dataclass(frozen=True, eq=False)
class _Direction:
    q: Tensor
    promised: Tensor
    stationarity: Tensor
    tau: float


def descend(
    function: MinimaxFunction[At], u: Tensor, iterations: int, options: KiwielOptions | None = None, tau: float = 1.0
) -> tuple[At, Descent]:
    """Minimize Phi from u, with `tau` > 0 the first step scale; the last point and how it ended."""
    if iterations < 1 or not tau > 0:
        raise ModelError(f"iterations must be >= 1 and tau > 0, got {iterations} and {tau}")
    options = options or KiwielOptions()
    here = function.evaluate(u, None)
    history = [float(here.value)]
    reach = 1.0
    while True:
        aim = _direction(function, here, tau, options)
        promised = float(aim.stationarity) if aim else math.nan
        converged = promised <= options.accuracy * (1 + abs(history[-1]))
        if aim is None or converged or len(history) > iterations:
            return here, Descent(tuple(history), promised, converged)
        step = _line_search(function, here, aim, reach, options)
        if step is None:  # rounding is all that is left
            return here, Descent(tuple(history), promised, False)
        here, reach = step
        shrunk = aim.tau < tau
        tau = aim.tau if shrunk else 2 * min(1.0, reach) * aim.tau
        history.append(float(here.value))


def _line_search(
    function: MinimaxFunction[At], here: At, aim: _Direction, reach: float, options: KiwielOptions
) -> tuple[At, float] | None:
    """The point along q and how many times q it is: halved until Phi falls enough, or doubled while it falls on."""

    def reached(by: float, near: At) -> tuple[At, bool]:
        there = function.evaluate(here.u + by * aim.q, near)
        return there, bool(there.value - here.value <= -options.enough * by * aim.promised)

    there, enough = reached(reach, here)
    if not enough:
        for _ in range(options.halvings):
            reach /= 2
            there, enough = reached(reach, here)
            if enough:
                return there, reach
        return None
    for _ in range(options.halvings):
        further, enough = reached(2 * reach, there)
        if not enough or further.value >= there.value:
            break
        there, reach = further, 2 * reach
    return there, reach


def _direction(function: MinimaxFunction[At], here: At, tau: float, options: KiwielOptions) -> _Direction | None:
    """Kiwiel's auxiliary algorithm, with tau halved while the linearized problem has no solution."""
    first = function.piece(here)
    for _ in range(options.halvings):
        found = _auxiliary(function, here, first, tau, options)
        if found is not None:
            return found
        tau /= 2
    return None


def _auxiliary(
    function: MinimaxFunction[At], here: At, first: Piece, tau: float, options: KiwielOptions
) -> _Direction | None:
    """The direction of the step for one tau; None if the linearized problem has no solution along the way."""
    # Both parts of the constant that f1 and f2 share stay in theta and Phi alike, and cancel.
    steepest = first.max_gradient + first.min_gradient
    cut, theta = first.max_gradient, first.max_value
    low, low_value = first.min_gradient, first.min_value
    for remaining in reversed(range(options.cuts)):
        p = cut + low
        square, below = p.square().sum(), here.value - theta - low_value
        promised = tau * square + below
        descends = (steepest * p).sum() >= 0.1 * steepest.norm() * p.norm()
        if not descends:
            # The newest piece of the minimum was too hopeful: the steepest direction always descends.
            square = steepest.square().sum()
            return _Direction(-tau * steepest, tau * square, square, tau)
        if square + below <= options.accuracy * (1 + here.value.abs()) or remaining == 0:
            break
        answer = function.linearized(here, -tau * p)
        if answer is None:
            return None
        value, piece = answer
        if here.value - value >= options.quality * promised:
            break
        low, low_value = piece.min_gradient, piece.min_value
        turn = piece.max_gradient - cut
        gain = piece.max_value - theta - tau * (turn * (cut + low)).sum()
        share = (gain / (tau * turn.square().sum()).clamp_min(1e-300)).clamp(0, 1)
        cut, theta = cut + share * turn, theta + share * (piece.max_value - theta)
    return _Direction(-tau * p, promised, square + below, tau)
