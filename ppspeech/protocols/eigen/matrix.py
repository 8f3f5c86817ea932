"""A symmetric matrix on shares that is squared again and again, and kept near 1 without anyone seeing its size.

C = C_A + C_B has no negative eigenvalue and a trace of at most 1, so that no entry of it or of its powers exceeds 1:

    [C]^2 = C_A^2 + C_B^2 + P + P',   P = C_B C_A through the lattice kernel.

One number passes through three forms, each mod 2^bits with so many bits after the point, all of them from -2 to 2
or wider:

    narrow   32 bits, 30 after the point   what the kernel returns; scaled up and compared here
    wide     60 bits, 29 after the point   what is squared: a product of two needs 2 x 29 + 2 bits
    start    59 bits, 57 after the point   what parties bring: a trace far below 1 loses nothing

The kernel multiplies small weights only, so the first party's residues are cut into four signed limbs of 15 bits, and
the second's residues are moved up by 15 bits for each: x w = sum_i (x 2^15i) w_i mod 2^60. All four share one reply.

Error of one squaring, an entry, standard deviations: 11 2^-30 from the reply, whose residues are rounded to 32 bits
and multiplied by a ternary secret of 2,048 coefficients; 2^-29 from encryption; less than 2^-29 from the rounding of 30
bits to 29: 2^-26.5 together, 2^-26 in P + P', and 2^-25.5 on its diagonal. With a trace of 1/2 to 1 before, that of the
square is sum λ^2 >= 1 / 4k. The first direction then turns by about 2^-26 sqrt(k) / (λ_1^2 - λ_2^2) at the first
squaring, and by less at each later one, since the gap grows: at most 3e-3 at k = 39 for a ratio of 1.1 and all other
eigenvalues alike (1 - cos = 4e-6), and 100 times less where the first eigenvalues have most of the trace. Proposition
3.11 in docs/theory/together.md.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Ring, Scale
from ppspeech.crypto.lattice import MatrixPlan, Precision, encode_weights, plan_product
from ppspeech.crypto.shares import Shared, ShareEngine, extend, is_negative, multiply_bit, truncate_local
from ppspeech.crypto.transfer import Side
from ppspeech.protocols.meeting import Meeting

Met = Meeting

NARROW, NARROW_FRACTION = Ring(32), 30
WIDE, WIDE_FRACTION = Ring(60), 29
START, START_FRACTION = Ring(59), 57

LIMB, LIMBS = 15, 4
LIMIT = 2 - 2.0**-40
"""The kernel's numbers stay below half its range; the few residues beyond this are moved by less than 2^-40."""

START_SHIFT = 31  # powers of two by which a small trace may be scaled up at the start
PROJECTION_FRACTION = 14
"""Bits after the point of a public projection: applied on both sides it adds 28 to the 29 of a wide residue."""


def upper(matrix: Residues) -> Residues:
    """The diagonal and what is above it, `(k, k)` to `(k (k + 1) / 2,)`: all that has to be computed on."""
    return matrix[np.triu_indices(len(matrix))]


def whole(residues: Residues, features: int) -> Residues:
    """The symmetric matrix `(k, k)` that `upper` was taken from."""
    matrix = np.empty((features, features), np.uint64)
    rows, columns = np.triu_indices(features)
    matrix[rows, columns] = residues
    matrix[columns, rows] = residues
    return matrix


@lru_cache(maxsize=16)
def square_plan(features: int) -> MatrixPlan:
    """How the product of the two parties' residues goes through the kernel."""
    precision = Precision(limit=LIMIT, weights=Scale(LIMB + 1, 0), result=Scale(NARROW.bits, fraction=NARROW_FRACTION))
    return plan_product(features, LIMBS * features, features, precision)


