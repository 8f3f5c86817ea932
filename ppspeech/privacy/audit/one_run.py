"""Audit in one training run with many canaries (Steinke, Nasr and Jagielski 2023)."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from ppspeech.errors import PrivacyError
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee
from ppspeech.privacy.parameters import check_count, check_probability
from ppspeech.privacy.samplers.randomness import random_below

Canary = TypeVar("Canary")
Output = TypeVar("Output")


def one_run_p_value(epsilon: float, delta: float, canaries: int, guesses: int, right: int) -> float:
    """How likely v right ones of r guesses about m canaries are under (epsilon, delta)-DP, at most.

    P(Bin(r, e^eps / (1 + e^eps)) >= v) + 2 m delta max_{1 <= i <= v} P(v - i <= Bin < v) / i.
    """
    law = binom(guesses, float(expit(epsilon)))
    tail = float(law.sf(right - 1))
    if delta == 0 or right == 0:
        return min(1.0, tail)
    i = np.arange(1, right + 1)
    extra = float(((law.cdf(right - 1) - law.cdf(right - i - 1)) / i).max())
    return min(1.0, tail + 2 * canaries * delta * extra)


def one_run_epsilon(canaries: int, guesses: int, right: int, *, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The largest epsilon whose p-value is below 1 - confidence; 0 if there is none.

    >>> round(one_run_epsilon(1000, 100, 100), 3)
    3.493
    """
    check_count("canaries", canaries)
    check_count("guesses", guesses)
    check_probability("confidence", confidence)
    check_probability("delta", delta, zero=True)
    if not 0 <= right <= guesses <= canaries:
        raise PrivacyError(f"need 0 <= right <= guesses <= canaries, got {right}, {guesses}, {canaries}")

    def refuted(epsilon: float) -> bool:
        return one_run_p_value(epsilon, delta, canaries, guesses, right) < 1 - confidence

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def audit_one_run(
    mechanism: Callable[[Sequence[Canary]], Output],
    canaries: Sequence[Canary],
    score: Callable[[Output, Canary], float],
    guesses: int,
    *,
    name: str,
    stated: Guarantee,
    confidence: float = 0.95,
) -> AuditReport:
    """Include every canary with probability 1/2, run once, and guess: half the guesses "in", half "out".

    `mechanism` takes the canaries that are in (and holds the other data itself) and trains once; where the unit is a
    speaker, a canary is a whole speaker. `score` is higher for what looks like a canary that was in; the r/2 highest
    and the r/2 lowest of an even number r of `guesses` count.
    """
    check_count("guesses", guesses, least=2)
    if guesses % 2 or guesses > len(canaries):
        raise PrivacyError(f"guesses must be even and at most {len(canaries)} (the canaries), got {guesses}")
    included = random_below(2, len(canaries)) == 1
    output = mechanism([canary for canary, inside in zip(canaries, included, strict=True) if inside])
    scores = np.array([float(score(output, canary)) for canary in canaries])
    order = np.argsort(scores, kind="stable")
    out_guesses, in_guesses = order[: guesses // 2], order[len(order) - guesses // 2 :]
    hits_in, hits_out = int(included[in_guesses].sum()), int((~included[out_guesses]).sum())
    lower, power = (
        one_run_epsilon(len(canaries), guesses, right, delta=stated.delta, confidence=confidence)
        for right in (hits_in + hits_out, guesses)
    )
    rates = {"tpr": 2 * hits_in / guesses, "fpr": 1 - 2 * hits_out / guesses}
    return AuditReport.of(name, "one_run", stated, lower, confidence=confidence, power=power, **rates)
