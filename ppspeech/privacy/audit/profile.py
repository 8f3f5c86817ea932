"""Refute an account by its whole profile: how much less noise than is booked would explain what an attack achieves.

An event promises more than one pair (epsilon, delta): TPR <= e^t FPR + delta(t) at every t. An attack that is right
more often than that at any t refutes it, long before it refutes the one pair that a statement shows. As a number: the
largest epsilon of accounts of the same form, all noise times a factor, that are refuted (Nasr et al. 2023 do so for
Gaussians).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.accounting.events import Event, UnsupportedAnalysisError
from ppspeech.privacy.accounting.loss import LossDistribution

POWERS = {
    "noise_multiplier": 1, "sigma": 1, "scale": 1, "variance": 2, "kappa": -1, "stated_epsilon": -1, "rho": -2,
    "ratio": -2,
}  # fmt: skip
"""How the field that holds an event's noise grows with the noise."""

MOST, LEAST = 64.0, 1 / 8
"""Factors of the noise between which is searched: an attack that does not refute 64 times of it has found nothing."""

STEPS = 8  # halvings of the last interval: to 0.3 %
POINTS = 64  # losses t that are looked at
BUCKET = 2e-3  # of loss distributions


def with_noise(event: Event, factor: float) -> Event | None:
    """The event with its noise times `factor`; None for one that holds no noise."""
    for field in fields(event):  # type: ignore[arg-type]
        if field.name in POWERS:
            changes: Any = {field.name: getattr(event, field.name) * factor ** POWERS[field.name]}
            return replace(event, **changes)  # type: ignore[type-var]
    return None


def profile_epsilon(entries: Sequence[tuple[Event, int]], tpr: float, fpr: float, delta: float) -> float:
    """The epsilon at `delta` below which an attack refutes accounts of this form; 0 if it refutes none.

    `entries`: events and how often each is booked; `tpr`: a lower bound of the attack's true-positive rate, and `fpr`
    an upper bound of its false-positive rate. All noise is scaled together.
    """
    high = 1.0
    while not _refuted(entries, high, tpr, fpr):
        high *= 2
        if high > MOST:
            return 0.0
    low = high / 2
    while _refuted(entries, low, tpr, fpr):
        low, high = low / 2, low
        if high <= LEAST:
            break
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _refuted(entries, middle, tpr, fpr) else (middle, high)
    return _account(entries, high).epsilon(delta)


def _account(entries: Sequence[tuple[Event, int]], factor: float) -> Accountant:
    account = Accountant(entries[0][0].relation)
    for event, count in entries:
        changed = with_noise(event, factor)
        assert changed is not None
        account.compose(changed, count)
    return account


def _refuted(entries: Sequence[tuple[Event, int]], factor: float, tpr: float, fpr: float) -> bool:
    """Whether the rates, or those of the opposite guess, lie above the profile at some t."""
    delta = _profile(_account(entries, factor))
    for right, wrong in ((tpr, fpr), (1 - fpr, 1 - tpr)):
        if right <= wrong:
            continue
        top = math.log(right / wrong) if wrong > 0 else 50.0
        if any(right - math.exp(t) * wrong > delta(t) for t in np.linspace(0, top, POINTS)[:-1].tolist()):
            return True
    return False


def _profile(account: Accountant) -> Callable[[float], float]:
    """delta(t): by loss distributions in coarse buckets, which only hide something; where there is none, what holds."""
    loss: LossDistribution | None = None
    try:
        for event, count in account.events:
            own = event.pld(BUCKET)
            own = own.self_compose(count) if count > 1 else own
            loss = own if loss is None else loss.compose(own)
    except UnsupportedAnalysisError:
        return account.delta
    assert loss is not None
    return lambda t: float(loss.get_delta_for_epsilon(t))
