"""The memory of L-BFGS: steps that know the curvature of the last few."""

from collections import deque

from torch import Tensor


class StepMemory:
    """Pairs of steps s and gradient changes y, and the direction they suggest (Nocedal and Wright, algorithm 7.4).

    Phi is not convex, so a pair may show negative curvature; it is damped (Powell's rule), so that every direction is
    one of descent. The last `size` pairs are kept.
    """

    def __init__(self, size: int = 20) -> None:
        self._pairs: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._pairs)

    def clear(self) -> None:
        """Forget everything: the next direction is the steepest."""
        self._pairs.clear()

    def learn(self, step: Tensor, change: Tensor) -> None:
        """Remember a step and how the gradient changed along it, `(size,)` each."""
        scale = self._scale()  # the curvature 1 / scale is believed where the pair shows less than a fifth of it
        believed = step.square().sum() / scale
        shown = (step * change).sum()
        if shown < 0.2 * believed:
            keep = 0.8 * believed / (believed - shown)
            change = keep * change + (1 - keep) * step / scale
        self._pairs.append((step, change, (step * change).sum()))

    def direction(self, gradient: Tensor) -> Tensor:
        """A direction of descent, `(size,)`: minus an estimated inverse Hessian times the gradient."""
        left = gradient.clone()
        shares = []
        for step, change, curvature in reversed(self._pairs):
            share = (step * left).sum() / curvature
            left = left - share * change
            shares.append(share)
        left = left * self._scale()
        for (step, change, curvature), share in zip(self._pairs, reversed(shares), strict=True):
            left = left + (share - (change * left).sum() / curvature) * step
        return -left

    def _scale(self) -> Tensor | float:
        """The inverse curvature along the last step."""
        if not self._pairs:
            return 1.0
        _, change, curvature = self._pairs[-1]
        return curvature / change.square().sum()
