"""Minimax filters: Kiwiel's algorithm beside the same in numpy with explicit Jacobians, and how its time grows.

Both sides run the same iterations of Algorithms 1 and 2 of Hamm 2015 on UCI HAR (activity against subject, linear
filter) from the same start, PCA, in 64 bit on one thread, and must end at the same Phi. The peer is written as the
author's code is described: inner problems by L-BFGS (scipy), from the last solution, with explicit first and
second derivatives in numpy, class by class; d2f/du dv is a matrix. That matrix is most of its time, so a second peer
does without: it only ever multiplies by it, which is more than the paper does. Ours also pays for the convergence test
at the end, a direction that the peers do not look for.

Needs the table har.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from ppspeech.data.tables import load_har
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import threads
from ppspeech.figures import Figure
from ppspeech.filters import ClassTask, FlatFilter, LinearFilter, MinimaxProblem, Scaling, principal_directions
from ppspeech.filters.solvers import Joint, KiwielOptions, descend

Array = NDArray[np.float64]

RHO = 10.0
RIDGE = 1e-6  # of the opponents, as in the paper
FILTER_RIDGE = 1e-6
TOLERANCE = 1e-6  # on the gradient of inner problems: its norm for us, its largest entry for L-BFGS
TAU = 2e-5  # so short that no direction is refused: the peer has no test for that
AUXILIARY = 200  # L-BFGS iterations of the peer's linearized problems at most, which spares it time
SAME = 5e-4  # how far apart the two Phi may end, relative to 1 + |Phi|: inner problems end at a tolerance
FEATURES = 20
SUBJECTS = 15


@BENCHES.register("filters")
def run(quick: bool) -> list[Figure]:
    """Measure both sides in turn, then ours at other sizes; `quick` takes fewer rows, subjects and iterations."""
    with threads(1):
        if quick:
            return _beside_numpy(_game(400, FEATURES, 5), 1, 1) + _growth(600, 2)
        return _beside_numpy(_game(1200, FEATURES, SUBJECTS), 1, 3) + _growth(1200, 1)


def _beside_numpy(game: "_Game", iterations: int, repeats: int) -> list[Figure]:
    """The speed-up, the times and the values of Phi after the same iterations."""
    _Ours(game).run(iterations)  # to warm up
    seconds, value = min(_timed(lambda: _Ours(game).run(iterations)) for _ in range(repeats))
    note = (
        f"HAR, {len(game.x)} rows x {game.x.shape[1]} to {len(game.start)}, {int(game.subject.max()) + 1} subjects, "
        f"iterations: {iterations}, from PCA; CPU seconds of one thread, ours the best of {repeats}, the peer's of one"
    )
    times, values = [], []
    for jacobians, metric, peer in (
        (True, "filters.kiwiel.s", "numpy + scipy"),
        (False, "filters.kiwiel.without_jacobians_s", "numpy + scipy, products in place of Jacobians"),
    ):
        peer_seconds, peer_value = _timed(lambda on=jacobians: _Explicit(game, on).run(iterations))  # type: ignore[misc]
        if abs(value - peer_value) > SAME * (1 + abs(value)):
            raise PpspeechError(f"Phi ends at {value} for us and {peer_value} for {peer}; no figure can be trusted")
        times.append(Figure.less(metric, seconds, "s", peer, peer_seconds, note))
        values.append(Figure("filters.kiwiel.phi", value, "", peer, peer_value, note="after the same iterations"))
    ratio = times[0].ratio
    assert ratio is not None
    return [Figure("filters.kiwiel.speedup_vs_numpy", ratio, "x", note=note), *times, values[0]]


def _growth(rows: int, every: int) -> list[Figure]:
    """CPU seconds of one iteration, one of samples, dimension and subjects changed at a time; `every` 2: no middle."""
    sizes = {
        "samples": [(factor * rows // 2, FEATURES, SUBJECTS) for factor in (1, 2, 4)],
        "dimension": [(rows, features, SUBJECTS) for features in (10, FEATURES, 50)],
        "subjects": [(rows, FEATURES, subjects) for subjects in (5, SUBJECTS, 30)],
    }
    note = f"one iteration from PCA; the other sizes are {rows} samples, d = {FEATURES}, {SUBJECTS} subjects"
    figures = []
    for index, (what, series) in enumerate(sizes.items()):
        for size in series[::every]:
            seconds, _ = _timed(partial(_Ours(_game(*size)).run, 1))
            figures.append(Figure(f"filters.kiwiel.by_{what}.{size[index]}_s", seconds, "s", note=note))
    return figures


def _timed(work: Callable[[], float]) -> tuple[float, float]:
    """CPU seconds, and what the work gives."""
    start = process_time()
    value = work()
    return process_time() - start, value


@dataclass(frozen=True, eq=False)
class _Game:
    x: torch.Tensor
    subject: torch.Tensor
    activity: torch.Tensor
    start: torch.Tensor


def _game(rows: int, features: int, subjects: int) -> _Game:
    """Rows of the first subjects, evenly taken, and a start that both sides share."""
    table = load_har()
    assert table.groups is not None
    table = table.select(table.groups <= subjects)
    assert table.groups is not None
    table = table.select(torch.linspace(0, len(table) - 1, rows).long())
    assert table.groups is not None
    x = Scaling(table.features)(table.features)
    weight = principal_directions(x, x, x, features)
    weight = weight / (x @ weight.mT).std(0, correction=0).unsqueeze(-1)
    return _Game(x, table.groups - 1, table.labels, weight)


class _Ours:
    """Kiwiel's algorithm as `solve_kiwiel` runs it."""

    def __init__(self, game: _Game) -> None:
        private = ClassTask(game.subject, int(game.subject.max()) + 1, RIDGE)
        self.problem = MinimaxProblem(game.x, [private], [ClassTask(game.activity, 6, RIDGE)], RHO, FILTER_RIDGE)
        self.flat = FlatFilter(LinearFilter.of(game.start))

    def run(self, iterations: int) -> float:
        """Phi after so many iterations from the start."""
        joint = Joint(self.problem, self.flat, TOLERANCE)
        _, descent = descend(joint, self.flat.vector(), iterations, KiwielOptions(), TAU)
        return descent.history[-1]


