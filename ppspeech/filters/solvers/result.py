"""What a solver hands back: the filter, how Phi fell, and how close to a stationary point it stopped."""

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class FilterCertificate:
    """Where a solver stopped. Phi is not convex in u: this is about a stationary point, never about the best filter."""

    gradient_norm: float  # of Phi by u at the end
    decrease: float  # what the last model of Phi promises to gain (Kiwiel's -Psi), or the last decrease of Phi
    inner_residual: float  # the largest gradient norm an inner solve was left with at the end
    iterations: int
    converged: bool  # the convergence test was met; False where the iterations ran out or no step helped any more


@dataclass(frozen=True, eq=False)
class Result:
    """A learned filter for raw inputs; `history` is Phi at the start and after every outer iteration."""

    filter: nn.Module
    history: tuple[float, ...]
    certificate: FilterCertificate
    solver: str