def limbs(share: Residues) -> NDArray[np.int64]:
    """The first party's wide residues `(k, k)` as signed limbs, the lowest first: `(4 k, k)`."""
    rest = WIDE.reduce(share)
    parts = []
    for _ in range(LIMBS):
        low = (rest & np.uint64((1 << LIMB) - 1)).astype(np.int64)
        negative = low >= 1 << (LIMB - 1)
        parts.append(low - (negative.astype(np.int64) << LIMB))
        rest = (rest >> np.uint64(LIMB)) + negative.astype(np.uint64)
    return np.concatenate(parts)


def moved(share: Residues) -> Reals:
    """The second party's wide residues `(k, k)`, moved up by each limb's place, as numbers from -2 to 2: `(k, 4 k)`."""
    parts = [WIDE.to_signed(WIDE.reduce(share << np.uint64(LIMB * place))) for place in range(LIMBS)]
    numbers = np.ldexp(np.concatenate(parts, axis=1).astype(np.float64), 2 - WIDE.bits)
    return np.clip(numbers, -LIMIT, LIMIT)


def square(met: Met, share: Residues) -> Residues:
    """Narrow shares of C^2 `(k, k)`, symmetric, from wide shares of C."""
    plan = square_plan(len(share))
    if met.side is Side.FIRST:
        cross = met.multiply(plan, encode_weights(plan, limbs(share).astype(np.float64)))
    else:
        cross = met.multiply(plan, moved(share))
    dropped = WIDE.bits - NARROW.bits
    own = WIDE.reduce(share @ share + np.uint64(1 << (dropped - 1))) >> np.uint64(dropped)
    return NARROW.reduce(own + cross + cross.T)


def normalize(engine: ShareEngine, residues: Residues, features: int, ring: Ring, fraction: int, most: int) -> Residues:
    """Shares of the matrix times the power of two, at most 2^most, that brings its trace to at least 1/2.

    Which power it is stays shared: for 2^16, 2^8, … in turn, the trace is compared and the product with the shared bit
    added. `residues`: upper halves, flat.
    """
    rows, columns = np.triu_indices(features)
    diagonal = rows == columns
    for step in (1 << place for place in reversed(range(most.bit_length()))):  # they add up to `most` or more
        trace = residues[diagonal].sum(keepdims=True, dtype=np.uint64)
        limit = engine.public(np.array([1 << (fraction - step)], np.uint64))
        small = is_negative(engine, ring.reduce(trace - limit), ring)
        more = ring.reduce(residues * np.uint64((1 << step) - 1))
        residues = ring.reduce(residues + multiply_bit(engine, np.repeat(small, len(residues)), more, ring))
    return residues


def widen(engine: ShareEngine, residues: Residues, features: int) -> Residues:
    """Wide shares `(k, k)` of a matrix whose upper half we hold in narrow shares."""
    short = truncate_local(Shared(engine, residues, NARROW), NARROW_FRACTION - WIDE_FRACTION)
    return whole(extend(short, WIDE).residues, features)


def begin(engine: ShareEngine, residues: Residues, features: int) -> Residues:
    """Wide shares `(k, k)`, trace at least 1/2, of a matrix whose upper half we hold in start shares."""
    scaled = normalize(engine, residues, features, START, START_FRACTION, START_SHIFT)
    short = truncate_local(Shared(engine, scaled, START), START.bits - NARROW.bits)
    return widen(engine, short.residues, features)


def project(share: Residues, found: Reals) -> Residues:
    """Start shares, upper half, of Q C Q with Q = I - sum u u' over the public unit rows `found` `(count, k)`.

    Deflation without eigenvalues: Q is public, so each party applies it to its own share.
    """
    basis, _ = np.linalg.qr(found.T)
    projection = np.eye(len(share)) - basis @ basis.T
    whole_steps = np.rint(np.ldexp(projection, PROJECTION_FRACTION)).astype(np.int64).view(np.uint64)
    return upper(START.reduce(whole_steps @ share @ whole_steps))


def squaring_shift(features: int) -> int:
    """Doublings that bring the trace of a square back to 1/2: it is at least (1/2)^2 / k, for equal eigenvalues."""
    return (2 * features - 1).bit_length()
