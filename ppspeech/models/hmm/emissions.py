"""What the states of a bank of hidden Markov models emit: symbols, Gaussians, or mixtures of Gaussians.

An emission is a module that knows three things: the log-likelihood of frames in states, the sufficient
statistics of frames given how much each state owns them (one tensor a state, which can be added), and the
parameters that are best for such statistics.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.gaussians import Covariance, Gaussians
from ppspeech.models.gaussian.phi import augment, phi_from_moments
from ppspeech.models.hmm.forward_backward import LOG_ZERO

ALIVE = 1e-6  # frames a state, component or row must own to be re-estimated; below it, it is dead and stays as it was


@dataclass(frozen=True, slots=True)
class Prior:
    """What an M-step believes before it sees data; all zero is maximum likelihood.

    Attributes:
        covariance: the weight, in frames, of the covariance pooled over all states of the bank. A state that owns n
            frames gets (n C + weight C_pooled) / (n + weight), the mode under an inverse-Wishart prior.
        counts: added to the expected count of every allowed transition, initial state, mixture weight and symbol.
    """

    covariance: float = 0.0
    counts: float = 0.0

    def __post_init__(self) -> None:
        if self.covariance < 0 or self.counts < 0:
            raise ModelError(f"the weights of a prior must be >= 0, got {self}")


MAXIMUM_LIKELIHOOD = Prior()


class DiscreteEmission(nn.Module):
    """A table of symbol probabilities for every state; frames are integers `(batch, frames)`."""

    def __init__(self, models: int, states: int, symbols: int, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        if min(models, states, symbols) < 1:
            raise ModelError(f"models, states and symbols must be >= 1, got {models}, {states}, {symbols}")
        self.models, self.states, self.symbols = models, states, symbols
        self.logits = nn.Parameter(torch.zeros(models, states, symbols, dtype=dtype))

    def check(self, frames: Tensor) -> None:
        """Refuse frames that are not symbols of the alphabet. It looks at the values: keep it out of steps."""
        if frames.ndim != 2 or frames.is_floating_point():
            raise ModelError(f"symbols must be integers (batch, frames), got {frames.dtype} {tuple(frames.shape)}")
        if frames.numel() and not 0 <= int(frames.min()) <= int(frames.max()) < self.symbols:
            raise ModelError(f"symbols must lie in 0..{self.symbols - 1}, got {int(frames.min())}..{int(frames.max())}")

    def log_likelihood(self, frames: Tensor, models: Tensor | int | None = None) -> Tensor:
        """`(batch, frames, models, states)`; `(batch, frames, states)` if `models` picks one (for all, or each)."""
        table = self.logits.log_softmax(-1)
        if models is None:
            return table[:, :, frames].permute(2, 3, 0, 1)
        own = table[models].expand(len(frames), -1, -1)
        return own.gather(-1, _spread(frames, self.states)).mT

    def statistics(self, frames: Tensor, occupancy: Tensor, models: Tensor | int) -> Tensor:  # noqa: ARG002
        """Expected symbol counts of every utterance, `(batch, states, symbols)`."""
        counts = occupancy.new_zeros(len(frames), self.states, self.symbols)
        return counts.scatter_add(-1, _spread(frames, self.states), occupancy.mT)

    @torch.no_grad()
    def maximize_(self, statistics: Tensor, prior: Prior = MAXIMUM_LIKELIHOOD) -> None:
        """Relative counts; a dead state keeps its table."""
        set_logits_(self.logits, statistics + prior.counts)


class GaussianEmission(nn.Module):
    """A Gaussian, or a mixture of them, for every state; frames are `(batch, frames, features)`.

    `tied` shares one covariance among the states of a model, or, with several components, among the components of a
    state. The M-step with the floor is the exact maximum under it, so EM still never loses likelihood.
    """

    def __init__(
        self,
        models: int,
        states: int,
        features: int,
        components: int = 1,
        covariance: Covariance = "full",
        floor: float = 1e-3,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        if components < 1:
            raise ModelError(f"components must be >= 1, got {components}")
        self.models, self.states, self.features, self.components = models, states, features, components
        shape = (models, states) if components == 1 else (models, states, components)
        self.gaussians = Gaussians(shape, features, covariance, floor, dtype)
        # One component has nothing to weigh: no parameter that training could not move.
        self.weight_logits = nn.Parameter(torch.zeros(shape, dtype=dtype)) if components > 1 else None

    @property
    def whole(self) -> bool:
        """Whether covariances have off-diagonal entries."""
        return self.gaussians.kind in {"full", "tied"}

    def check(self, frames: Tensor) -> None:
        """Refuse frames of another size or with values that are not finite. It looks at the values."""
        if frames.ndim != 3 or frames.shape[-1] != self.features:
            raise ModelError(f"frames must be (batch, frames, {self.features}), got {tuple(frames.shape)}")
        low, high = torch.aminmax(frames) if frames.numel() else (frames.sum(), frames.sum())
        if not bool(low.isfinite() & high.isfinite()):
            raise ModelError("frames hold values that are not finite; padding must be finite too, such as 0")

    def log_likelihood(self, frames: Tensor, models: Tensor | int | None = None, least: Tensor | None = None) -> Tensor:
        """`(batch, frames, models, states)`; `(batch, frames, states)` if `models` picks one (for all, or each).

        Every component's density counts as `least` of its state, `(models, states)`, where it is below.
        """
        density = self._log_density(frames, models)
        if least is not None:
            density = torch.maximum(density, least if self.components == 1 else least.unsqueeze(-1))
        return density if self.components == 1 else torch.logsumexp(density, dim=-1)

    def statistics(self, frames: Tensor, occupancy: Tensor, models: Tensor | int) -> Tensor:
        """Moments of every utterance's frames as its states own them, by shares `(batch, frames, states)`.

        Returns `(batch, states, [components,] p, p)`, the sums of zz' with z = [x, 1], where covariances are matrices;
        otherwise `(batch, states, [components,] 2 d + 1)`, the sums of [x^2, x, 1].
        """
        if self.components > 1:
            share = self._log_density(frames, models).softmax(dim=-1)
            occupancy = (occupancy.unsqueeze(-1) * share).flatten(2)
        return self.moments(frames, occupancy)

    def moments(self, frames: Tensor, occupancy: Tensor) -> Tensor:
        """The sums `statistics` gives, for an occupancy `(batch, frames, states [* components])`."""
        z = augment(frames)
        shape = (len(frames), *self.gaussians.shape[1:])
        if not self.whole:
            return (occupancy.mT @ torch.cat([frames.square(), z], dim=-1)).view(*shape, -1)
        owned = (occupancy.unsqueeze(-1) * z.unsqueeze(-2)).flatten(2)
        return (owned.mT @ z).view(*shape, z.shape[-1], z.shape[-1])

    @torch.no_grad()
    def maximize_(self, statistics: Tensor, prior: Prior = MAXIMUM_LIKELIHOOD) -> None:
        """Set means, covariances and weights from moments summed over each model, `(models, ...)`.

        A Gaussian that owns no frame keeps its parameters; one that owns a single frame gets the floor in every
        direction, or the pooled covariance if the prior has a weight.
        """
        count, mean, scatter = self._central(statistics)
        dead = count < ALIVE
        mean = torch.where(dead.unsqueeze(-1), self.gaussians.mean, mean)
        around = [1] * (scatter.ndim - count.ndim)
        pooled = scatter.flatten(0, count.ndim - 1).sum(0) / count.sum().clamp_min(ALIVE)
        if self.gaussians.kind == "tied":
            count, scatter = count.sum(-1, keepdim=True), scatter.sum(count.ndim - 1, keepdim=True)
        owned = (count + prior.covariance).clamp_min(ALIVE).view(*count.shape, *around)
        variances = (scatter + prior.covariance * pooled) / owned
        dead = (count < ALIVE).view(*count.shape, *around)
        self.gaussians.set_moments_(mean, torch.where(dead, self.gaussians.variances(), variances))
        if self.weight_logits is not None:
            counts = statistics[..., -1, -1] if self.whole else statistics[..., -1]
            set_logits_(self.weight_logits, counts + prior.counts)

    def _log_density(self, frames: Tensor, models: Tensor | int | None) -> Tensor:
        """Weighted log-densities, `(batch, frames, [models,] states, [components])`."""
        log_weight = 0.0 if self.weight_logits is None else self.weight_logits.log_softmax(-1)
        if models is None:
            return self.gaussians.log_density(frames, log_weight)
        z = augment(frames)
        if isinstance(models, int):
            of_one = log_weight if isinstance(log_weight, float) else log_weight[models]
            phi = phi_from_moments(self.gaussians.mean[models], self.gaussians.covariances()[models], of_one)
            turned = z @ phi.flatten(0, -3).transpose(0, 1).flatten(1)
        else:
            # One small product an utterance, against the Gaussians of its own model only.
            phi = self.gaussians.phi(log_weight).flatten(1, -3)
            turned = z @ phi.transpose(1, 2).flatten(2)[models]
        costs = (turned.view(*z.shape[:2], -1, z.shape[-1]) * z.unsqueeze(-2)).sum(-1)
        return -costs.view(*z.shape[:2], *self.gaussians.shape[1:])

    def _central(self, statistics: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Counts `(*shape)`, means `(*shape, d)` and scatter in the form of the covariance."""
        d = self.features
        if self.whole:
            count, total = statistics[..., -1, -1], statistics[..., :-1, -1]
            mean = total / count.clamp_min(ALIVE).unsqueeze(-1)
            return count, mean, statistics[..., :-1, :-1] - total.unsqueeze(-1) * mean.unsqueeze(-2)
        squares, total, count = statistics[..., :d], statistics[..., d:-1], statistics[..., -1]
        mean = total / count.clamp_min(ALIVE).unsqueeze(-1)
        scatter = squares - total * mean
        return count, mean, scatter.mean(-1, keepdim=True) if self.gaussians.kind == "spherical" else scatter


Emission = DiscreteEmission | GaussianEmission


@torch.no_grad()
def set_logits_(logits: Tensor, counts: Tensor, allowed: Tensor | None = None) -> None:
    """Set logits to the logarithm of relative counts along the last axis; a row without counts stays."""
    if allowed is not None:
        counts = torch.where(allowed, counts, 0)
    total = counts.sum(-1, keepdim=True)
    relative = (counts / total.clamp_min(ALIVE)).clamp_min(torch.finfo(logits.dtype).tiny).log()
    logits.copy_(torch.where(total < ALIVE, logits, relative))


def masked_log_softmax(logits: Tensor, allowed: Tensor) -> Tensor:
    """ln softmax over what is allowed; the rest is impossible and has no gradient."""
    return torch.where(allowed, torch.where(allowed, logits, LOG_ZERO).log_softmax(-1), LOG_ZERO)


def _spread(frames: Tensor, states: int) -> Tensor:
    """`(batch, frames)` to `(batch, states, frames)`."""
    return frames.unsqueeze(1).expand(-1, states, -1)
