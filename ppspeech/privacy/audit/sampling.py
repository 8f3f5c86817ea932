"""Audit by sampling: run the mechanism on two neighboring data sets and try to tell its outputs apart."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import Event
from ppspeech.privacy.audit.profile import profile_epsilon, with_noise
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee
from ppspeech.privacy.parameters import check_count, check_positive, check_probability

Output = TypeVar("Output")


def epsilon_lower_bound(
    true_positives: int, false_positives: int, trials: int, *, confidence: float = 0.95, delta: float = 0.0
) -> float:
    """The epsilon that an attack's counts refute below, by Clopper and Pearson's bounds.

    TPR and FPR are bounded one-sidedly at (1 - confidence) / 2 each; the bound is the larger of
    ln((TPR - delta) / FPR) and ln((TNR - delta) / FNR), at least 0. `true_positives`: outputs of the data set that were
    recognized, of `trials`; `false_positives`: outputs of its neighbor that were taken for it, of `trials`.

    >>> round(epsilon_lower_bound(400, 0, 400), 2)
    4.68
    """
    check_count("trials", trials)
    check_probability("confidence", confidence)
    check_probability("delta", delta, zero=True)
    if not (0 <= true_positives <= trials and 0 <= false_positives <= trials):
        raise PrivacyError(f"counts must be in 0..{trials}, got {true_positives} and {false_positives}")
    tpr_low, fpr_high = rates_beyond(true_positives, false_positives, trials, confidence)
    bound = 0.0
    for low, high in ((tpr_low, fpr_high), (1 - fpr_high, 1 - tpr_low)):
        if low > delta and high > 0:
            bound = max(bound, math.log((low - delta) / high))
    return bound


def rates_beyond(true_positives: int, false_positives: int, trials: int, confidence: float) -> tuple[float, float]:
    """A lower bound of the TPR and an upper one of the FPR, which both hold with `confidence` (Clopper and Pearson)."""
    half = (1 - confidence) / 2
    low = float(beta.ppf(half, true_positives, trials - true_positives + 1)) if true_positives else 0.0
    high = float(beta.ppf(1 - half, false_positives + 1, trials - false_positives)) if false_positives < trials else 1.0
    return low, high


def audit_sampling(
    mechanism: Callable[[Any], Output],
    data: Any,
    neighbor: Any,
    score: Callable[[Output], float],
    runs: int,
    *,
    name: str,
    stated: Guarantee,
    confidence: float = 0.95,
    entries: Sequence[tuple[Event, int]] = (),
) -> AuditReport:
    """Attack by thresholding a score; the threshold and its direction are chosen on one half of the runs only.

    `mechanism` draws fresh noise in every call; `score` is higher for `data` or lower, consistently. Of an even number
    >= 4 of `runs` on each data set half choose, half test. `entries`: what is booked; see `audit_scores`.
    """
    check_count("runs", runs, least=4)
    with_data = np.array([float(score(mechanism(data))) for _ in range(runs)])
    without = np.array([float(score(mechanism(neighbor))) for _ in range(runs)])
    return audit_scores(with_data, without, name=name, stated=stated, confidence=confidence, entries=entries)


def audit_scores(
    with_data: NDArray[np.float64],
    without: NDArray[np.float64],
    *,
    name: str,
    stated: Guarantee,
    confidence: float = 0.95,
    note: str = "",
    entries: Sequence[tuple[Event, int]] = (),
) -> AuditReport:
    """The same from an attacker's scores `(runs,)` of outputs on a data set and on its neighbor.

    With `entries`, events and how often each was booked, the whole profile is under test and not one pair alone: half
    the noise is then noticed with some thousand runs, also where epsilon is small.
    """
    runs = len(with_data)
    half = runs // 2
    known = bool(entries) and all(with_noise(event, 1.0) is not None for event, _ in entries)
    threshold, sign = _best_threshold(with_data[:half], without[:half], confidence, None if known else stated.delta)
    trials = runs - half
    counts = int((sign * with_data[half:] >= threshold).sum()), int((sign * without[half:] >= threshold).sum())
    by_profile = 0.0
    if known:
        by_profile = profile_epsilon(entries, *rates_beyond(*counts, trials, confidence), stated.delta)
    return _counted(name, "sampling", stated, *counts, trials, confidence, note, least=by_profile)


def audit_leak_identity(
    mechanism: Callable[[Any], Output],
    data: Any,
    neighbor: Any,
    identity: Callable[[Output, Any], float],
    runs: int,
    *,
    tolerance: float,
    name: str,
    stated: Guarantee,
    confidence: float = 0.95,
) -> AuditReport:
    """Attack by an equation that the output satisfies exactly for the true data set and for no other.

    `identity(output, data)` is a residual >= 0, zero up to rounding if the output came from that data; up to
    `tolerance`, fixed beforehand, it counts as zero. All `runs` on each data set test, as nothing is chosen by looking.
    """
    check_count("runs", runs)
    check_positive("tolerance", tolerance)
    hits = sum(identity(mechanism(data), data) <= tolerance for _ in range(runs))
    alarms = sum(identity(mechanism(neighbor), data) <= tolerance for _ in range(runs))
    return _counted(name, "identity", stated, hits, alarms, runs, confidence)


def _counted(
    name: str,
    method: str,
    stated: Guarantee,
    hits: int,
    alarms: int,
    trials: int,
    confidence: float,
    note: str = "",
    least: float = 0.0,
) -> AuditReport:
    lower, power = (
        epsilon_lower_bound(*counts, trials, confidence=confidence, delta=stated.delta)
        for counts in ((hits, alarms), (trials, 0))
    )
    rates = {"tpr": hits / trials, "fpr": alarms / trials}
    lower, power = max(lower, least), max(power, least)
    return AuditReport.of(name, method, stated, lower, confidence=confidence, power=power, note=note, **rates)


def _best_threshold(
    positive: NDArray[np.float64], negative: NDArray[np.float64], confidence: float, delta: float | None
) -> tuple[float, float]:
    """The (threshold, sign) whose bound is largest on these scores: sign * score >= threshold says `data`.

    The bound at `delta`; or, without one, how far apart both rates are as two Gaussians' would be.
    """
    best, chosen = -math.inf, (0.0, 1.0)
    for sign in (1.0, -1.0):
        scores = np.unique(np.concatenate([sign * positive, sign * negative]))
        for threshold in scores[:: max(1, len(scores) // 200)]:
            counts = int((sign * positive >= threshold).sum()), int((sign * negative >= threshold).sum())
            if delta is None:
                low, high = rates_beyond(*counts, len(positive), confidence)
                bound = float(ndtri(low) - ndtri(high)) if low > 0 and high < 1 else -math.inf
            else:
                bound = epsilon_lower_bound(*counts, len(positive), confidence=confidence, delta=delta)
            if bound > best:
                best, chosen = bound, (float(threshold), sign)
    return chosen
