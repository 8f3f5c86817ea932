"""How far an encrypted score can be from the plain one, and the range of scores that the shares hold.

Two answers each. *Certain* holds for every voice within the public limit, whatever the noise. *Typical* takes frames
of mean 0 and variance 1, as normalized features are, independent errors that add up like a random walk, and log-adds
that always compete within the table's range; it is a standard deviation, and an estimate. That scores stay within the
range of their shares is proved (`ppspeech.protocols.scores.range`): models of which it does not hold cannot be made.
"""

import math
from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.crypto import uniform_residues
from ppspeech.crypto.lattice import KEPT_BITS, Precision, error_bound
from ppspeech.crypto.shares import ENTRIES, LogAdd, log_add_twin
from ppspeech.protocols.scores import VAGUE, WordArrays, WordShape, most_apart, most_monomials
from ppspeech.protocols.trellis import TABLE_STEP

NOISE_STD = 3.2  # of the error of a fresh encryption, per coefficient
FAR = 6.0  # standard deviations that typical scores are taken to stay within


@dataclass(frozen=True, slots=True)
class Bound:
    """A quantity at worst, never exceeded within the public limit, and usually, as the module says."""

    certain: float
    typical: float


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """Errors in nats, and the range of scores in bits.

    Attributes:
        frame: of one state's score of one frame, by encryption and rounding; at worst it is less than 16 nats above a
            floor that is applied on shares, and counts as the floor.
        log_add: of one log-add; 0 for Viterbi.
        score: of a word's score over all frames.
        range_nats: largest difference between two scores that are compared.
        range_bits: the bits that takes, sign and fraction included.
        bits: what the shares have: `range_bits.certain` at least.
    """

    frame: Bound
    log_add: Bound
    score: Bound
    range_nats: Bound
    range_bits: Bound
    bits: int


def error_budget(models: WordArrays) -> ErrorBudget:
    """The budget of these models. It is computed from the weights, so it is the server's to know."""
    shape = models.shape
    frame = _frame_error(models)
    adds = _log_add_error(shape)
    steps = shape.frames - 1 + math.ceil(math.log2(shape.components)) * shape.frames + math.log2(len(shape.ends))
    score = Bound(
        shape.frames * frame.certain + steps * adds.certain,
        math.hypot(math.sqrt(shape.frames) * frame.typical, math.sqrt(steps) * adds.typical),
    )
    nats = _range(models)
    bits = Bound(_bits(nats.certain, shape), _bits(nats.typical, shape))
    return ErrorBudget(frame, adds, score, nats, bits, shape.bits)


def _bits(nats: float, shape: WordShape) -> int:
    """Bits that a difference of so many nats takes, sign and fraction included."""
    return 1 + math.ceil(math.log2(max(1.0, nats * 2**shape.fraction)))


def _frame_error(models: WordArrays) -> Bound:
    shape, precision = models.shape, models.shape.precision
    norms = np.abs(models.score_weights).sum(axis=0)
    largest = most_monomials(shape.dimensions, shape.terms, shape.limit, shape.radius)
    certain = error_bound(precision, largest, float(norms.max()), shape.monomials, packed=shape.columns)
    worst = certain.total if shape.reach is None else certain.total + 2.0**-shape.fraction + (1 << VAGUE)
    return Bound(worst, _typical_frame_error(models.score_weights, shape, precision))


def _typical_frame_error(weights: Reals, shape: WordShape, precision: Precision) -> float:
    """The same causes as `error_bound`, as independent errors of their standard deviations."""
    n, q = precision.parameters.degree, precision.parameters.prime
    step, residue = 2.0**-precision.weights.fraction, 2.0**precision.range_bits / q
    squares = float(_moments(shape)[1].sum())
    dropped = (1 << precision.parameters.dropped_bits) / math.sqrt(12)
    encoded = float(np.sqrt(np.square(weights).sum(axis=0)).max()) / step
    causes = (
        step / math.sqrt(12) * math.sqrt(squares),
        math.hypot(NOISE_STD, dropped) * encoded * residue,
        NOISE_STD * math.sqrt(1 + 4 * n / 3) * residue,
        math.sqrt(2 * n / 3 / 12) * 2.0 ** (precision.range_bits - KEPT_BITS),
        2.0**-shape.fraction / math.sqrt(6),
    )
    return math.sqrt(sum(cause * cause for cause in causes))


def _log_add_error(shape: WordShape) -> Bound:
    if shape.operation == "viterbi" or (shape.frames == 1 and shape.components == 1):
        return Bound(0.0, 0.0)
    how = LogAdd(shape.scale.ring, shape.fraction, max(0, shape.fraction - TABLE_STEP))
    return Bound(2.0**-TABLE_STEP, _measured_log_add(how))


def _measured_log_add(how: LogAdd) -> float:
    """Root mean square error of log-add where both words compete: within the table's range of one another."""
    count, ring = 4096, how.ring
    reach = (ENTRIES // 2) << how.step
    apart = (uniform_residues(count, 30) % np.uint64(2 * reach)).astype(np.int64) - reach
    left = ring.share(ring.from_signed(apart))
    right = ring.share(np.zeros(count, np.uint64))
    found = ring.to_signed(log_add_twin(left, right, how)) * 2.0**-how.fraction
    return float(np.sqrt(np.mean(np.square(found - np.logaddexp(0, apart * 2.0**-how.fraction)))))


def _range(models: WordArrays) -> Bound:
    """How far two scores can be apart: as was proved, and over frames, of any two columns."""
    shape, weights = models.shape, models.score_weights
    first, second = _moments(shape)
    center = first @ weights
    deviation = np.sqrt((second - first**2) @ np.square(weights))  # the monomials are uncorrelated
    apart = float(center.max() - center.min())
    usual = shape.frames * apart + FAR * math.sqrt(2 * shape.frames) * float(deviation.max())
    certain = most_apart(shape)
    return Bound(certain, min(usual, certain))


def _moments(shape: WordShape) -> tuple[Reals, Reals]:
    """Mean and mean square of each monomial of a frame of independent standard normals."""
    d = shape.dimensions
    if shape.terms == "linear":
        return np.eye(d + 1)[-1], np.ones(d + 1)
    if shape.terms == "diagonal":
        return np.repeat([1.0, 0.0, 1.0], [d, d, 1]), np.repeat([3.0, 1.0, 1.0], [d, d, 1])
    left, right = np.triu_indices(d + 1)
    same, last = left == right, right == d
    mean = same.astype(np.float64)
    return mean, np.where(same & ~last, 3.0, 1.0)
