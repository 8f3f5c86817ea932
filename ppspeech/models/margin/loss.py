"""The margin loss of Pathak and Raj 2012: how much cheaper the right class must be than the others."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.convex import Expansion, Head
from ppspeech.models.margin.hinge import huber_hinge, huber_hinge_curvature, huber_hinge_slope

Competitor = Literal["each", "lse"]


@dataclass(frozen=True)
class MarginLoss:
    """The margin loss of costs `(n, classes, components)`.

    Attributes:
        width: h of the Huber hinge; 0 is the hinge.
        competitor: `each` (the paper): a hinge for every wrong class; `lse`: one hinge for the soft minimum over all
            wrong classes, whose gradient does not grow with the number of classes.
        class_average: divide by the number of wrong classes.
    """

    width: float = 0.5
    competitor: Competitor = "each"
    class_average: bool = False

    def __post_init__(self) -> None:
        if not self.width >= 0:
            raise ModelError(f"width (h of the Huber hinge) must be >= 0, got {self.width}")
        if self.competitor not in get_args(Competitor):
            raise ModelError(f"competitor must be 'each' or 'lse', got {self.competitor!r}")

    def losses(self, costs: Tensor, right: Tensor) -> Tensor:
        """Losses `(n,)` of costs `(n, classes, components)`, for autograd; `right` is 1 at the right one, else 0."""
        wrong = right.sum(-1) == 0
        if self.competitor == "lse":
            rivals = (-costs).masked_fill(~wrong.unsqueeze(-1), -torch.inf)
            soft = rivals.flatten(-2).logsumexp(-1, keepdim=True)
            wrong = torch.ones_like(soft, dtype=torch.bool)
        else:
            soft = (-costs).logsumexp(-1)
        u = 1 + (costs * right).sum((-2, -1)).unsqueeze(-1) + soft
        losses: Tensor = huber_hinge(u, self.width).masked_fill(~wrong, 0).sum(-1) * self.scale(costs.shape[-2])
        return losses

    def scale(self, classes: int) -> float:
        """What every hinge is multiplied by."""
        return 1 / (classes - 1) if self.class_average else 1.0

    def hinges(self, classes: int) -> float:
        """The total weight of the hinges of one example."""
        return (1 if self.competitor == "lse" else classes - 1) * self.scale(classes)

    def head(self, right: Tensor) -> Head:
        """The same losses as a function of flattened costs, with slopes and curvature in closed form."""
        if right.shape[-1] == 1 and self.competitor == "each":
            return self._one_component(right.squeeze(-1))
        return self._mixture(right)

    def _one_component(self, right: Tensor) -> Head:
        """u_c = 1 + t_y - t_c: every hinge is a function of one difference of costs."""
        examples, classes = right.shape
        own = right.argmax(-1, keepdim=True)  # (n, 1)
        others = (right == 0).nonzero()[:, 1].view(examples, classes - 1)
        scale = self.scale(classes)

        def spread(rivals: Tensor) -> Tensor:
            """From values of the wrong classes `(..., n, classes - 1)` to a gradient by all costs."""
            out = rivals.new_empty(*rivals.shape[:-1], classes)
            out.scatter_(-1, others.expand_as(rivals), -rivals)
            total = rivals if classes == 2 else rivals.sum(-1, keepdim=True)
            return out.scatter_(-1, own.expand_as(total), total)

        def expand(costs: Tensor) -> Expansion:
            u = 1 + costs.gather(-1, own) - costs.gather(-1, others)

            def curve(direction: Tensor) -> Tensor:
                to, away = own.expand(*direction.shape[:-1], 1), others.expand(*direction.shape[:-1], -1)
                moved = direction.gather(-1, to) - direction.gather(-1, away)
                return spread(huber_hinge_curvature(u, self.width) * moved * scale)

            return Expansion(
                lambda: huber_hinge(u, self.width).sum(-1) * scale,
                spread(huber_hinge_slope(u, self.width) * scale),
                curve,
            )

        return expand

    def _mixture(self, right: Tensor) -> Head:
        """u_c = 1 + t_ym + log sum exp(-t_c.), or one such over all wrong classes."""
        shape = right.shape
        pooled = self.competitor == "lse"
        wrong = (right.sum(-1) == 0).to(right)
        counts = (torch.ones_like(wrong[:, :1]) if pooled else wrong) * self.scale(shape[1])

        def expand(scores: Tensor) -> Expansion:
            costs = scores.view(shape)
            if pooled:
                rivals = (-costs).masked_fill(wrong.unsqueeze(-1) == 0, -torch.inf)
                soft = rivals.flatten(-2).logsumexp(-1, keepdim=True)
            else:
                rivals = -costs
                soft = rivals.logsumexp(-1)
            shares = (rivals - soft.unsqueeze(-1)).exp()
            u = 1 + (costs * right).sum((-2, -1)).unsqueeze(-1) + soft
            slope = huber_hinge_slope(u, self.width) * counts
            curvature = huber_hinge_curvature(u, self.width) * counts

            def spread(values: Tensor) -> Tensor:
                return values.sum(-1)[..., None, None] * right - values.unsqueeze(-1) * shares

            def curve(direction: Tensor) -> Tensor:
                moved = direction.reshape(*direction.shape[:-1], *shape[1:])
                shared = moved * shares
                drift = shared.flatten(-2).sum(-1, keepdim=True) if pooled else shared.sum(-1)
                bend = curvature * ((moved * right).sum((-2, -1)).unsqueeze(-1) - drift)
                turn = slope.unsqueeze(-1) * (shared - shares * drift.unsqueeze(-1))
                return (spread(bend) + turn).flatten(-2)

            return Expansion(lambda: (huber_hinge(u, self.width) * counts).sum(-1), spread(slope).flatten(-2), curve)

        return expand
