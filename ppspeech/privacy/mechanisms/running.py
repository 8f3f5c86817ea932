r"""Second moments of everyone so far, told again after every round: what online learning follows.

Sums over blocks of 1, 2, 4, ... rounds are released once each, with noise; the sum of the first t rounds is that of at
most L = floor(log2 T) + 1 blocks, one for every 1 in the binary digits of t (Dwork, Naor, Pitassi and Rothblum 2010;
Chan, Shi and Song 2011). A row is in at most L blocks, of different sizes: what it costs is L releases of Analyze
Gauss, where T releases of the whole sum would cost T.

The leader, the space of the first k directions of the noisy sum, is then post-processing (follow the perturbed leader:
Dwork, Talwar, Thakurta and Zhang 2014, section 5; Kalai and Vempala 2005), and so is all that is predicted by it.
Proof: Theorem 1.31 in docs/theory/release.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.hockey_stick import least
from ppspeech.privacy.audit.catalogue import ONE_RECORD, scored_report
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.pca import AnalyzeGauss
from ppspeech.privacy.parameters import check_count
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.rows import OWN_ROWS

MOST_AUDITED = 300  # streams


@mechanism("running_moments", DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class RunningMoments:
    """Tells the sum of a a' of all rounds so far, after each of `rounds`, T, which is public.

    Formal guarantee: all that is told together is (epsilon, delta)-DP for the row of one round, there or zero (unit
    `record` or `frame`), or exchanged, to the bit. `block` releases one block; what is told is a function of blocks.
    """

    rounds: int
    block: AnalyzeGauss

    def __post_init__(self) -> None:
        check_count("rounds", self.rounds)
        if self.relation.unit not in OWN_ROWS:
            raise PrivacyError(f"a round is one row, a record or a frame, not a {self.relation.unit}")

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, rounds: int, radius: float, features: int, relation: Relation
    ) -> "RunningMoments":
        """The least noise on blocks with which all that is told is (epsilon, delta)-DP."""
        terms: dict[str, Any] = {"radius": radius, "features": features, "relation": relation, "delta": delta}

        def at(sigma: float) -> RunningMoments:
            return cls(rounds=rounds, block=AnalyzeGauss(sigma=sigma, **terms))

        start = AnalyzeGauss.calibrated(epsilon=epsilon, **terms).sigma * math.sqrt(rounds.bit_length())
        refusal = f"no practical noise reaches epsilon={epsilon}, delta={delta}"
        found = least(lambda s: at(s).event.delta(epsilon) <= delta, start, grow=1.01, tolerance=1e-6, refusal=refusal)
        return at(found)

    @property
    def levels(self) -> int:
        """L: in how many blocks a row may be."""
        return self.rounds.bit_length()

    @property
    def relation(self) -> Relation:
        """The block's."""
        return self.block.relation

    @property
    def event(self) -> DiscreteGaussianEvent:
        """What one row costs: a block of every size, together one longer vector."""
        one, count = self.block.event, self.levels
        terms = {"l2": math.sqrt(count) * one.l2, "l1": count * one.l1, "dimension": count * one.dimension}
        return replace(one, **terms)  # type: ignore[arg-type]

    @property
    def guarantee(self) -> Guarantee:
        """What all that is told promises."""
        assumptions = ("the number of rounds is public, and a round without anybody is a row of zeros",)
        return Guarantee.of(self.event, self.block.delta, assumptions=assumptions)

    def follow(self, rows: Iterator[Tensor]) -> Iterator[Tensor]:
        """After every row `(features,)` the noisy sum of all so far, `(features, features)`; PrivacyError beyond T."""
        open_sums: dict[int, Tensor] = {}  # of the rounds of the block that is not full yet, by level
        told: dict[int, Tensor] = {}  # the released blocks that make up the sum so far, by level
        for number, row in enumerate(rows, start=1):
            if number > self.rounds:
                raise PrivacyError(f"calibrated for {self.rounds} rounds: there is nothing left for another")
            full = (number & -number).bit_length() - 1
            own = row.reshape(1, -1)
            held = torch.cat([own, *(open_sums.pop(level) for level in range(full) if level in open_sums)])
            for level in range(full):
                told.pop(level, None)
            told[full] = self.block.release(held).value
            open_sums[full] = held
            yield torch.stack(list(told.values())).sum(0)

    def release(self, rows: Tensor) -> Released[Tensor]:
        """All of it for rows `(n <= rounds, features)` at once: `(n, features, features)`."""
        told = list(self.follow(iter(rows)))
        size = self.block.features
        value = torch.stack(told) if told else torch.zeros(0, size, size, dtype=torch.float64)
        return Released(value, self.event, self.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """Of one number in three rounds, the first of which somebody is in or not: its blocks are of 1 and 2 rounds."""
        one = cls.calibrated(epsilon=1.0, delta=1e-5, rounds=3, radius=1.0, features=1, relation=ONE_RECORD)

        def scores(present: float) -> Tensor:
            rows = torch.tensor([[present], [0.0], [0.0]], dtype=torch.float64)
            told = torch.stack([one.release(rows).value for _ in range(min(runs, MOST_AUDITED))])
            return told[:, 0, 0, 0] + told[:, 1, 0, 0]

        return [scored_report("running_moments", scores(1.0), scores(0.0), one.guarantee, [(one.event, 1)])]
