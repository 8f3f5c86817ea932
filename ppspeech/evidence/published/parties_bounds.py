"""What Pathak, Rane and Raj 2010 claims about averaged classifiers (theorems 4.2 to 4.4), and the bound that does hold.

Theorem 4.2 takes every local objective's gradient at another's minimizer to be at most 1 / n_l, where it is at most 1:
two parties whose data differ in kind break it at any size, and 4.3 and 4.4, which rest on it, lose their proof. On
data of one kind the numbers may still be above what is measured. They are kept to be drawn beside it, and none is a
guarantee. Correction 3.6 in docs/theory/together.md.
"""

import math
from dataclasses import dataclass

from ppspeech.privacy import check_count, check_positive, check_probability


@dataclass(frozen=True, kw_only=True)
class AggregateBounds:
    """The paper's setting: logistic losses averaged over n_j, plus lambda |w|^2, examples in the unit ball."""

    parties: int
    smallest: int
    penalty: float
    dimension: int
    failure: float = 0.05

    def __post_init__(self) -> None:
        check_count("parties", self.parties)
        check_count("smallest", self.smallest)
        check_positive("penalty", self.penalty)
        check_count("dimension", self.dimension)
        check_probability("failure", self.failure)

    @property
    def claimed_distance(self) -> float:
        """Theorem 4.2: |average - w*|_2 <= (K - 1) / (n_(1) lambda). Does not hold for data that differ in kind."""
        return (self.parties - 1) / (self.smallest * self.penalty)

    def claimed_excess(self, epsilon: float) -> float:
        """Theorem 4.3: what averaging and noise add to the regularized empirical risk."""
        check_positive("epsilon", epsilon)
        k, n, d, scale = self.parties - 1, self.smallest, self.dimension, (self.penalty + 1) / self.penalty**2
        logarithm = math.log(d / self.failure)
        averaging = k**2 / (2 * n**2)
        noise = 2 * d**2 / (n**2 * epsilon**2) * logarithm**2
        both = 2 * d * k / (n**2 * epsilon) * logarithm
        return scale * (averaging + noise + both)

    def claimed_true_excess(self, epsilon: float, records: int) -> float:
        """Theorem 4.4: what averaging and noise add to the true risk, with n records in all."""
        check_count("records", records)
        sampling = 16 / (self.penalty * records) * (32 + math.log(1 / self.failure))
        return 2 * self.claimed_excess(epsilon) + sampling

    def distance(self, share: float) -> float:
        """What holds for any data: |w_j - w*|_2 <= (1 - n_j / n) / lambda, for a party with this share of all data."""
        check_probability("share", share, one=True)
        return (1 - share) / self.penalty
