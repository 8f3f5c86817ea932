"""Large-margin Gaussians: our solver beside CVXPY on the breast-cancer table of Pathak and Raj 2012 section 5.

The problem is eq. (11) with one positive semidefinite Phi a class, in sum form, on 583 rows x 9 features scaled
into the unit ball by public constants. It is solved with the paper's lambda = 0.31, which is so strong that the
classifier hardly leaves 0, and with lambda = 0.01, at which it classifies well.

Needs the table breast_cancer and cvxpy; --quick takes about 10 s.
"""

import time
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ppspeech.data.tables import load_breast_cancer
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, threads
from ppspeech.figures import Figure
from ppspeech.models.margin import LargeMarginGaussians, MarginLoss, SumForm, minimize_psd, sum_form

TRAINING_ROWS = 583
WIDTH = 0.5
GAMMA = 1 / TRAINING_ROWS
STRENGTHS = {"": 0.31, ".weak": 0.01}
RELATIVE_GAP = 1e-7  # certified, of our objective
SOLVERS = ("SCS", "CLARABEL")


@dataclass(frozen=True)
class _Peer:
    """CVXPY's fastest run: the solver's own seconds, those of compiling the problem, and what it reached."""

    solver: str
    seconds: float
    compile_seconds: float
    objective: float


@BENCHES.register("large-margin")
def run(quick: bool) -> list[Figure]:
    """Measure both sides in turn; `quick` repeats less often."""
    table = load_breast_cancer()
    x, y = table.features[:TRAINING_ROWS].double() / 30, table.labels[:TRAINING_ROWS]
    figures = []
    # both solvers of CVXPY run on one thread, and matrices this small gain nothing from more
    with threads(1):
        for name, lam in STRENGTHS.items():
            figures += _compare(name, lam, x, y, repeats=1 if quick else 5)
    return figures


def _compare(name: str, lam: float, x: Tensor, y: Tensor, repeats: int) -> list[Figure]:
    form = sum_form(len(x), lam, GAMMA)
    peer = _fastest_peer(x.numpy(), y.numpy(), form, repeats)
    tolerance = (2 * form.quadratic * RELATIVE_GAP * abs(peer.objective)) ** 0.5
    model = LargeMarginGaussians(2, x.shape[1], loss=MarginLoss(WIDTH), psd="projection", dtype=torch.double)
    objective = model.objective(x, y, quadratic=form.quadratic, gamma=form.gamma)
    terms = {"quadratic": form.quadratic, "gamma": form.gamma, "tolerance": tolerance}
    certificate = model.fit(x, y, **terms).certificate
    ours = best_seconds(lambda: minimize_psd(objective, tolerance=tolerance), 10 * repeats)
    whole = best_seconds(lambda: model.fit(x, y, **terms), 10 * repeats)
    about = f"{len(x)} rows x {x.shape[1]}, lambda {lam}, {certificate.iterations} Newton steps, 1 thread"
    fastest = f"solver against solver, {about}; {peer.solver} is the fastest of {', '.join(SOLVERS)}"
    difference = (certificate.objective - peer.objective) / abs(peer.objective)
    certified = f"relative, ours minus theirs; our certified gap is {certificate.gap / certificate.objective:.1g}"
    label = f"CVXPY {version('cvxpy')} {peer.solver}"
    with_compile = peer.seconds + peer.compile_seconds
    return [
        Figure(f"large_margin{name}.speedup_vs_cvxpy", peer.seconds / ours, "x", note=fastest),
        Figure.less(f"large_margin{name}.solve_s", ours, "s", label, peer.seconds),
        Figure.less(f"large_margin{name}.fit_s", whole, "s", label, with_compile, "from rows to model, on both sides"),
        Figure(f"large_margin{name}.cvxpy_compile_s", peer.compile_seconds, "s"),
        Figure(f"large_margin{name}.objective_difference", difference, note=certified),
        Figure(f"large_margin{name}.training_accuracy", float((model.predict(x) == y).double().mean())),
    ]


def _fastest_peer(x: np.ndarray, y: np.ndarray, form: SumForm, repeats: int) -> _Peer:
    """The same problem by every solver that CVXPY has for it, each from a cold start; the fastest run of all."""
    found = []
    for solver in SOLVERS:
        for _ in range(repeats):
            problem = _problem(x, y, form)
            start = time.perf_counter()
            problem.get_problem_data(solver)
            compiling = time.perf_counter() - start
            with warnings.catch_warnings():  # an inaccurate run shows in the difference of objectives
                warnings.simplefilter("ignore", UserWarning)
                problem.solve(solver=solver, warm_start=False)
            statistics = problem.solver_stats
            seconds = statistics.solve_time + (statistics.setup_time or 0.0)
            found.append(_Peer(solver, seconds, compiling, float(problem.value)))
    return min(found, key=lambda peer: peer.seconds)


def _problem(x: np.ndarray, y: np.ndarray, form: SumForm) -> Any:
    """Pathak and Raj 2012 eq. (11) for two classes. l_h(u) = min over w >= 0, r with w + r >= u + h of w + r^2 / 4h."""
    import cvxpy

    cp: Any = cvxpy  # its functions carry no types
    z = np.c_[x, np.ones(len(x))]
    size = z.shape[1]
    phi = [cp.Variable((size, size), PSD=True) for _ in range(2)]
    squares = np.einsum("ni,nj->nij", z, z).reshape(len(z), -1)
    signs = np.where(y == 1, 1.0, -1.0)
    u = 1 + cp.multiply(signs, squares @ cp.vec(phi[1] - phi[0], order="C"))
    beyond, within = cp.Variable(len(x), nonneg=True), cp.Variable(len(x))
    loss = cp.sum(beyond) + cp.sum_squares(within) / (4 * WIDTH)
    trace = sum(cp.trace(matrix[:-1, :-1]) for matrix in phi)
    square = sum(cp.sum_squares(matrix) for matrix in phi)
    total = loss + form.gamma * trace + form.quadratic / 2 * square
    return cp.Problem(cp.Minimize(total), [within + beyond >= u + WIDTH])
