"""Mixtures of Gaussians as one nn.Module: weights and a bank of Gaussians."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.gaussians import Covariance, Gaussians

NEGLIGIBLE = -80.0  # e^-80 of the largest term adds nothing, but e^-90 is subnormal: 20 times as slow in float32
BLOCK_VALUES = 1 << 24  # scores held at once when utterances are scored in blocks of frames


class GaussianMixture(nn.Module):
    """p(x) = sum_k w_k N(x; mu_k, C_k), one mixture or a batch of them (restarts, speakers, states).

    The weights are the softmax of `logits`, so gradient steps and EM share one parametrization. Raises ModelError for
    no component, no feature or a floor that is not positive.

    Args:
        covariance: `full`, `diagonal`, `spherical` or `tied` (one full covariance a mixture).
        floor: smallest variance in any direction, > 0, in the units of the features.
        batch: leading shape; the parameters have shape `(*batch, components, ...)`.

    >>> mixture = GaussianMixture(components=4, features=2)
    >>> mixture.log_prob(torch.zeros(10, 2)).shape
    torch.Size([10])
    """

    def __init__(
        self,
        components: int,
        features: int,
        covariance: Covariance = "diagonal",
        floor: float = 1e-3,
        batch: Sequence[int] = (),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.gaussians = Gaussians((*batch, components), features, covariance, floor, dtype)
        self.logits = nn.Parameter(torch.zeros(self.gaussians.shape, dtype=dtype))

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading shape."""
        return self.gaussians.shape[:-1]

    @property
    def components(self) -> int:
        """How many Gaussians a mixture has."""
        return self.gaussians.shape[-1]

    @property
    def features(self) -> int:
        """The length of a frame."""
        return self.gaussians.features

    def log_weights(self) -> Tensor:
        """The ln w, `(*batch, components)`."""
        return self.logits.log_softmax(-1)

    def joint(self, x: Tensor) -> Tensor:
        """ln w_k N(x; mu_k, C_k) for frames `(..., d)`: `(..., *batch, components)`."""
        return self.gaussians.log_density(x, self.log_weights())

    def log_prob(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The log-density of frames `(..., d)`: `(..., *batch)`; frames beyond `lengths` give 0, whatever they hold."""
        if lengths is None:
            return _log_sum_exp(self.joint(x))
        mask = frame_mask(lengths, x.shape[-2])
        log_prob = _log_sum_exp(self.joint(torch.where(mask.unsqueeze(-1), x, 0)))
        return torch.where(mask.reshape(*mask.shape, *(1,) * len(self.batch)), log_prob, 0)

    def average_log_prob(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Mean log-density of valid frames, at least one, of `(utterances, frames, d)`: `(utterances, *batch)`."""
        if x.ndim != 3:
            raise ModelError(f"utterances have shape (utterances, frames, features), got {tuple(x.shape)}")
        if lengths is None:
            lengths = torch.full(x.shape[:1], x.shape[1], device=x.device)
        if lengths.shape != x.shape[:1] or not bool(((lengths > 0) & (lengths <= x.shape[1])).all()):
            raise ModelError(f"each of {len(x)} utterances needs a length in 1..{x.shape[1]}, got {lengths.tolist()}")
        scores = max(1, x.shape[0] * self.logits.numel())
        block = max(1, BLOCK_VALUES // scores)
        parts = [
            self.log_prob(frames, (lengths - index * block).clamp(0, frames.shape[1])).sum(1)
            for index, frames in enumerate(torch.split(x, block, dim=1))
        ]
        return torch.stack(parts).sum(0) / lengths.reshape(-1, *(1,) * len(self.batch))

    def responsibilities(self, x: Tensor) -> Tensor:
        """The posterior of every component for frames `(..., d)`: `(..., *batch, components)`, sums to 1."""
        return self.joint(x).softmax(-1)

    @torch.no_grad()
    def sample(self, frames: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw frames, `(frames, *batch, d)`; independent for each mixture of the batch."""
        mean = self.gaussians.mean.reshape(-1, self.components, self.features)
        root = torch.linalg.cholesky(self.gaussians.covariances())
        root = root.reshape(-1, self.components, self.features, self.features)
        weights = self.log_weights().exp().reshape(-1, self.components)
        drawn = torch.multinomial(weights, frames, replacement=True, generator=generator)
        rows = torch.arange(len(weights), device=drawn.device).unsqueeze(-1)
        noise = torch.randn(*drawn.shape, self.features, generator=generator, dtype=mean.dtype, device=mean.device)
        block = max(1, BLOCK_VALUES // (len(weights) * self.features**2))  # of frames, each with its own factor
        pieces = zip(torch.split(drawn, block, 1), torch.split(noise, block, 1), strict=True)
        x = torch.cat([mean[rows, k] + (root[rows, k] @ z.unsqueeze(-1)).squeeze(-1) for k, z in pieces], dim=1)
        drawn_frames: Tensor = x.transpose(0, 1).reshape(frames, *self.batch, self.features)
        return drawn_frames

    @torch.no_grad()
    def select(self, index: int) -> "GaussianMixture":
        """A copy of one entry along the first batch axis, which must have it."""
        if not self.batch or not -self.batch[0] <= index < self.batch[0]:
            raise ModelError(f"there is no mixture {index} in a batch of shape {self.batch}")
        bank = self.gaussians
        chosen = GaussianMixture(
            self.components, self.features, bank.kind, bank.floor, self.batch[1:], self.logits.dtype
        ).to(self.logits.device)
        for mine, theirs in zip(chosen.parameters(), self.parameters(), strict=True):
            mine.copy_(theirs[index])
        return chosen


def frame_mask(lengths: Tensor, frames: int) -> Tensor:
    """True for the valid frames of utterances of these lengths: `(...)` to `(..., frames)`."""
    return torch.arange(frames, device=lengths.device) < lengths.unsqueeze(-1)


def _log_sum_exp(joint: Tensor) -> Tensor:
    """`joint.logsumexp(-1)`, without its subnormal terms."""
    largest = joint.detach().amax(-1, keepdim=True)
    terms = (joint - largest).clamp_min(NEGLIGIBLE).exp()
    return largest.squeeze(-1) + terms.sum(-1).log()
