"""A bank of Gaussians as one nn.Module, whose log-densities are quadratic forms in Phi."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.phi import LOG_2PI, augment, phi_from_moments, quadratic_features, quadratic_forms, svec

Covariance = Literal["full", "diagonal", "spherical", "tied"]


class Gaussians(nn.Module):
    """Gaussians of any leading shape, such as `(words, states, components)`.

    The variance floor lives in the parametrization, so no optimizer and no M-step can leave it: diagonal and spherical
    variances are floor + exp(raw); a full or tied covariance is floor I + R R' with R a square matrix. There are no
    buffers (Opacus refuses them in anything trained with DP). Raises ModelError for an empty shape, no features, an
    unknown covariance or a floor that is not positive.

    Args:
        covariance: `full`, `diagonal`, `spherical`, or `tied` (one full covariance shared along the last leading axis).
        floor: smallest variance in any direction, > 0; a public constant, in the units of the features.
    """

    def __init__(
        self,
        shape: Sequence[int],
        features: int,
        covariance: Covariance = "diagonal",
        floor: float = 1e-3,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        if not shape or min(shape) < 1 or features < 1:
            raise ModelError(f"Gaussians need a positive shape and feature count, got {tuple(shape)} and {features}")
        if covariance not in get_args(Covariance):
            raise ModelError(f"covariance must be one of {', '.join(get_args(Covariance))}, got {covariance!r}")
        if not floor > 0:
            raise ModelError(f"floor must be > 0, got {floor}")
        self.shape = tuple(shape)
        self.features = features
        self.kind: Covariance = covariance
        self.floor = float(floor)
        self.mean = nn.Parameter(torch.zeros(*self.shape, features, dtype=dtype))
        spread = {
            "full": (*self.shape, features, features),
            "tied": (*self.shape[:-1], 1, features, features),
            "diagonal": (*self.shape, features),
            "spherical": (*self.shape, 1),
        }[covariance]
        self.spread = nn.Parameter(torch.zeros(spread, dtype=dtype))
        unit = torch.eye(features, dtype=dtype) if covariance in {"full", "tied"} else torch.ones((), dtype=dtype)
        self.set_moments_(self.mean.detach().clone(), unit.expand(spread))

    def extra_repr(self) -> str:
        """Shape, features, covariance and floor, for `print(module)`."""
        return f"{self.shape}, features={self.features}, covariance={self.kind!r}, floor={self.floor}"

    def variances(self) -> Tensor:
        """The covariance in its own form: `(*shape, d, d)` full, `(*shape[:-1], 1, d, d)` tied,
        `(*shape, d)` diagonal, `(*shape, 1)` spherical.
        """
        if self.kind in {"full", "tied"}:
            eye = torch.eye(self.features, dtype=self.spread.dtype, device=self.spread.device)
            return self.spread @ self.spread.mT + self.floor * eye
        return self.floor + self.spread.exp()

    def covariances(self) -> Tensor:
        """The covariances as matrices, `(*shape, d, d)`, whatever their form."""
        variances = self.variances()
        if self.kind not in {"full", "tied"}:
            variances = torch.diag_embed(variances.expand(*self.shape, self.features))
        return variances.expand(*self.shape, self.features, self.features)

    @torch.no_grad()
    def set_moments_(self, mean: Tensor, variances: Tensor) -> None:
        """Set means `(*shape, d)` and covariances in the form `variances` returns, floored.

        A covariance with a direction below the floor gets the floor there: the closest one the
        parametrization can hold.
        """
        self.mean.copy_(mean)
        tiny = torch.finfo(self.spread.dtype).tiny
        variances = variances.to(self.spread.device)
        if self.kind in {"full", "tied"}:
            excess = variances - self.floor * torch.eye(self.features).to(variances)
            root, failed = torch.linalg.cholesky_ex(excess)
            if not excess.is_meta and bool(failed.any()):  # a direction at or below the floor
                values, vectors = torch.linalg.eigh(excess)
                root = vectors * values.clamp_min(0).sqrt().unsqueeze(-2)
            self.spread.copy_(root)
        else:
            self.spread.copy_((variances - self.floor).clamp_min(tiny).log())

    def pooled(self) -> "Gaussians":
        """One Gaussian, in float64, with the mean and covariance of all together: any frame, no particular one."""
        mean = self.mean.detach().double().reshape(-1, self.features)
        covariance = self.covariances().detach().double().reshape(-1, self.features, self.features)
        middle = mean.mean(0)
        spread = covariance.mean(0) + (mean - middle).mT @ (mean - middle) / len(mean)
        whole = self.kind in {"full", "tied"}
        one = Gaussians((1,), self.features, "full" if whole else "diagonal", self.floor, torch.float64)
        one.set_moments_(middle, spread if whole else spread.diagonal())
        return one

    def phi(self, log_weight: Tensor | float = 0.0) -> Tensor:
        """Phi of every Gaussian, `(*shape, d + 1, d + 1)`, with ln w `(*shape)` in its corner."""
        return phi_from_moments(self.mean, self.covariances(), log_weight)

    def log_density(self, x: Tensor, log_weight: Tensor | float = 0.0) -> Tensor:
        """ln w N(x) of frames `(..., d)` under every Gaussian, `(..., *shape)`, as one matrix product.

        Equal to `-cost(x, self.phi(log_weight))`, but expanded about `origin` (see there) and without off-diagonal
        terms where there are none.
        """
        if x.shape[-1] != self.features:
            raise ModelError(f"frames have {x.shape[-1]} features, the Gaussians {self.features}")
        origin = self.origin()
        coefficients = self.coefficients(log_weight, origin)
        if self.kind in {"full", "tied"}:
            return quadratic_forms(x - origin, coefficients)
        densities: Tensor = torch.tensordot(self.monomials(x - origin), coefficients, dims=([-1], [-1]))
        return densities

    def origin(self) -> Tensor:
        """The mean of the means, `(d,)`: the point to expand about.

        The quadratic form of frames far from zero is a small difference of large numbers, which float32
        cannot hold; about the middle of the Gaussians it is exact enough. The log-density does not depend
        on the point, so no gradient flows through it.
        """
        return self.mean.detach().reshape(-1, self.features).mean(0)

    def monomials(self, x: Tensor) -> Tensor:
        """What the log-density of `(..., d)` is linear in: svec(zz') of z = [x, 1]; [x^2, x, 1] if not full or tied."""
        if self.kind in {"full", "tied"}:
            return quadratic_features(x)
        return torch.cat([x.square(), augment(x)], dim=-1)

    def coefficients(self, log_weight: Tensor | float, origin: Tensor) -> Tensor:
        """The log-densities as vectors, `(*shape, monomials)`: ln w N(x) = <coefficients, monomials(x - origin)>."""
        mean = self.mean - origin
        if self.kind in {"full", "tied"}:
            return -svec(phi_from_moments(mean, self.covariances(), log_weight))
        variances = self.variances().expand(*self.shape, self.features)
        precision = variances.reciprocal()
        constant = (mean.square() * precision + variances.log() + LOG_2PI).sum(-1) / -2 + log_weight
        return torch.cat([precision / -2, mean * precision, constant.unsqueeze(-1)], dim=-1)