class _Explicit:
    """The same iterations in numpy: u is the weight `(d, D)` laid out in a vector, v is `(classes, d + 1)`.

    With `jacobians` it forms d2f/du dv, as the paper's code does; without, only its products with q.
    """

    def __init__(self, game: _Game, jacobians: bool = True) -> None:
        self.x = game.x.numpy()
        self.start = game.start.numpy()
        self.sides = [(game.subject.numpy(), int(game.subject.max()) + 1), (game.activity.numpy(), 6)]
        self.signs = [-1.0, RHO]
        self.jacobians = jacobians

    def run(self, iterations: int) -> float:
        """Phi after so many iterations from the start."""
        options = KiwielOptions()
        u, tau, reach = self.start.flatten(), TAU, 1.0
        models = [np.zeros((classes, self.start.shape[0] + 1)) for _, classes in self.sides]
        phi, models = self._phi(u, models)
        for _ in range(iterations):
            q, promised = self._direction(u, phi, models, tau, options)
            there, moved = self._phi(u + reach * q, models)
            if there - phi > -options.enough * reach * promised:
                while there - phi > -options.enough * reach * promised:
                    reach /= 2
                    there, moved = self._phi(u + reach * q, models)
            else:
                while True:
                    further, answers = self._phi(u + 2 * reach * q, moved)
                    if further - phi > -options.enough * 2 * reach * promised or further >= there:
                        break
                    there, moved, reach = further, answers, 2 * reach
            u, phi, models, tau = u + reach * q, there, moved, 2 * min(1.0, reach) * tau
        return phi

    def _direction(
        self, u: Array, phi: float, models: list[Array], tau: float, options: KiwielOptions
    ) -> tuple[Array, float]:
        """The auxiliary algorithm: cuts of the adversary are merged, the aggregator's newest piece is taken."""
        (theta, cut), (low_value, low) = self._pieces(u, models)
        steepest = cut + low
        for remaining in reversed(range(options.cuts)):
            p = cut + low
            promised = tau * p @ p + phi - theta - low_value
            if steepest @ p < 0.1 * np.linalg.norm(steepest) * np.linalg.norm(p):
                return -tau * steepest, float(tau * steepest @ steepest)
            if remaining == 0:
                break
            value, answers = self._linearized(u, -tau * p, models)
            if phi - value >= options.quality * promised:
                break
            (new_value, new), (low_value, low) = self._pieces(u, answers)
            turn = new - cut
            gain = new_value - theta - float(tau * turn @ (cut + low))
            share = min(max(gain / float(tau * turn @ turn), 0.0), 1.0)
            cut, theta = cut + share * turn, theta + share * (new_value - theta)
        return -tau * p, float(promised)

    def _phi(self, u: Array, models: list[Array]) -> tuple[float, list[Array]]:
        g = self._features(u)
        total, found = FILTER_RIDGE / 2 * u @ u, []
        for sign, (labels, _), start in zip(self.signs, self.sides, models, strict=True):
            value, best = _minimize(partial(_loss, g=g, labels=labels), start)
            total += sign * value
            found.append(best)
        return float(total), found

    def _linearized(self, u: Array, q: Array, models: list[Array]) -> tuple[float, list[Array]]:
        """Phi^l(q) and its inner problems' solutions."""
        g, moved = self._features(u), self._features(q)
        total, found = FILTER_RIDGE * (u @ u / 2 + u @ q), []
        for sign, (labels, _), start in zip(self.signs, self.sides, models, strict=True):

            def objective(v: Array, labels: NDArray[np.int64] = labels) -> tuple[float, Array]:
                value, slope = _loss(v, g, labels)
                if self.jacobians:
                    mixed = (self._mixed(v, g, labels).T @ q).reshape(v.shape)
                else:
                    mixed = _mixed_product(v, g, moved, labels)
                return value + float(self._by_u(v, g, labels) @ q), slope + mixed

            value, best = _minimize(objective, start, AUXILIARY)
            total += sign * value
            found.append(best)
        return float(total), found

    def _pieces(self, u: Array, models: list[Array]) -> list[tuple[float, Array]]:
        """f_priv and rho f_util with their gradients by u; the ridge on u goes with the latter."""
        g = self._features(u)
        private, (value, gradient) = (
            (sign * _loss(v, g, labels)[0], sign * self._by_u(v, g, labels))
            for sign, (labels, _), v in zip(self.signs, self.sides, models, strict=True)
        )
        return [private, (value + FILTER_RIDGE / 2 * float(u @ u), gradient + FILTER_RIDGE * u)]

    def _features(self, u: Array) -> Array:
        return self.x @ u.reshape(self.start.shape).T

    def _by_u(self, v: Array, g: Array, labels: NDArray[np.int64]) -> Array:
        """The gradient of the loss by u."""
        slopes = _shares(v, g)
        slopes[np.arange(len(g)), labels] -= 1
        return np.asarray((slopes @ v[:, :-1]).T @ self.x / len(g)).flatten()

    def _mixed(self, v: Array, g: Array, labels: NDArray[np.int64]) -> Array:
        """d2f / du dv as a matrix, `(size of u, size of v)`, one class of v at a time."""
        classes, size = len(v), g.shape[1]
        shares = _shares(v, g)
        wide = np.c_[g, np.ones(len(g))]
        mean = shares @ v[:, :-1]
        by_u = np.empty((size, self.x.shape[1], classes, size + 1))
        for k in range(classes):
            second = (v[k, :-1] - mean)[:, :, None] * (shares[:, k, None] * wide)[:, None, :]
            second[:, np.arange(size), np.arange(size)] += (shares[:, k] - (labels == k))[:, None]
            by_u[:, :, k] = np.einsum("nD,nde->dDe", self.x, second, optimize=True) / len(g)
        return by_u.reshape(size * self.x.shape[1], -1)


