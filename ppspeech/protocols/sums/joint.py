"""What training asks of the other parties: the sum of everyone's vectors, with noise that nobody knows or without.

A recipe that learns from sums alone (averages of models, gradients, statistics) takes a `JointSum` and knows nothing
of keys, masks or the network; its loop is the same whether the sum comes over TLS, in memory or from one process.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ppspeech.arrays import Whole
from ppspeech.errors import RangeError
from ppspeech.privacy import Guarantee
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.mechanisms import PolyaShares, SkellamShares
from ppspeech.protocols.sums.aggregation import noisy_steps

Shares = SkellamShares | PolyaShares
WholeSum = Callable[[Whole], Whole]
"""From one party's whole numbers to the sum of all parties': `PartySession.sum`, or a stand-in of an experiment."""

PLAIN_STEP = 2.0**-16


class JointSum:
    """From our vector to the sum of all parties', each a release; our `shares` of the noise say what the grid is.

    A release is booked before our vector is sent: one whose sum does not come back may have been seen all the same.
    """

    def __init__(self, add_up: WholeSum, shares: Shares) -> None:
        self.shares = shares
        self._add_up = add_up
        self._releases = 0

    def __call__(self, value: Tensor) -> Tensor:
        """The noisy sum, like our vector, which has the noise's size; `RoundEndedError` and no sum without a party."""
        steps = noisy_steps(value, self.shares)
        self._releases += 1
        return _to_values(self._add_up(steps), self.shares.grid.step, value)

    def account(self) -> Accountant:
        """Every sum so far, to be composed with whatever else touches the same data."""
        account = Accountant(self.shares.relation)
        if self._releases:
            account.compose(self.shares.event, self._releases)
        return account

    def guarantee(self, delta: float) -> Guarantee:
        """What all sums so far promise together."""
        return self.account().guarantee(delta, assumptions=self.shares.assumptions)


class PlainSum:
    """From our vector to the exact sum of all parties', to a grid of `step`, a power of two: secret sharing without
    privacy. The sum itself is seen by all, and gives away what it gives away.
    """

    def __init__(self, add_up: WholeSum, step: float = PLAIN_STEP) -> None:
        self.step = step
        self._add_up = add_up

    def __call__(self, value: Tensor) -> Tensor:
        """The sum, of the shape and type of our own vector; `RoundEndedError` and no sum if a party is missing."""
        if not bool(torch.isfinite(value).all()):
            raise RangeError("cannot add up infinities or NaN: remove them before")
        steps = (value.detach().double() / self.step).round().clamp(-(2.0**62), 2.0**62).to(torch.int64)
        return _to_values(self._add_up(steps.numpy(force=True).ravel()), self.step, value)


def _to_values(total: Whole, step: float, like: Tensor) -> Tensor:
    return (torch.from_numpy(total).to(torch.float64) * step).to(like).reshape(like.shape)
