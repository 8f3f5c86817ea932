"""Linear classifiers: logistic regression, softmax regression and the Huber support vector machine.

Each is one weight matrix over z = [x, a] (a public constant a; a = 0 leaves the intercept out), trains by autograd
from `loss`, and trains to a certified minimum of the sum form with `fit`. The intercept is regularized like every
other weight: a guarantee on the exact minimizer needs that.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.models.convex import ConvexObjective, Expansion, Head, Solution, minimize
from ppspeech.models.margin.hinge import huber_hinge, huber_hinge_curvature, huber_hinge_slope


class _Linear(nn.Module, ABC):
    """What the three share: weights `(heads, d + 1)`, clipping, the objective and `fit`."""

    def __init__(
        self, features: int, heads: int, classes: int, radius: float | None, constant: float, dtype: torch.dtype
    ) -> None:
        super().__init__()
        if features < 1 or classes < 2:
            raise ModelError(f"need features >= 1 and classes >= 2, got {features} and {classes}")
        if (radius is not None and not radius > 0) or not constant >= 0:
            raise ModelError(f"radius must be > 0 and constant >= 0, got {radius} and {constant}")
        self.classes = classes
        self.radius = radius
        self.constant = constant
        self.weight = nn.Parameter(torch.zeros(heads, features + 1, dtype=dtype))

    def extra_repr(self) -> str:
        """Sizes and public constants, for `print(module)`."""
        return (
            f"features={self.weight.shape[1] - 1}, classes={self.classes}, radius={self.radius}, "
            f"constant={self.constant}"
        )

    def features(self, x: Tensor) -> Tensor:
        """[clipped x, a], `(..., d)` to `(..., d + 1)`."""
        if x.shape[-1] != self.weight.shape[1] - 1:
            raise ModelError(f"examples have {x.shape[-1]} features, the model {self.weight.shape[1] - 1}")
        if self.radius is not None:
            x = x * (self.radius / x.norm(dim=-1, keepdim=True).clamp_min(self.radius))
        return torch.cat([x, x.new_full((*x.shape[:-1], 1), self.constant)], dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of examples `(..., d)`: `(..., heads)`."""
        return self.features(x) @ self.weight.mT

    def scores(self, x: Tensor) -> Tensor:
        """Class scores `(..., classes)`, the higher the better; one head is the second class against 0."""
        scores: Tensor = self(x)
        return torch.cat((torch.zeros_like(scores), scores), -1) if scores.shape[-1] == 1 else scores

    def predict(self, x: Tensor) -> Tensor:
        """The class of each example, `(...)`."""
        return self.scores(x).argmax(-1)

    @abstractmethod
    def head(self, y: Tensor) -> Head:
        """The losses of examples with these labels `(n,)` as a function of their scores."""

    def objective(
        self, x: Tensor, y: Tensor, *, quadratic: float, linear: Tensor | None = None, weights: Tensor | None = None
    ) -> ConvexObjective:
        """sum_i w_i loss_i + <linear, Theta> + (quadratic / 2) ||Theta||^2 over Theta = the weights.

        `weights` `(n,)` are of the examples; `linear` has the shape of Theta, such as a privacy mechanism's term. Theta
        is the weights, of examples x `(n, d)` with classes y `(n,)`.
        """
        self._check_labels(x, y)
        return ConvexObjective(
            self.head(y), self.features(x.double()), self.weight.shape[0], quadratic, linear, weights
        )

    def fit(
        self,
        x: Tensor | NDArray[Any],
        y: Tensor | NDArray[Any],
        *,
        quadratic: float,
        linear: Tensor | None = None,
        weights: Tensor | None = None,
        tolerance: float = 1e-8,
        max_iterations: int = 200,
    ) -> Solution:
        """Set the weights to the certified minimum. Raises ModelError if it is not reached; the weights then stay."""
        x, y = torch.as_tensor(x), torch.as_tensor(y)
        objective = self.objective(x, y, quadratic=quadratic, linear=linear, weights=weights)
        solution = minimize(objective, tolerance=tolerance, max_iterations=max_iterations)
        with torch.no_grad():
            self.weight.copy_(solution.theta)
        return solution

    def fit_shares(self, x: Tensor, shares: Tensor, *, quadratic: float, tolerance: float = 1e-6) -> Solution:
        """The same for examples whose class is not known: `shares` `(n, classes)` of each that sum to 1.

        Shares may be negative, such as classes corrected for noise on them (Natarajan et al. 2013): the curvature of a
        soft loss does not depend on the class, so that the objective stays convex. Without `quadratic` it would have no
        minimum. Raises ModelError for a model whose loss is not soft.
        """
        if shares.shape != (len(x), self.classes) or not torch.allclose(shares.sum(1), shares.new_ones(len(x))):
            raise ModelError(f"shares are ({len(x)}, {self.classes}) and sum to 1, got {tuple(shares.shape)}")
        objective = ConvexObjective(
            self.soft_head(shares.double()), self.features(x.double()), self.weight.shape[0], quadratic
        )
        solution = minimize(objective, tolerance=tolerance)
        with torch.no_grad():
            self.weight.copy_(solution.theta)
        return solution

    def soft_head(self, shares: Tensor) -> Head:
        """The losses of examples with shares of classes `(n, classes)`; ModelError where they would not be convex."""
        raise ModelError(f"the loss of {type(self).__name__} is not convex in shares of classes, got {len(shares)}")

    def _check_labels(self, x: Tensor, y: Tensor) -> None:
        if y.shape != x.shape[:-1] or y.is_floating_point():
            raise ModelError(
                f"labels must be integers of shape {tuple(x.shape[:-1])}, got {y.dtype} of {tuple(y.shape)}"
            )
        if y.numel() and (y.min() < 0 or y.max() >= self.classes):
            raise ModelError(f"labels must lie in 0..{self.classes - 1}, got {y.min()}..{y.max()}")


