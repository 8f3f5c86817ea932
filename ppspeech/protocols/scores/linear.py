"""Speakers scored linearly: embeddings or supervectors, one encrypted product for all models and cohort at once.

    score_u = φ w_u + b_u,   Z-norm folded in: w_u / σ_u, (b_u - μ_u) / σ_u

Without T-norm the threshold is taken off the constants. With it, all columns are measured from the cohort's mean,
which is linear too, and the cohort's columns are scaled by θ / sqrt(cohort - 1): `speakers.norm` then needs their
squares only, and the threshold never leaves the weights.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Ring, Scale
from ppspeech.crypto.lattice import (
    EncodedWeights,
    ErrorBound,
    LatticeParameters,
    MatrixPlan,
    Precision,
    encode_weights,
    error_bound,
    plan_product,
)
from ppspeech.crypto.shares import Shared, ShareEngine, choose, concatenate
from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols.meeting import Meeting

SCORE_BITS = 21  # of a shared score: a comparison of 21 bits takes two rounds, of 22 three
WEIGHT_BITS = 18  # after the point of a weight
SLACK = 1 + 1e-6  # by what an embedding may be longer than its bound: one of unit length in single precision is


@dataclass(frozen=True)
class LinearPlan:
    """What both parties know of a linear scorer.

    Attributes:
        features: numbers of an embedding φ.
        models: how many are scored; the claimed one hides among them.
        cohort: models of T-norm, 0 without.
        norm: public bound on the length |φ|; 1 for embeddings of unit length.
        reach: scores stay within ±2^reach; the finer the smaller it is.
    """

    features: int
    models: int
    cohort: int = 0
    norm: float = 1.0
    reach: int = 5

    def __post_init__(self) -> None:
        if self.features < 1 or self.models < 1 or self.cohort < 0 or self.cohort == 1:
            raise ModelError(f"a plan has features, models, and a cohort of none or at least two, got {self}")
        if not 0 < self.norm < 2.0**20 or not -10 <= self.reach <= 19:
            raise RangeError(f"lengths are bounded by up to 2^20 and scores by 2^-10 to 2^19, got {self}")

    @property
    def columns(self) -> int:
        """Models and cohort."""
        return self.models + self.cohort

    @property
    def scale(self) -> Scale:
        """Of the shared scores: two bits more than they need, so that differences fit and a dummy is below all."""
        return Scale(SCORE_BITS, SCORE_BITS - 2 - self.reach)

    @property
    def ring(self) -> Ring:
        """Of the shared scores."""
        return self.scale.ring

    @cached_property
    def product(self) -> MatrixPlan:
        """How one embedding is multiplied into all columns."""
        weights = Scale(bits=30, fraction=WEIGHT_BITS)
        precision = Precision(LatticeParameters(), limit=self.norm, weights=weights, result=self.scale)
        return plan_product(1, self.features, self.columns, precision)

    def rows(self, voice: Reals) -> Reals:
        """The client's factor: an embedding `(features,)` as a row. Raises RangeError if it is not within the bound."""
        return check_vectors(np.asarray(voice, np.float64)[None], self.features, self.norm, "embeddings")

    def claimed_scores(self, engine: ShareEngine, shares: Residues, claimed: int | None) -> Shared:
        """The claimed model's score and the cohort's, `(1 + cohort,)`, of shares `(1, columns)`; the second claims."""
        every = Shared(engine, shares, self.ring)
        return concatenate([choose(every[:, : self.models], claimed), every[0, self.models :]])

    def all_scores(self, engine: ShareEngine, shares: Residues) -> Shared:
        """All models' and the cohort's scores, `(columns,)`."""
        return Shared(engine, shares[0], self.ring)


def check_vectors(vectors: Reals, features: int, norm: float, what: str) -> Reals:
    """Vectors `(count, features)`; a RangeError for other shapes, numbers not finite, or one longer than the bound."""
    given = np.asarray(vectors, np.float64)
    if given.ndim != 2 or given.shape[1] != features:
        raise RangeError(f"{what} have {features} numbers each, got shape {given.shape}")
    length = float(np.linalg.norm(given, axis=1).max(initial=0.0))
    if not length <= norm * SLACK:
        raise RangeError(f"{what} are no longer than {norm}, got {length}: normalize them first")
    return given.clip(-norm, norm)