def _mixed_product(v: Array, g: Array, moved: Array, labels: NDArray[np.int64]) -> Array:
    """(d2f / du dv)' q without the matrix, where q moves the features by `moved`."""
    shares = _shares(v, g)
    scores = moved @ v[:, :-1].T
    bent = shares * (scores - np.sum(shares * scores, axis=1, keepdims=True))
    slopes = shares
    slopes[np.arange(len(g)), labels] -= 1
    return np.asarray(np.c_[bent.T @ g + slopes.T @ moved, bent.sum(0)] / len(g))


def _shares(v: Array, g: Array) -> Array:
    """The model's probability of every class."""
    scores = g @ v[:, :-1].T + v[:, -1]
    shares = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(shares / shares.sum(1, keepdims=True))


def _loss(v: Array, g: Array, labels: NDArray[np.int64]) -> tuple[float, Array]:
    """The regularized loss and its gradient by v, one class at a time."""
    shares = _shares(v, g)
    slope = np.empty_like(v)
    for k in range(len(v)):
        excess = shares[:, k] - (labels == k)
        slope[k, :-1] = g.T @ excess / len(g) + RIDGE * v[k, :-1]
        slope[k, -1] = excess.mean() + RIDGE * v[k, -1]
    chosen = np.maximum(shares[np.arange(len(g)), labels], np.finfo(float).tiny)
    return float(-np.log(chosen).mean() + RIDGE / 2 * np.sum(v * v)), slope


def _minimize(
    objective: Callable[[Array], tuple[float, Array]], start: Array, iterations: int = 2000
) -> tuple[float, Array]:
    """L-BFGS from a start, to a gradient of TOLERANCE if the iterations suffice."""

    def flat(v: Array) -> tuple[float, Array]:
        value, slope = objective(v.reshape(start.shape))
        return value, slope.flatten()

    settings = {"gtol": TOLERANCE, "ftol": 1e-15, "maxiter": iterations, "maxfun": 2 * iterations}
    found = minimize(flat, start.flatten(), jac=True, method="L-BFGS-B", options=settings)
    return float(found.fun), np.asarray(found.x).reshape(start.shape)
