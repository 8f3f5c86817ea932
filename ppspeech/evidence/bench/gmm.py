"""EM for Gaussian mixtures, beside scikit-learn: same frames, same start, same number of iterations.

Needs nothing.
"""

import multiprocessing
import tempfile
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sklearn
import torch
from sklearn.mixture import GaussianMixture as SklearnMixture
from torch import Tensor

from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import peak_megabytes, run_seconds, threads
from ppspeech.figures import Figure
from ppspeech.models.gaussian import GaussianMixture, run_em

COMPONENTS, FEATURES, THREADS = 64, 39, 1
FLOOR = 1e-6
PEER = "scikit-learn"
Kind = Literal["full", "diagonal"]
PREFIX: dict[Kind, str] = {"full": "gmm.em", "diagonal": "gmm.em.diagonal"}
Who = Literal["float32", "float64", "sklearn"]


@dataclass(frozen=True)
class Timing:
    """Seconds an EM iteration, and nats a frame after the last one."""

    seconds: float
    log_likelihood: float


@BENCHES.register("gmm")
def run(quick: bool) -> list[Figure]:
    """Time EM with 64 components on 100,000 frames (10,000 in a quick run, without memory) of 39 features."""
    frames, steps, repeats = (10_000, 2, 2) if quick else (100_000, 2, 2)
    figures: list[Figure] = []
    for kind in PREFIX:
        with threads(THREADS):
            figures += _compare(kind, frames, steps, repeats)
        if not quick:
            figures.append(_memory(kind, frames))
    return figures


def problem(kind: Kind, frames: int) -> tuple[GaussianMixture, Tensor]:
    """A start, and frames `(frames, 39)` of a full-covariance mixture; float32, seeded.

    The start is near the truth, with one wide covariance for all components, so that none collapses:
    scikit-learn without its regularization would refuse that.
    """
    generator = torch.Generator().manual_seed(0)
    eye = torch.eye(FEATURES)
    root = torch.randn(COMPONENTS, FEATURES, FEATURES, generator=generator) / FEATURES**0.5
    means = torch.randn(COMPONENTS, FEATURES, generator=generator)
    truth = GaussianMixture(COMPONENTS, FEATURES, "full")
    truth.gaussians.set_moments_(means, root @ root.mT + 0.1 * eye)
    start = GaussianMixture(COMPONENTS, FEATURES, kind, FLOOR)
    wide = eye if kind == "full" else torch.ones(FEATURES)
    away = 0.3 * torch.randn(COMPONENTS, FEATURES, generator=generator)
    start.gaussians.set_moments_(means + away, wide.expand(start.gaussians.spread.shape))
    return start, truth.sample(frames, generator)


def _compare(kind: Kind, frames: int, steps: int, repeats: int) -> list[Figure]:
    start, x = problem(kind, frames)
    single, double, peer = (_time(runner(who, start, x), steps, repeats) for who in ("float32", "float64", "sklearn"))
    prefix, setting = PREFIX[kind], _setting(kind, frames)
    figures = []
    for metric, ours, note in (
        (f"{prefix}.speedup_vs_sklearn", single, "ours in float32 with sums in float64"),
        (f"{prefix}.float64.speedup_vs_sklearn", double, "ours in float64"),
    ):
        ratio = peer.seconds / ours.seconds
        note = f"{note}, {ours.seconds:.3g} s an iteration against {peer.seconds:.3g} s; {setting}"
        figures.append(Figure(metric, ratio, "x", ratio=ratio, note=note))
    after = f"after {steps + 1} iterations from the same start"
    reached, theirs, note = single.log_likelihood, peer.log_likelihood, f"{after}; {setting}"
    figures.append(Figure(f"{prefix}.log_likelihood", reached, "nat/frame", PEER, theirs, note=note))
    for name, ours in ((prefix, single), (f"{prefix}.float64", double)):
        apart = abs(ours.log_likelihood - theirs)
        figures.append(Figure(f"{name}.log_likelihood_difference", apart, "nat/frame", note=after))
    return figures


def _memory(kind: Kind, frames: int) -> Figure:
    ours, theirs = peak_memory("float32", kind, frames), peak_memory("sklearn", kind, frames)
    note = f"growth of a fresh process during EM, the frames not counted; {_setting(kind, frames)}"
    return Figure(f"{PREFIX[kind]}.peak_memory_mb", ours, "MB", PEER, theirs, theirs / max(ours, 1.0), note)


def _setting(kind: Kind, frames: int) -> str:
    return (
        f"{kind} covariance, {COMPONENTS} components, {frames:,} x {FEATURES} frames, {THREADS} threads, "
        f"{PEER} {sklearn.__version__} in float64"
    )


def runner(who: Who, start: GaussianMixture, x: Tensor) -> Callable[[int], float]:
    """A function that runs EM for some iterations from the start and returns the final nats a frame."""
    if who == "sklearn":
        return _sklearn_runner(start, x)
    dtype = torch.float32 if who == "float32" else torch.float64
    frames, model = x.to(dtype), deepcopy(start).to(dtype)

    def ours(iterations: int) -> float:
        return float(run_em(deepcopy(model), frames, iterations=iterations, tolerance=-torch.inf).log_likelihood[-1])

    return ours


def _sklearn_runner(start: GaussianMixture, x: Tensor) -> Callable[[int], float]:
    bank = deepcopy(start).double().gaussians
    variances = bank.variances().detach()
    weights = start.log_weights().detach().double().exp()
    precisions = torch.linalg.inv(variances) if bank.kind == "full" else variances.reciprocal()
    options: dict[str, Any] = {
        "covariance_type": "full" if bank.kind == "full" else "diag",
        "weights_init": (weights / weights.sum()).numpy(),
        "means_init": bank.mean.detach().numpy(),
        "precisions_init": precisions.numpy(),
        "init_params": "random_from_data",  # of no effect beside the three above, and cheaper than k-means
        "tol": 0.0,
        "reg_covar": 0.0,
    }
    frames = x.double().numpy()

    def theirs(iterations: int) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it did not converge is what was asked for
            model = SklearnMixture(COMPONENTS, max_iter=iterations, **options).fit(frames)
        return float(model.score(frames))

    return theirs


def _time(em: Callable[[int], float], steps: int, repeats: int) -> Timing:
    """The fastest run divided by its iterations; start and final likelihood, which both need, are shared out."""
    reached: list[float] = []
    times = [run_seconds(lambda: reached.append(em(1 + steps))) for _ in range(repeats)]
    return Timing(min(times) / (1 + steps), reached[-1])


def peak_memory(who: Who, kind: Kind, frames: int) -> float:
    """How many MB a fresh process grows by, at its peak, during two iterations.

    The frames reach it through a file: drawing them there would leave a higher peak than EM itself.
    """
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(1) as pool:
        file = Path(folder) / "frames.npy"
        np.save(file, problem(kind, frames)[1].numpy())
        return pool.apply(_grow, (who, kind, file))


def _grow(who: Who, kind: Kind, file: Path) -> float:
    with threads(THREADS):
        start, x = problem(kind, 1)[0], torch.from_numpy(np.load(file))
        em = runner(who, start, x)
        runner(who, start, x[: 100 * COMPONENTS])(1)  # load what is loaded once
        before = peak_megabytes()
        em(2)
        return peak_megabytes() - before
