"""Speakers as Gaussian mixtures adapted from a background model: frames into monomials, mixtures into weights.

A weighted component's log-density is linear in the `monomials` of a frame: one encrypted product gives every component
of every model for every frame. A padding frame is a row of zeros, the constant too: all components of all models then
score 0, a speaker's mixture and the background cancel, and the number of real frames stays with the client. For the
same reason thresholds are taken off per frame, inside the constants:

    sum_t (ln p(x_t | speaker) - ln p(x_t | background) - τ),   τ = μ + θ σ with Z-norm, θ without.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Ring, Scale
from ppspeech.crypto.lattice import (
    EncodedWeights,
    ErrorBound,
    MatrixPlan,
    Precision,
    encode_weights,
    error_bound,
    plan_product,
)
from ppspeech.crypto.shares import Shared, ShareEngine, choose, extend
from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols.meeting import Meeting
from ppspeech.protocols.scores.monomials import count_monomials, degrees, gaussian_weights, monomials_of
from ppspeech.protocols.trellis.combine import Combine

Covariance = Literal["diagonal", "full"]

FRACTION = {"sum": 8, "max": 6}
"""Bits after the point of a shared log-density. With 15 before it, 8 let an entry of log-add's table fill three bytes,
and 6 keep a comparison at two rounds."""

MOST_SPREAD = 64  # between the Z-norm's spreads where there is T-norm: factors have 10 bits after the point


@dataclass(frozen=True)
class MixturePlan:
    """What both parties know of a mixture scorer.

    Attributes:
        frames: of a trial, padding included.
        dimensions: d, numbers of a frame.
        models: enrolled speakers; the claimed one hides among them.
        cohort: models of T-norm, 0 without.
        joined: `sum`: components add up, in log-add; `max`: the best one counts.
        norm: public bound on the length |x| of a frame.
        reach: log-densities of components stay within ±2^reach nats.
    """

    frames: int
    dimensions: int
    components: int
    models: int = 1
    cohort: int = 0
    covariance: Covariance = "diagonal"
    joined: Literal["sum", "max"] = "sum"
    norm: float = 20.0
    reach: int = 13

    def __post_init__(self) -> None:
        if min(self.frames, self.dimensions, self.components, self.models) < 1 or self.cohort < 0 or self.cohort == 1:
            raise ModelError(f"a plan has frames, numbers, components, models, no cohort or at least two, got {self}")
        if self.covariance not in ("diagonal", "full") or self.joined not in ("sum", "max"):
            raise ModelError(f"covariance is diagonal or full, and components are joined by sum or max, got {self}")
        if not 0 < self.norm <= 100 or not 6 <= self.reach <= 16:
            raise RangeError(f"frames are bounded by up to 100 and log-densities by 2^6 to 2^16 nats, got {self}")

    @property
    def features(self) -> int:
        """Monomials of a frame, the constant last."""
        return count_monomials(self.dimensions, self.covariance)

    @property
    def mixtures(self) -> int:
        """Background, models and cohort."""
        return 1 + self.models + self.cohort

    @property
    def scale(self) -> Scale:
        """Of shared log-densities: differences of two fit."""
        fraction = FRACTION[self.joined]
        return Scale(self.reach + 2 + fraction, fraction)

    @property
    def ring(self) -> Ring:
        """Of shared log-densities."""
        return self.scale.ring

    @property
    def total_ring(self) -> Ring:
        """Of sums over frames: a bit more than they need, so that they can be compared with what they are held to."""
        return Ring(self.ring.bits + 1 + (self.frames - 1).bit_length())

    @property
    def combine(self) -> Combine:
        """How components are joined on shares."""
        return Combine("forward" if self.joined == "sum" else "viterbi", self.scale)

    @cached_property
    def product(self) -> MatrixPlan:
        """How the frames are multiplied into all components."""
        precision = Precision(limit=max(1.0, self.norm, self.norm**2), result=self.scale)
        return plan_product(self.frames, self.features, self.mixtures * self.components, precision)

    def rows(self, voice: Reals) -> Reals:
        """The client's factor: monomials of frames, padded. Raises RangeError for too many, or beyond the bound."""
        x = np.asarray(voice, np.float64)
        if x.ndim != 2 or x.shape[1] != self.dimensions or not 1 <= len(x) <= self.frames:
            raise RangeError(f"a trial has 1 to {self.frames} frames of {self.dimensions} numbers, got shape {x.shape}")
        longest = float(np.sqrt(np.square(x).sum(axis=1).max()))
        if not longest <= self.norm:
            raise RangeError(f"frames are no longer than {self.norm}, got one of {longest:.4g}: scale such frames down")
        padding = np.zeros((self.frames - len(x), self.features))
        return np.concatenate([monomials_of(x, self.covariance), padding])

    def claimed_scores(self, engine: ShareEngine, shares: Residues, claimed: int | None) -> Shared:
        """Log-likelihood ratios summed over frames, of the claimed model and the cohort: `(1 + cohort,)`.

        From our shares of all log-densities, `(frames, mixtures * components)`; `claimed` is the second party's.
        Log-densities are chosen before components are joined, so that joining does not grow with the models. The sums
        are T times the averages that thresholds are about; as they are zero on padding and compared with zero, or with
        each other in T-norm, the true T never enters.
        """
        frames, parts = self.frames, self.components
        every = shares.reshape(frames, self.mixtures, parts)
        models = every[:, 1 : 1 + self.models].transpose(0, 2, 1).reshape(frames * parts, self.models)
        chosen = choose(Shared(engine, models, self.ring), claimed).own.reshape(frames, 1, parts)
        return self._ratios(engine, np.concatenate([every[:, :1], chosen, every[:, 1 + self.models :]], axis=1))

    def all_scores(self, engine: ShareEngine, shares: Residues) -> Shared:
        """The same of all models and the cohort, `(models + cohort,)`."""
        return self._ratios(engine, shares.reshape(self.frames, self.mixtures, self.components))

    def _ratios(self, engine: ShareEngine, densities: Residues) -> Shared:
        """Of shares `(frames, mixtures, components)`, the background's first, mod 2^k of `total_ring`."""
        joined = self.combine.reduce(engine, densities)
        against = Shared(engine, joined[:, 1:] - joined[:, :1], self.ring)
        return extend(against, self.total_ring).sum(axis=0)


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Mixtures in clear: log-weights `(mixtures, components)`, means `(…, d)`, covariances `(…, d)`, `(…, d, d)`."""

    log_weights: Reals
    means: Reals
    covariances: Reals

    @staticmethod
    def parse(given: dict[str, Any]) -> "Mixtures":
        """From nested lists by the names of the fields. Raises ModelError for other names, or no arrays of numbers."""
        try:
            return Mixtures(**{name: np.asarray(value, np.float64) for name, value in given.items()})
        except (TypeError, ValueError) as error:
            raise ModelError(f"mixtures have log_weights, means and covariances: {error}") from None

    def weights(self, covariance: Covariance) -> Reals:
        """Coefficients of the monomials, `(features, mixtures, components)`; ModelError for shapes that do not fit."""
        shape = self.means.shape
        expected = shape if covariance == "diagonal" else (*shape, shape[-1])
        if self.log_weights.shape != shape[:-1] or self.covariances.shape != expected:
            raise ModelError(
                f"{covariance} mixtures with means {shape} need log-weights {shape[:-1]} and covariances {expected}, "
                f"got {self.log_weights.shape} and {self.covariances.shape}"
            )
        return gaussian_weights(self.log_weights, self.means, self.covariances)


@dataclass(frozen=True, eq=False)
class MixtureScorer:
    """The server's side of a mixture scorer; `of` makes one.

    Attributes:
        spreads: σ of Z-norm under models and cohort, `(models + cohort,)`, where there is T-norm too; else ones.
        threshold: θ, used where there is T-norm; else it is in the weights.
        bound: how far a component's log-density can be from the plain one.
    """

    plan: MixturePlan
    weights: EncodedWeights
    spreads: Reals
    threshold: float
    bound: ErrorBound

    @staticmethod
    def of(
        plan: MixturePlan,
        background: Mixtures,
        speakers: Mixtures,
        threshold: float,
        *,
        cohort: Mixtures | None = None,
        mean: Reals | None = None,
        std: Reals | None = None,
        workers: int = 1,
    ) -> "MixtureScorer":
        """Fold thresholds and the Z-norm's means into the constants and encode all mixtures.

        Args:
            background: one mixture.
            threshold: θ, in units of the (normed) average over frames; a trial is accepted at or above it.
            cohort: other people's models, for T-norm.
            mean: μ of Z-norm, per frame, `(models + cohort,)`; 0 without.
            std: σ of Z-norm, `(models + cohort,)`; 1 without.

        Raises ModelError if the mixtures are not those of the plan; RangeError if a log-density could leave its range.
        """
        others = [] if cohort is None else [cohort]
        found = [each.weights(plan.covariance) for each in (background, speakers, *others)]
        sizes = [each.shape[1] for each in found] + [0] * (cohort is None)
        shapes = {(len(each), each.shape[2]) for each in found}
        if sizes != [1, plan.models, plan.cohort] or shapes != {(plan.features, plan.components)}:
            raise ModelError(f"{sizes} mixtures with (features, components) of {shapes} are not those of {plan}")
        count = plan.models + plan.cohort
        middle = np.zeros(count) if mean is None else np.asarray(mean, np.float64)
        spreads = np.ones(count) if std is None else np.asarray(std, np.float64)
        if middle.shape != (count,) or spreads.shape != (count,) or not (spreads > 0).all():
            raise ModelError(f"Z-norm needs a mean and a spread > 0 for each of {count} models")
        if plan.cohort and spreads.max() > MOST_SPREAD * spreads.min():
            raise ModelError(f"spreads in T-norm differ by a factor of {MOST_SPREAD} at most, got {spreads}")
        if not np.isfinite(threshold) or (plan.cohort and not abs(threshold) < 4 * np.sqrt(plan.cohort - 1)):
            raise ModelError(f"a threshold is finite, and below 4 sqrt(cohort - 1) in T-norm, got {threshold}")
        weights = np.concatenate(found, axis=1)
        weights[-1, 1:] -= (middle if plan.cohort else middle + threshold * spreads)[:, None]
        _check_reach(plan, weights)
        encoded = encode_weights(plan.product, weights.reshape(plan.features, -1), workers)
        return MixtureScorer(plan, encoded, spreads, threshold, _error_bound(plan, weights))

    @property
    def turn(self) -> bool:
        """Whether the threshold is negative, which T-norm asks."""
        return self.threshold < 0

    def multiply(self, met: Meeting) -> Residues:
        """The server's shares of all log-densities; the client's are those of its `plan.rows`."""
        return met.multiply(self.plan.product, self.weights)


def _check_reach(plan: MixturePlan, weights: Reals) -> None:
    """The largest magnitude of a component's log-density over all frames within the bound must fit."""
    degree = degrees(plan.dimensions, plan.covariance)
    linear, squares = np.linalg.norm(weights[degree == 1], axis=0), weights[degree == 2]
    diagonal = plan.covariance == "diagonal"
    quadratic = np.abs(squares).max(axis=0) if diagonal else np.linalg.norm(squares, axis=0)
    constant = np.abs(weights[-1])
    worst = float((constant + linear * plan.norm + quadratic * plan.norm**2).max())
    if not worst < 2.0**plan.reach - 1:
        raise RangeError(
            f"a log-density can reach {worst:.0f} nats for frames of length {plan.norm}, and the plan has room for "
            f"{2.0**plan.reach:.0f}: raise its reach, bound the frames more tightly or use larger variances"
        )


def _error_bound(plan: MixturePlan, weights: Reals) -> ErrorBound:
    """The worst case over all frames within the bound."""
    longest = plan.norm * np.sqrt(plan.dimensions)
    monomials = 1 + longest + plan.norm**2 if plan.covariance == "diagonal" else (1 + longest) ** 2
    column, product = float(np.abs(weights).sum(axis=0).max()), plan.product
    return error_bound(product.precision, monomials, column, plan.features, product.block_columns)
