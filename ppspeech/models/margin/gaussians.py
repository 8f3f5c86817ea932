"""Large-margin Gaussian and mixture classifiers (Pathak and Raj 2012 section 3; Sha and Saul 2006).

Every class c has K matrices Phi_cm (seed eq. 2). An example x is clipped to a ball, z = [x, a], and costs
t_cm = z' Phi_cm z. It belongs to the cheapest class, argmin_c min_m t_cm. Training asks that the cost of the right
class (and the given component m of it) be lower by one than the soft minimum over every other class (eq. 7):

    u_c  = 1 + t_ym + log sum_m' exp(-t_cm')           for c != y
    loss = sum over c != y of l_h(u_c)                 l_h: `hinge.huber_hinge`, eq. (9) with its sign put right

    F(Phi) = sum_i loss_i + gamma_tot sum_cm tr(Psi_cm) + (Lambda / 2) sum_cm ||Phi_cm||_F^2       (eq. 11, sum form)

The costs are linear in svec(Phi), so this is one of the models that `convex` and `psd` train to a certified
minimum; the same module also trains by autograd in mini-batches, from `loss`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.models.convex import ConvexObjective, Head, Solution, minimize
from ppspeech.models.gaussian.phi import quadratic_features, smat, svec
from ppspeech.models.margin.loss import MarginLoss
from ppspeech.models.margin.psd import minimize_psd, project_psd, psd_root

Psd = Literal["none", "projection", "factorization"]
HINGE_GAP = 5e-5  # of F: how close the solution for a hinge must be to its minimum
ComponentLabels = Tensor | Callable[[Tensor, Tensor], Tensor] | None


@dataclass(frozen=True)
class SumForm:
    """The regularizers of the sum form: Lambda and gamma_tot."""

    quadratic: float
    gamma: float


def sum_form(examples: int, lam: float, gamma: float = 0.0) -> SumForm:
    """From Pathak and Raj 2012's (1/n) sum + gamma tr + lambda ||Phi||^2 to the sum form: Lambda = 2 n lambda, n gamma.

    >>> sum_form(583, lam=0.01, gamma=0.001)
    SumForm(quadratic=11.66, gamma=0.583)
    """
    if examples < 1 or lam < 0 or gamma < 0:
        raise ModelError(f"need examples >= 1, lam >= 0 and gamma >= 0, got {examples}, {lam} and {gamma}")
    return SumForm(quadratic=2 * examples * lam, gamma=examples * gamma)


class LargeMarginGaussians(nn.Module):
    """A bank of matrices Phi `(classes, components, d + 1, d + 1)` trained for a margin.

    No buffers; the only parameter is Phi in svec form, or its root R (Phi = R R') under `psd="factorization"`, which is
    positive semidefinite by construction, but no longer convex under autograd. Under `projection` the convex solver
    respects the constraint; after gradient steps call `project_`. Examples are clipped to the norm `radius`, and
    `constant` is a, the last element of z: public constants.
    """

    def __init__(
        self,
        classes: int,
        features: int,
        components: int = 1,
        loss: MarginLoss | None = None,
        psd: Psd = "none",
        radius: float | None = None,
        constant: float = 1.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        if classes < 2 or features < 1 or components < 1:
            raise ModelError(
                f"need classes >= 2, features >= 1 and components >= 1, got {classes}, {features} and {components}"
            )
        if psd not in get_args(Psd):
            raise ModelError(f"psd must be one of {', '.join(get_args(Psd))}, got {psd!r}")
        if (radius is not None and not radius > 0) or not constant > 0:
            raise ModelError(f"radius and constant must be > 0, got {radius} and {constant}")
        self.classes, self.components, self.size = classes, components, features + 1
        self.margin = loss if loss is not None else MarginLoss()
        self.psd: Psd = psd
        self.radius = radius
        self.constant = constant
        bank = (classes, components)
        if psd == "factorization":
            # a root of 0 has no gradient: start from a small multiple of the identity
            self.root = nn.Parameter(0.1 * torch.eye(self.size, dtype=dtype).repeat(*bank, 1, 1))
        else:
            self.vector = nn.Parameter(torch.zeros(*bank, self.size * (self.size + 1) // 2, dtype=dtype))

    def extra_repr(self) -> str:
        """Sizes and options, for `print(module)`."""
        return (
            f"classes={self.classes}, components={self.components}, features={self.size - 1}, "
            f"psd={self.psd!r}, radius={self.radius}, constant={self.constant}, {self.margin}"
        )

    def phi(self) -> Tensor:
        """The matrices, `(classes, components, d + 1, d + 1)`."""
        if self.psd == "factorization":
            return self.root @ self.root.mT
        return smat(self.vector)

    @torch.no_grad()
    def set_phi_(self, phi: Tensor) -> None:
        """Set the matrices, from a solver or a generative start; projected if the module is factorized."""
        if self.psd == "factorization":
            self.root.copy_(psd_root(phi))
        else:
            self.vector.copy_(svec(phi))

    @torch.no_grad()
    def project_(self) -> None:
        """Move every Phi to the nearest positive semidefinite one: after a gradient step, or after training."""
        self.set_phi_(project_psd(self.phi()))

    def features(self, x: Tensor) -> Tensor:
        """svec(zz') of clipped x, `(..., d)` to `(..., (d + 1)(d + 2) / 2)`; its norm is ||x||^2 + a^2."""
        if x.shape[-1] != self.size - 1:
            raise ModelError(f"examples have {x.shape[-1]} features, the model {self.size - 1}")
        if self.radius is not None:
            x = x * (self.radius / x.norm(dim=-1, keepdim=True).clamp_min(self.radius))
        return quadratic_features(x / self.constant) * (self.constant * self.constant)

    def forward(self, x: Tensor) -> Tensor:
        """Costs t of examples `(..., d)` as one matrix product: `(..., classes, components)`."""
        costs: Tensor = torch.tensordot(self.features(x), svec(self.phi()), dims=([-1], [-1]))
        return costs

    def scores(self, x: Tensor, soft: bool = False) -> Tensor:
        """Class scores `(..., classes)`, the higher the better: -min_m t_cm, or log sum_m exp(-t_cm) if `soft`."""
        costs = self(x)
        best: Tensor = (-costs).logsumexp(-1) if soft else -costs.amin(-1)
        return best

    def predict(self, x: Tensor, soft: bool = False) -> Tensor:
        """The class of each example, `(...)`."""
        best: Tensor = self.scores(x, soft).argmax(-1)
        return best

    def loss(self, x: Tensor, y: Tensor, m: ComponentLabels = None) -> Tensor:
        """Per-example margin losses `(n,)`, for autograd; regularization is apart."""
        return self.margin.losses(self(x), self._right(x, y, m))

    def regularization(self, quadratic: float, gamma: float = 0.0) -> Tensor:
        """gamma_tot sum tr(Psi) + (Lambda / 2) sum ||Phi||^2."""
        phi = self.phi()
        trace = phi.diagonal(dim1=-2, dim2=-1)[..., :-1].sum()
        return gamma * trace + quadratic / 2 * phi.square().sum()

    def head(self, x: Tensor, y: Tensor, m: ComponentLabels = None, width: float | None = None) -> Head:
        """The losses of these examples as a function of their costs, for the convex solver."""
        margin = self.margin if width is None else replace(self.margin, width=width)
        return margin.head(self._right(x, y, m).double())

    def objective(
        self,
        x: Tensor,
        y: Tensor,
        m: ComponentLabels = None,
        *,
        quadratic: float,
        gamma: float = 0.0,
        linear: Tensor | None = None,
        weights: Tensor | None = None,
        width: float | None = None,
    ) -> ConvexObjective:
        """F of `(n, d)` examples over Theta = svec(Phi), `(classes * components, (d + 1)(d + 2) / 2)`.

        `m` are components `(n,)`, or a function of x and y that gives them; not needed for one component. `linear` is a
        further term of the shape of Theta, such as a privacy mechanism's; `width` is h in place of the model's, > 0.
        """
        if (self.margin.width if width is None else width) == 0:
            raise ModelError("a hinge (width 0) has no gradient at its kink: `fit` smooths it, or set width > 0")
        x = x.double()
        trace = torch.eye(self.size, dtype=x.dtype, device=x.device)
        trace[-1, -1] = 0
        total = (gamma * svec(trace)).expand(self.classes * self.components, -1)
        return ConvexObjective(
            self.head(x, y, m, width),
            self.features(x),
            heads=self.classes * self.components,
            quadratic=quadratic,
            linear=total if linear is None else total + linear.to(total),
            weights=weights,
        )

    def fit(
        self,
        x: Tensor | NDArray[Any],
        y: Tensor | NDArray[Any],
        m: ComponentLabels = None,
        *,
        quadratic: float,
        gamma: float = 0.0,
        linear: Tensor | None = None,
        weights: Tensor | None = None,
        tolerance: float = 1e-6,
        post_hoc: bool = False,
        max_iterations: int = 300,
    ) -> Solution:
        """Train to the certified minimum of F and set the parameters to it.

        Under `projection` and `factorization` the minimum is over positive semidefinite matrices; with `post_hoc` the
        solver ignores the constraint and its result is projected. The solution returned is the solver's, before such a
        projection. A hinge is reached through ever narrower Huber hinges, to a gap of 5e-5 of F. Raises ModelError for
        bad labels or values, or if the tolerance is not reached; the parameters then stay.
        """
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        solve = minimize if self.psd == "none" or post_hoc else minimize_psd
        width = self.margin.width or 1.0
        total = float(len(x) if weights is None else weights.sum())
        start: Tensor | None = None
        while True:
            objective = self.objective(
                x, y, m, quadratic=quadratic, gamma=gamma, linear=linear, weights=weights, width=width
            )
            solution = solve(objective, start, tolerance, max_iterations)
            if self.margin.width > 0:
                break
            smoothing = (
                width / 4 * self.margin.hinges(self.classes) * total
            )  # bounds what the Huber hinges add to the hinges
            if smoothing <= HINGE_GAP * abs(solution.certificate.objective):
                gap = solution.certificate.gap + smoothing
                solution = replace(solution, certificate=replace(solution.certificate, gap=gap))
                break
            start, width = solution.theta, width / 100
        phi = smat(solution.theta.view(self.classes, self.components, -1))
        self.set_phi_(phi if self.psd == "none" else project_psd(phi))
        return solution

    def _right(self, x: Tensor, y: Tensor, m: ComponentLabels) -> Tensor:
        """1 at the right class and component, `(n, classes, components)`."""
        if callable(m):
            m = m(x, y)
        if m is None:
            if self.components > 1:
                raise ModelError(
                    f"a model with {self.components} components a class needs the component of each example: "
                    "pass m, such as the most likely component of a Gaussian mixture of its class"
                )
            m = torch.zeros_like(y)
        for labels, count, name in ((y, self.classes, "classes"), (m, self.components, "components")):
            if labels.shape != x.shape[:-1] or labels.is_floating_point():
                raise ModelError(
                    f"{name} must be integers of shape {tuple(x.shape[:-1])}, got {labels.dtype} "
                    f"of shape {tuple(labels.shape)}"
                )
            if labels.numel() and (labels.min() < 0 or labels.max() >= count):
                raise ModelError(f"{name} must lie in 0..{count - 1}, got {labels.min()}..{labels.max()}")
        right = torch.nn.functional.one_hot(y * self.components + m, self.classes * self.components)
        return right.view(*y.shape, self.classes, self.components).to(x.dtype)
