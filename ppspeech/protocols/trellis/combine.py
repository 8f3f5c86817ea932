"""How scores of different paths become one: the best of them, or the logarithm of their sum."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto import Scale
from ppspeech.crypto.shares import LogAdd, Shared, ShareEngine, log_add, maximum

TABLE_STEP = 3
"""Log of the table's step of log-add over 1 nat: 1/8."""


@dataclass(frozen=True)
class Combine:
    """`max` of shared scores in nats, or `log(exp + exp)`."""

    operation: Literal["forward", "viterbi"]
    scale: Scale

    @cached_property
    def _log_add(self) -> LogAdd:
        step = max(0, self.scale.fraction - TABLE_STEP)
        return LogAdd(self.scale.ring, self.scale.fraction, step)

    def __call__(self, engine: ShareEngine, left: Residues, right: Residues) -> Residues:
        """Shares of the combined scores, of any shape that both have."""
        if self.operation == "viterbi":
            ring = self.scale.ring
            return maximum(Shared(engine, left, ring), Shared(engine, right, ring)).residues
        return log_add(engine, left.reshape(-1), right.reshape(-1), self._log_add).reshape(left.shape)

    def reduce(self, engine: ShareEngine, scores: Residues) -> Residues:
        """All scores along the last axis combined, in a tree: `(..., n)` to `(...)`."""
        while (n := scores.shape[-1]) > 1:
            half = n // 2
            joined = self(engine, scores[..., :half], scores[..., half : 2 * half])
            scores = np.concatenate((joined, scores[..., 2 * half :]), axis=-1)
        return scores[..., 0]
