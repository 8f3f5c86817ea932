"""Audit in one training run with many canaries (Steinke, Nasr and Jagielski 2023)."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom, norm

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.hockey_stick import gaussian_epsilon
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
    included = coins(len(canaries))
    output = mechanism([canary for canary, inside in zip(canaries, included, strict=True) if inside])
    scores = np.array([float(score(output, canary)) for canary in canaries])
    return guessed(scores, included, guesses, name=name, stated=stated, confidence=confidence)


def coins(canaries: int) -> NDArray[np.bool_]:
    """Which canaries are in: a fair coin each, from the operating system."""
    fair: NDArray[np.bool_] = random_below(2, canaries) == 1
    return fair


def guessed(
    scores: NDArray[np.float64],
    included: NDArray[np.bool_],
    guesses: int,
    *,
    name: str,
    stated: Guarantee,
    confidence: float = 0.95,
    note: str = "",
) -> AuditReport:
    """The bound of Steinke, Nasr and Jagielski 2023 from scores `(canaries,)`; `guesses` is fixed in advance."""
    check_count("guesses", guesses, least=2)
    canaries = len(scores)
    if guesses % 2 or guesses > canaries:
        raise PrivacyError(f"guesses must be even and at most {canaries} (the canaries), got {guesses}")
    order = np.argsort(scores, kind="stable")
    out_guesses, in_guesses = order[: guesses // 2], order[canaries - guesses // 2 :]
    hits_in, hits_out = int(included[in_guesses].sum()), int((~included[out_guesses]).sum())
    lower, power = (
        one_run_epsilon(canaries, guesses, right, delta=stated.delta, confidence=confidence)
        for right in (hits_in + hits_out, guesses)
    )
    rates = {"tpr": 2 * hits_in / guesses, "fpr": 1 - 2 * hits_out / guesses}
    return AuditReport.of(name, "one_run", stated, lower, confidence=confidence, power=power, note=note, **rates)


def separated(
    scores: NDArray[np.float64],
    included: NDArray[np.bool_],
    *,
    name: str,
    stated: Guarantee,
    confidence: float = 0.95,
    note: str = "",
) -> AuditReport:
    """The bound from how far apart the scores of those in and those out lie (Agrawal et al. 2026), delta > 0.

    Guesses throw most of a score away. Where each score is a sum of many noisy parts, it is nearly Gaussian, and one
    canary shifts it by mu deviations: mu, bounded from below with `confidence`, is a Gaussian mechanism's, which has an
    epsilon at the stated delta. It rests on what guesses need not assume: scores that are nearly Gaussian, nearly
    independent and of one variance. With a thousand canaries it sees half the noise; guesses do not.
    """
    check_probability("delta", stated.delta)
    inside, outside = scores[included], scores[~included]
    if min(len(inside), len(outside)) < 2:
        raise PrivacyError(f"{len(inside)} canaries are in and {len(outside)} out: there must be two of each")
    freedom = len(scores) - 2
    square = ((inside - inside.mean()) ** 2).sum() + ((outside - outside.mean()) ** 2).sum()
    spread = math.sqrt(square / freedom)
    if not spread > 0:
        raise PrivacyError("all scores are equal: nothing was released, or the score does not look at it")
    shift = float(inside.mean() - outside.mean()) / spread
    error = math.sqrt(1 / len(inside) + 1 / len(outside) + shift**2 / (2 * freedom))
    mu = shift - float(norm.ppf(confidence)) * error
    lower = gaussian_epsilon(stated.delta, mu) if mu > 0 else 0.0
    return AuditReport.of(name, "one_run_gaussian", stated, lower, confidence=confidence, note=note)
