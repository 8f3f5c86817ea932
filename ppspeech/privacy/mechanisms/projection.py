"""Random projection and rotation of a table (Liu, Kargupta and Ryan 2006): distances stay, values are mixed.

`columns` mixes what is known of each person, X R, and keeps inner products of rows; `rows` mixes the people, R X, and
keeps inner products of columns. Not private: mixed speakers are what separation of sources is about, and a few known
rows solve for R. Projected data with noise that is private: Johnson-Lindenstrauss releases. Correction 4.17 in
docs/theory/filters.md.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import NonPrivateEvent
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_choice, check_count
from ppspeech.privacy.relation import ONE_ROW, Relation
from ppspeech.privacy.samplers.randomness import standard_normal

Side = Literal["columns", "rows"]


@mechanism("random_projection")
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomProjection:
    """Mixes `inputs` (m) columns or rows into `outputs` (k) by a fresh secret matrix.

    k = m: a rotation, uniform among all, which keeps inner products exactly. Else independent N(0, 1/k), which keeps
    them in the mean, with variance at most 2/k for unit vectors. **No guarantee**: for k >= m independent sources are
    separated, and m known rows give the matrix for any k.
    """

    inputs: int
    outputs: int
    side: Side = "columns"
    relation: Relation = ONE_ROW

    def __post_init__(self) -> None:
        check_choice("side", self.side, get_args(Side))
        check_count("inputs", self.inputs)
        check_count("outputs", self.outputs)

    @property
    def event(self) -> NonPrivateEvent:
        """Infinite epsilon."""
        return NonPrivateEvent(f"{self.inputs} {self.side} projected to {self.outputs}", self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """None."""
        mixed = "independent sources are separated" if self.outputs >= self.inputs else "inner products are told"
        caveat = f"{mixed}, and {self.inputs} known pairs of what was mixed and what came of it give the matrix"
        return Guarantee(kind="none", relation=self.relation, caveat=caveat)

    def release(self, table: Tensor) -> Released[Tensor]:
        """The mixed table: `(rows, k)` of `(rows, m)`, or `(k, columns)` of `(m, columns)`."""
        if table.dim() != 2 or table.shape[1 if self.side == "columns" else 0] != self.inputs:
            raise PrivacyError(f"a table with {self.inputs} {self.side} is mixed, got shape {tuple(table.shape)}")
        matrix = self._matrix(table)
        mixed = table @ matrix if self.side == "columns" else matrix.mT @ table
        return Released(mixed, self.event, self.guarantee)

    def _matrix(self, like: Tensor) -> Tensor:
        drawn = standard_normal((self.inputs, self.outputs))
        if self.outputs != self.inputs:
            return (drawn / math.sqrt(self.outputs)).to(like)
        rotation, triangle = torch.linalg.qr(drawn)
        turned: Tensor = rotation * torch.sign(torch.diagonal(triangle))
        return turned.to(like)
