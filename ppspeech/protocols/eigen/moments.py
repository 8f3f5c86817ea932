"""What a party brings to the search for principal directions: its second moments, exact or differentially private.

A party that trusts none of the others must add all the noise itself, since the others know what they added. So it
releases its own moments by Analyze Gauss before they enter the protocol; whatever comes out is computed from that, and
its guarantee holds against all other parties together. The directions carry the noise of as many releases as there
are parties. What the protocol adds is that nobody sees the noisy moments of one party either, only the directions.
Proof: Theorem 3.12 in docs/theory/together.md.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Scale
from ppspeech.errors import RangeError
from ppspeech.privacy import Relation, Released
from ppspeech.privacy.mechanisms import AnalyzeGauss, without_negative
from ppspeech.protocols.eigen.matrix import START, START_FRACTION, upper

DELTA = 1e-6


def second_moments(frames: Reals) -> NDArray[np.float64]:
    """The sum of x x' over frames `(frames, features)`: `(features, features)`.

    >>> second_moments(np.array([[1.0, 2.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    given = np.asarray(frames, np.float64)
    if given.ndim != 2:
        raise RangeError(f"frames come as (frames, features), got shape {given.shape}")
    return given.T @ given


def private_moments(
    frames: Reals, mechanism: AnalyzeGauss, bound: float, unit_ids: NDArray[np.integer] | None = None
) -> Released[NDArray[np.float64]]:
    """Second moments that may be shown to anyone, in the form that `start_share` takes; frames are clipped.

    Negative eigenvalues, which only noise makes, become zero, and a trace above the bound is scaled down to it: both
    are computed from the release alone, so that the protocol never stops in a way that depends on the frames.
    `unit_ids`: whose each frame is, `(frames,)`, where a unit has several.
    """
    _check_bound(bound)
    ids = None if unit_ids is None else torch.from_numpy(np.asarray(unit_ids))
    released = mechanism.release(torch.from_numpy(np.asarray(frames, np.float64)), ids)
    moments = without_negative(released.value).numpy()
    trace = float(np.trace(moments))
    # A hair below, so that rounding does not carry the trace over the bound again.
    scaled = moments * min(1.0, bound * (1 - 1e-12) / trace) if trace > 0 else moments
    return Released(scaled, released.event, released.guarantee)


def own_moments(
    frames: Reals, bound: float, epsilon: float | None, delta: float, radius: float | None
) -> NDArray[np.float64]:
    """What a party program starts from: exact moments, or with `epsilon` private ones, one frame the unit."""
    if epsilon is None:
        return second_moments(frames)
    if radius is None:
        raise RangeError("epsilon needs the public radius to which frames are clipped: give radius")
    given = np.asarray(frames, np.float64)
    if given.ndim != 2:
        raise RangeError(f"frames come as (frames, features), got shape {given.shape}")
    return private_moments(given, noise_for(given.shape[1], epsilon, delta, radius), bound).value


def noise_for(features: int, epsilon: float, delta: float, radius: float) -> AnalyzeGauss:
    """What a party adds to its moments, and what that promises about one of its frames."""
    relation = Relation("frame", "add_remove")
    return AnalyzeGauss.calibrated(epsilon=epsilon, delta=delta, radius=radius, features=features, relation=relation)


def start_share(moments: Reals, features: int, bound: float, parties: int) -> Residues:
    """A party's own moments over `parties * bound`, as its share: upper half, flat; refuses what no frames have."""
    _check_bound(bound)
    given = np.asarray(moments, np.float64)
    if given.shape != (features, features):
        raise RangeError(f"second moments of {features} features have shape {(features,) * 2}, got {given.shape}")
    if not np.isfinite(given).all():
        raise RangeError("second moments must be finite numbers; remove infinities and NaN from the frames")
    trace = float(np.trace(given))
    if trace > bound:
        raise RangeError(
            f"the trace is {trace:.6g}, above the public bound of {bound:.6g}: scale the frames, or agree "
            "on a larger bound"
        )
    slack = 1e-9 * max(trace, 0.0)
    if np.abs(given - given.T).max() > slack or np.linalg.eigvalsh(given)[0] < -slack:
        raise RangeError("second moments are symmetric and without negative eigenvalues: use second_moments(frames)")
    scaled = (given + given.T) / 2 / (parties * bound)
    return upper(START.from_signed(Scale(START.bits, START_FRACTION).encode(scaled)))


def _check_bound(bound: float) -> None:
    if not (np.isfinite(bound) and bound > 0):
        raise RangeError(f"the public bound on a party's trace must be a number above 0, got {bound}")
