"""Minimax filters: Kiwiel's algorithm beside the same in numpy with explicit Jacobians, and how its time grows.

Both sides run the same iterations of Algorithms 1 and 2 of seed 003 on UCI HAR (activity against subject, linear
filter) from the same start. The peer is written as the seed's author published it: inner problems by scipy's L-BFGS,
every derivative by numpy, the mixed second derivatives d2f/du dv as a matrix, class by class.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from ppspeech.bench.clock import best_seconds
from ppspeech.data.tables import load_har
from ppspeech.figures import Figure
from ppspeech.filters import ClassTask, LinearFilter, MinimaxProblem
from ppspeech.filters.flat import FlatFilter
from ppspeech.filters.joint import Joint
from ppspeech.filters.kiwiel import KiwielOptions, descend
from ppspeech.filters.modules import Scaling
from ppspeech.filters.starts import discriminant_ratio, targets_of

Array = NDArray[np.float64]

RHO = 10.0
RIDGE = 1e-6  # of the opponents, as in the seed
FILTER_RIDGE = 1e-6
TAU = 1e-4  # so short that no direction is refused: the peer has no test for that
ITERATIONS = 3
AUXILIARY = 200  # L-BFGS iterations of the peer's linearised problems at most, as in the published code
FEATURES = 20
SUBJECTS = 15
ROWS = 2400


def run(quick: bool) -> list[Figure]:
    """Measure both sides in turn, then ours at other sizes; `quick` takes fewer rows and iterations."""
    # With about as many rows as inputs the start is perfect on them and there is nothing left to solve.
    rows, iterations = (1200, 1) if quick else (ROWS, ITERATIONS)
    game = _game(rows, FEATURES, SUBJECTS)
    ours = _Ours(game)
    seconds = best_seconds(lambda: ours.run(iterations), 1 if quick else 3)
    value = ours.run(iterations)
    peer = _Explicit(game)
    start = perf_counter()
    peer_value = peer.run(iterations)
    peer_seconds = perf_counter() - start
    note = (
        f"HAR, {rows} rows x {game.x.shape[1]} to {FEATURES}, {SUBJECTS} subjects, {iterations} iterations, both 64 bit"
    )
    figures = [
        Figure(
            "filters.kiwiel.speedup_vs_numpy",
            peer_seconds / seconds,
            "x",
            note=f"{note}; ours the best of {2 if quick else 4} runs, the peer one run",
        ),
        Figure("filters.kiwiel.s", seconds, "s", "numpy + scipy", peer_seconds, peer_seconds / seconds, note),
        Figure("filters.kiwiel.phi", value, "", "numpy + scipy", peer_value, note="after the same iterations"),
    ]
    return figures + _growth(quick)


def _growth(quick: bool) -> list[Figure]:
    """Seconds an iteration, with one of samples, dimension and subjects changed at a time."""
    sizes: dict[str, tuple[tuple[int, int, int], ...]] = {
        "samples": ((600, 20, 15), (1200, 20, 15), (2400, 20, 15)),
        "dimension": ((1200, 10, 15), (1200, 20, 15), (1200, 50, 15)),
        "subjects": ((1200, 20, 5), (1200, 20, 15), (1200, 20, 30)),
    }
    figures = []
    for index, (what, series) in enumerate(sizes.items()):
        for size in series[:: 2 if quick else 1]:
            game = _game(*size)
            ours = _Ours(game)
            figures.append(
                Figure(
                    f"filters.kiwiel.by_{what}.{size[index]}_s",
                    best_seconds(lambda ours=ours: ours.run(1), 1),  # type: ignore[misc]
                    "s",
                    note="one iteration of Kiwiel's algorithm; the other sizes are 1,200 samples, d = 20, 15 subjects",
                )
            )
    return figures


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
    private, task = ClassTask(table.groups - 1, subjects), ClassTask(table.labels, 6)
    weight = discriminant_ratio(x, targets_of([private]), targets_of([task]), features)
    weight = weight / (x @ weight.mT).std(0, correction=0).unsqueeze(-1)
    return _Game(x, table.groups - 1, table.labels, weight)


class _Ours:
    """Kiwiel's algorithm on autograd."""

    def __init__(self, game: _Game) -> None:
        private = ClassTask(game.subject, int(game.subject.max()) + 1, RIDGE)
        self.problem = MinimaxProblem(game.x, [private], [ClassTask(game.activity, 6, RIDGE)], RHO, FILTER_RIDGE)
        self.flat = FlatFilter(LinearFilter.of(game.start))

    def run(self, iterations: int) -> float:
        """Phi after so many iterations from the start."""
        joint = Joint(self.problem, self.flat)
        _, descent = descend(joint, self.flat.vector(), iterations, KiwielOptions(), TAU)
        return descent.history[-1]


