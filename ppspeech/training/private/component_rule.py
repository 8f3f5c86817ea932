"""Which component of its class an example belongs to, by a rule that costs no privacy or has paid for it.

Large-margin mixtures need a component for every example. Labels from an EM run on the private data, as in Pathak and
Raj 2012, leak: one record can change every label. A label must be a function of the example alone and of what is
public or was released with its own guarantee.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.models.gaussian import cost, phi_from_moments
from ppspeech.privacy.accounting import Event


@dataclass(frozen=True, eq=False)
class ComponentRule:
    """The cheapest of the K Gaussians of an example's class.

    Attributes:
        phi: `(classes, components, d + 1, d + 1)`.
        events: what making them has cost; empty for Gaussians that never saw the private data.
    """

    phi: Tensor
    events: tuple[Event, ...] = ()

    def __post_init__(self) -> None:
        if self.phi.ndim != 4 or self.phi.shape[-1] != self.phi.shape[-2]:
            raise PrivacyError(f"phi must be (classes, components, p, p), got {tuple(self.phi.shape)}")

    @classmethod
    def public_centroids(cls, centroids: Tensor) -> "ComponentRule":
        """The nearest of K centroids `(classes, components, d)` that were chosen without the private data."""
        if centroids.ndim != 3:
            raise PrivacyError(f"centroids must be (classes, components, d), got {tuple(centroids.shape)}")
        size = centroids.shape[-1]
        return cls(phi_from_moments(centroids, torch.eye(size).to(centroids).expand(*centroids.shape, size)))

    @classmethod
    def released(cls, phi: Tensor, events: tuple[Event, ...]) -> "ComponentRule":
        """The most likely component under a mixture that a private mechanism released.

        Raises:
            PrivacyError: without the events of that release: they are part of the model's cost.
        """
        if not events:
            raise PrivacyError("a mixture trained on private data must come with the events of its release")
        return cls(phi, events)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Components `(n,)` of examples `(n, d)` with classes `(n,)`."""
        costs = cost(x, self.phi.to(x))
        own = y.view(-1, 1, 1).expand(-1, 1, costs.shape[-1])
        return costs.gather(1, own).squeeze(1).argmin(-1)