def _signs(y: Tensor) -> Tensor:
    """Classes 0 and 1 as -1 and 1, `(n, 1)`."""
    return (2 * y - 1).double().unsqueeze(-1)


class LogisticRegression(_Linear):
    """Two classes, loss ln(1 + exp(-s)) with s the score times -1 (class 0) or 1 (class 1).

    >>> model = LogisticRegression(features=1)
    >>> x, y = torch.tensor([[-1.0], [1.0], [2.0]]), torch.tensor([0, 1, 1])
    >>> model.fit(x, y, quadratic=1.0).certificate.converged
    True
    """

    def __init__(
        self, features: int, radius: float | None = None, constant: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> None:
        super().__init__(features, 1, 2, radius, constant, dtype)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Per-example losses `(n,)`, for autograd."""
        self._check_labels(x, y)
        return nn.functional.softplus(-self(x) * _signs(y).to(x)).squeeze(-1)

    def head(self, y: Tensor) -> Head:
        """The logistic losses of these labels."""
        signs = _signs(y)

        def expand(scores: Tensor) -> Expansion:
            doubt = torch.sigmoid(-scores * signs)
            curvature = doubt * (1 - doubt)
            return Expansion(
                lambda: -nn.functional.logsigmoid(scores * signs).squeeze(-1),
                -doubt * signs,
                lambda direction: curvature * direction,
            )

        return expand

    def soft_head(self, shares: Tensor) -> Head:
        """ln(1 + e^s) - p s, p the share of the second class."""
        second = shares[:, 1:]

        def expand(scores: Tensor) -> Expansion:
            p = torch.sigmoid(scores)
            curvature = p * (1 - p)
            return Expansion(
                lambda: (nn.functional.softplus(scores) - second * scores).squeeze(-1),
                p - second,
                lambda direction: curvature * direction,
            )

        return expand


class SoftmaxRegression(_Linear):
    """C classes, one row of weights each; cross-entropy loss."""

    def __init__(
        self,
        features: int,
        classes: int,
        radius: float | None = None,
        constant: float = 1.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(features, classes, classes, radius, constant, dtype)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Per-example losses `(n,)`, for autograd."""
        self._check_labels(x, y)
        return nn.functional.cross_entropy(self(x), y, reduction="none")

    def head(self, y: Tensor) -> Head:
        """The cross-entropies of these labels."""
        return self.soft_head(nn.functional.one_hot(y, self.classes).double())

    def soft_head(self, shares: Tensor) -> Head:
        """ln sum e^s - <p, s>, p the shares."""

        def expand(scores: Tensor) -> Expansion:
            found = scores.softmax(-1)

            def curve(direction: Tensor) -> Tensor:
                moved = found * direction
                return moved - found * moved.sum(-1, keepdim=True)

            return Expansion(lambda: scores.logsumexp(-1) - (shares * scores).sum(-1), found - shares, curve)

        return expand


class HuberSvm(_Linear):
    """Two classes, loss l_h(1 - s): a support vector machine with the Huber hinge of width h."""

    def __init__(
        self,
        features: int,
        width: float = 0.5,
        radius: float | None = None,
        constant: float = 1.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(features, 1, 2, radius, constant, dtype)
        if not width > 0:
            raise ModelError(f"width (h of the Huber hinge) must be > 0, got {width}")
        self.width = width

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Per-example losses `(n,)`, for autograd."""
        self._check_labels(x, y)
        return huber_hinge(1 - self(x) * _signs(y).to(x), self.width).squeeze(-1)

    def head(self, y: Tensor) -> Head:
        """The Huber hinges of these labels."""
        signs = _signs(y)

        def expand(scores: Tensor) -> Expansion:
            u = 1 - scores * signs
            curvature = huber_hinge_curvature(u, self.width)
            return Expansion(
                lambda: huber_hinge(u, self.width).squeeze(-1),
                -huber_hinge_slope(u, self.width) * signs,
                lambda direction: curvature * direction,
            )

        return expand