class _Explicit:
    """The same iterations in numpy: u is the weight `(d, D)` laid out in a vector, v is `(classes, d + 1)`."""

    def __init__(self, game: _Game) -> None:
        self.x = game.x.numpy()
        self.start = game.start.numpy()
        self.sides = [(game.subject.numpy(), int(game.subject.max()) + 1), (game.activity.numpy(), 6)]
        self.signs = [-1.0, RHO]

    def run(self, iterations: int) -> float:
        """Phi after so many iterations from the start."""
        options = KiwielOptions()
        u, tau, reach = self.start.flatten(), TAU, 1.0
        models = [np.zeros((classes, self.start.shape[0] + 1)) for _, classes in self.sides]
        phi, models = self._phi(u, models)
        for _ in range(iterations):
            q, promised = self._direction(u, phi, models, tau, options)
            there, moved = self._phi(u + reach * q, models)
            while there - phi > -options.enough * reach * promised:
                reach /= 2
                there, moved = self._phi(u + reach * q, models)
            while reach >= 1:
                further, answers = self._phi(u + 2 * reach * q, models)
                if further >= there:
                    break
                there, moved, reach = further, answers, 2 * reach
            u, phi, models, tau = u + reach * q, there, moved, 2 * min(1.0, reach) * tau
        return phi

    def _direction(
        self, u: Array, phi: float, models: list[Array], tau: float, options: KiwielOptions
    ) -> tuple[Array, float]:
        """The auxiliary algorithm: cuts of the adversary are merged, the aggregator's newest piece is taken."""
        (theta, cut), (low_value, low) = self._pieces(u, models)
        for remaining in reversed(range(options.cuts)):
            p = cut + low
            promised = tau * p @ p + phi - theta - low_value
            if remaining == 0:
                break
            value, answers = self._linearised(u, -tau * p, models)
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
            value, best = _minimise(partial(_loss, g=g, labels=labels), start)
            total += sign * value
            found.append(best)
        return float(total), found

    def _linearised(self, u: Array, q: Array, models: list[Array]) -> tuple[float, list[Array]]:
        """Phi^l(q), its inner problems with explicit mixed derivatives."""
        g = self._features(u)
        total, found = FILTER_RIDGE * (u @ u / 2 + u @ q), []
        for sign, (labels, _), start in zip(self.signs, self.sides, models, strict=True):

            def objective(v: Array, labels: NDArray[np.int64] = labels) -> tuple[float, Array]:
                value, slope = _loss(v, g, labels)
                mixed = self._mixed(v, g, labels)  # (size of u, size of v)
                return value + float(self._by_u(v, g, labels) @ q), slope + (mixed.T @ q).reshape(v.shape)

            value, best = _minimise(objective, start, AUXILIARY)
            total += sign * value
            found.append(best)
        return float(total), found

    def _pieces(self, u: Array, models: list[Array]) -> list[tuple[float, Array]]:
        """f_priv and rho f_util with their gradients by u; the ridge on u goes with the latter."""
        g = self._features(u)
        pieces = []
        for sign, (labels, _), v in zip(self.signs, self.sides, models, strict=True):
            pieces.append((sign * _loss(v, g, labels)[0], sign * self._by_u(v, g, labels)))
        value, gradient = pieces[1]
        return [pieces[0], (value + FILTER_RIDGE / 2 * float(u @ u), gradient + FILTER_RIDGE * u)]

    def _features(self, u: Array) -> Array:
        return self.x @ u.reshape(self.start.shape).T

    def _by_u(self, v: Array, g: Array, labels: NDArray[np.int64]) -> Array:
        """The gradient of the loss by u."""
        slopes = _shares(v, g)
        slopes[np.arange(len(g)), labels] -= 1
        return np.asarray((slopes @ v[:, :-1]).T @ self.x / len(g)).flatten()

    def _mixed(self, v: Array, g: Array, labels: NDArray[np.int64]) -> Array:
        """d2f / du dv as a matrix, one class of v at a time."""
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


def _shares(v: Array, g: Array) -> Array:
    """The model's probability of every class."""
    scores = g @ v[:, :-1].T + v[:, -1]
    shares = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(shares / shares.sum(1, keepdims=True))


def _loss(v: Array, g: Array, labels: NDArray[np.int64]) -> tuple[float, Array]:
    """The regularised loss and its gradient by v, one class at a time."""
    shares = _shares(v, g)
    slope = np.empty_like(v)
    for k in range(len(v)):
        excess = shares[:, k] - (labels == k)
        slope[k, :-1] = g.T @ excess / len(g) + RIDGE * v[k, :-1]
        slope[k, -1] = excess.mean() + RIDGE * v[k, -1]
    chosen = np.maximum(shares[np.arange(len(g)), labels], np.finfo(float).tiny)
    return float(-np.log(chosen).mean() + RIDGE / 2 * np.sum(v * v)), slope


def _minimise(
    objective: Callable[[Array], tuple[float, Array]], start: Array, iterations: int = 2000
) -> tuple[float, Array]:
    """L-BFGS from a start, to a small gradient if the iterations suffice."""

    def flat(v: Array) -> tuple[float, Array]:
        value, slope = objective(v.reshape(start.shape))
        return value, slope.flatten()

    settings = {"gtol": 1e-7, "ftol": 1e-15, "maxiter": iterations, "maxfun": 2 * iterations}
    found = minimize(flat, start.flatten(), jac=True, method="L-BFGS-B", options=settings)
    return float(found.fun), np.asarray(found.x).reshape(start.shape)
