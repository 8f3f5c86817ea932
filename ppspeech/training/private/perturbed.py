r"""Learning from records that were perturbed where they are, with the corrections that the law of the noise allows.

- Classes: rows of the response's inverse, which have the true class as their mean, take the place of classes. Losses
  that are linear in the class, such as logistic and softmax ones, then have the right mean. Hinges are not: they take
  classes as they were told, and a symmetric response moves no decision of who could learn everything.
- Moments: E x~ x~' = x x' + v I, so that counts, means and covariances of classes are unbiased: all that a discriminant
  needs (`discriminant`).
- Other losses of noisy vectors are biased: averaging over noise flattens them. Here each vector is replaced by the best
  linear guess of what it was, m + S (S + v I)^-1 (x~ - m), from unbiased m and S (regression calibration, Carroll et
  al. 2006). Directions are then right where vectors are Gaussian given what is told, and the flattening is left.

Nothing here looks at a record: all is post-processing of what everybody told.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.models import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.models.margin import LargeMarginGaussians
from ppspeech.privacy.mechanisms import LocalRecords

LEAST = 0.02  # of the mean variance: directions of which noise leaves less are not blown up


@dataclass(frozen=True, eq=False)
class PerturbedRecords:
    """What people told: vectors `(n, d)`, classes `(n,)`, and the public mechanism that perturbed them."""

    x: Tensor
    y: Tensor
    mechanism: LocalRecords

    @classmethod
    def told(cls, mechanism: LocalRecords, x: Tensor, y: Tensor, unit_ids: Tensor | None = None) -> "PerturbedRecords":
        """Perturb records; whoever holds them does."""
        return cls(*mechanism.release((x, y), unit_ids).value, mechanism)

    @classmethod
    def pooled(cls, parts: "Sequence[PerturbedRecords]") -> "PerturbedRecords":
        """What several parties told, put together; PrivacyError unless all perturbed alike."""
        if not parts or len({part.mechanism for part in parts}) > 1:
            raise PrivacyError("records are put together that one mechanism perturbed: agree on its numbers first")
        x, y = (torch.cat([getattr(part, name) for part in parts]) for name in ("x", "y"))
        return cls(x, y, parts[0].mechanism)

    @property
    def shares(self) -> Tensor:
        """Of each class, `(n, classes)`, with the true class as their mean; they sum to 1, and some are negative."""
        return self.mechanism.label.inverse()[self.y]

    def moments(self) -> "ClassMoments":
        """Of the records as they were: without bias, up to what is raised to be a covariance at all."""
        shares, x = self.shares, self.x.double()
        counts = shares.sum(0).clamp_min(1.0)
        means = shares.mT @ x / counts.unsqueeze(1)
        center = x.mean(0)
        total = (x - center).mT @ (x - center) / len(x) - self.mechanism.variance * torch.eye(x.shape[1])
        return ClassMoments.of(counts, means, center, total, self.mechanism.moment_noise(len(x)))

    def calibrated(self) -> Tensor:
        """The best linear guess of every vector, `(n, d)`."""
        moments = self.moments()
        noisy = moments.total + self.mechanism.variance * torch.eye(self.x.shape[1])
        back = torch.linalg.solve(noisy, moments.total)
        guessed: Tensor = moments.center + (self.x.double() - moments.center) @ back
        return guessed


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Counts `(C,)` and means `(C, d)` of classes, mean `(d,)` and covariance of all, covariance within, `(d, d)`.

    `total` is raised to be a covariance; `within` is not, and `steady` is what of it stands above the noise.
    """

    counts: Tensor
    means: Tensor
    center: Tensor
    total: Tensor
    within: Tensor
    steady: Tensor

    @classmethod
    def of(cls, counts: Tensor, means: Tensor, center: Tensor, total: Tensor, noise: float) -> "ClassMoments":
        """From unbiased estimates; `noise` is the deviation of a number of `total`.

        A symmetric matrix of such noise has eigenvalues up to 2 noise sqrt(d): less than that is not told from it.
        """
        away = means - center
        within = total - (away * (counts / counts.sum()).unsqueeze(1)).mT @ away
        edge = 2 * noise * len(center) ** 0.5
        return cls(counts, means, center, _raised(total, 0.0), within, _raised(within, edge))


def discriminant(moments: ClassMoments) -> SoftmaxRegression:
    """Gaussian classes with a common covariance as a linear model: scores m'S^-1 x - m'S^-1 m / 2 + ln n.

    Directions come from the covariance that stands above the noise; how much they weigh beside ln n, from the variance
    along them, which is one number and well known.
    """
    classes, features = moments.means.shape
    away = moments.means - moments.center
    slopes = torch.linalg.solve(moments.steady, away.mT).mT
    spread = ((slopes @ moments.within) * slopes).sum().clamp_min(1e-9)
    slopes = slopes * ((slopes * away).sum() / spread).clamp(1e-3, 1e3)
    offsets = moments.counts.log() - (slopes * (moments.means + moments.center)).sum(1) / 2
    model = SoftmaxRegression(features, classes, dtype=torch.double)
    with torch.no_grad():
        model.weight.copy_(torch.cat([slopes, offsets.unsqueeze(1)], dim=1))
    return model


def fit_perturbed(
    module: LogisticRegression | SoftmaxRegression | HuberSvm | LargeMarginGaussians,
    records: PerturbedRecords,
    *,
    norm: float = 10.0,
) -> None:
    """Train a convex module on what was told, corrected as its loss allows.

    `norm` is a public guess of the weights' length: Lambda, in sum form, is the size of the noise in the gradient over
    it, root of the sum of E s^2 |x|^2.
    """
    guessed = records.calibrated()
    quadratic = float(guessed.norm() * records.shares.square().sum(1).mean().sqrt()) / norm
    if isinstance(module, LogisticRegression | SoftmaxRegression):
        module.fit_shares(guessed, records.shares, quadratic=quadratic)
    else:
        module.fit(guessed, records.y, quadratic=quadratic, tolerance=1e-4)


def _raised(covariance: Tensor, edge: float) -> Tensor:
    """The nearest covariance with no direction below the noise, or a share of the mean: noise makes some negative."""
    values, vectors = torch.linalg.eigh((covariance + covariance.mT) / 2)
    least = max(edge, LEAST * float(values.mean().clamp_min(1e-12)))
    raised: Tensor = (vectors * values.clamp_min(least)) @ vectors.mT
    return raised