@dataclass(frozen=True)
class ScoreNorm:
    """The Z-norm: mean μ and deviation σ > 0, `(models,)`, of impostors' scores under models (the cohort's too)."""

    mean: Reals
    std: Reals

    def fold(self, weights: Reals, bias: Reals) -> tuple[Reals, Reals]:
        """The normed weights `(features, models)` and constants. Raises ModelError for other sizes or a spread <= 0."""
        mean, std = np.asarray(self.mean, np.float64), np.asarray(self.std, np.float64)
        if mean.shape != bias.shape or std.shape != bias.shape or not (std > 0).all():
            raise ModelError(f"Z-norm needs a mean and a spread > 0 for each of {len(bias)} models")
        return weights / std, (bias - mean) / std


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """The server's side of a linear scorer; `of` makes one.

    Attributes:
        offsets: what the server adds to its share, `(columns,)` residues.
        turn: whether the threshold is negative where there is T-norm.
        bound: how far a score can be from the plain one.
    """

    plan: LinearPlan
    weights: EncodedWeights
    offsets: Residues
    turn: bool
    bound: ErrorBound

    @staticmethod
    def of(plan: LinearPlan, columns: "LinearColumns", threshold: float, workers: int = 1) -> "LinearScorer":
        """Fold the threshold, at or above which a trial is accepted, and T-norm into the columns and encode them.

        Raises RangeError if a score could leave the plan's range; ModelError if the columns are not those of the plan.
        """
        weights, offsets = columns.folded(plan, threshold)
        return LinearScorer.of_folded(plan, weights, offsets, threshold < 0, workers)

    @staticmethod
    def of_folded(plan: LinearPlan, weights: Reals, offsets: Reals, turn: bool, workers: int = 1) -> "LinearScorer":
        """From weights `(features, columns)` and constants that have threshold and T-norm in them already."""
        product = plan.product
        row_norm = plan.norm * np.sqrt(plan.features)
        column_norm = float(np.abs(weights).sum(axis=0).max())
        bound = error_bound(product.precision, row_norm, column_norm, plan.features, product.block_columns)
        worst = float((np.linalg.norm(weights, axis=0) * plan.norm * SLACK + np.abs(offsets)).max()) + 2 * bound.total
        if not worst < 2.0**plan.reach:
            raise RangeError(
                f"scores can reach {worst:.3g} where the plan has room for {2.0**plan.reach:g}: raise its reach"
            )
        residues = plan.ring.from_signed(plan.scale.encode(offsets))
        return LinearScorer(plan, encode_weights(product, weights, workers), residues, turn, bound)

    def multiply(self, met: Meeting) -> Residues:
        """The server's shares of all columns' scores, `(1, columns)`; the client's are those of its `plan.rows`."""
        return self.plan.ring.reduce(met.multiply(self.plan.product, self.weights) + self.offsets)


@dataclass(frozen=True, eq=False)
class LinearColumns:
    """Enrolled models `(features, models)`, the cohort `(features, cohort)` and their constants in the clear."""

    models: Reals
    bias: Reals
    cohort: Reals
    cohort_bias: Reals

    @staticmethod
    def of(
        models: Reals, cohort: Reals | None = None, norm: ScoreNorm | None = None, cohort_norm: ScoreNorm | None = None
    ) -> "LinearColumns":
        """Models `(features, models)` without constants, and a cohort if there is T-norm, Z-normed where asked."""
        weights: Reals = np.asarray(models, np.float64)
        others: Reals = np.zeros((len(weights), 0)) if cohort is None else np.asarray(cohort, np.float64)
        bias: Reals = np.zeros(weights.shape[1])
        other_bias: Reals = np.zeros(others.shape[1])
        if norm is not None:
            weights, bias = norm.fold(weights, bias)
        if cohort_norm is not None:
            others, other_bias = cohort_norm.fold(others, other_bias)
        return LinearColumns(weights, bias, others, other_bias)

    def folded(self, plan: LinearPlan, threshold: float) -> tuple[Reals, Reals]:
        """Weights `(features, columns)` and constants `(columns,)` as the protocol uses them."""
        shapes = (self.models.shape, self.cohort.shape)
        if shapes != ((plan.features, plan.models), (plan.features, plan.cohort)):
            raise ModelError(f"the plan has {plan}, got weights of shapes {shapes[0]} and {shapes[1]}")
        if not np.isfinite(threshold):
            raise ModelError(f"a threshold is a finite number, got {threshold}")
        if not plan.cohort:
            return self.models, self.bias - threshold
        mean, mean_bias = self.cohort.mean(axis=1, keepdims=True), self.cohort_bias.mean()
        factor = abs(threshold) / np.sqrt(plan.cohort - 1)
        weights = np.concatenate([self.models - mean, factor * (self.cohort - mean)], axis=1)
        offsets = np.concatenate([self.bias - mean_bias, factor * (self.cohort_bias - mean_bias)])
        return weights, offsets
