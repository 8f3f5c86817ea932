"""How often anybody can name one of S people from T noisy clips: a number that no attacker beats, known today or not.

Let P_s be the law of what person s releases and Q any law that does not depend on s, such as that of noise around the
center. An attacker who guesses s with probability 1 / S beforehand is right with probability

    mean_s P_s(guess = s)  <=  mean_s F(Q(guess = s))  <=  F(mean_s Q(guess = s))  =  F(1 / S),

where F(a) is the most that a test of level a against Q finds of P_s, whatever s released (1 - F is the trade-off curve
of Dong, Roth and Su 2022): F is concave, and exactly one name is guessed. For vectors in a ball of radius R with
Gaussian noise, T of them, F(a) = Phi(Phi^-1(a) + sqrt(T) R / sigma). The radius counts, not the diameter: Q is in the
middle. It holds for people whose clips an attacker knows by heart, and needs no word on how they speak. Proofs:
Theorems 4.10 and 4.11 in docs/theory/filters.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from ppspeech.errors import PrivacyError
from ppspeech.privacy import check_count, check_positive

Kind = Literal["gaussian", "pure", "codes", "counted", "none"]

NOTHING = "no noise: nothing is certain, the attacks that were tried are all the evidence there is"


@dataclass(frozen=True)
class NamingTarget:
    """What noise is asked for: nobody shall name one of so many people from so many clips more often than `at_most`."""

    at_most: float
    people: int
    clips: int

    def __post_init__(self) -> None:
        check_count("clips", self.clips)
        if not 1 / check_count("people", self.people) < self.at_most < 1:
            raise PrivacyError(
                f"naming one of {self.people} people succeeds by chance in {1 / self.people:.4g}: ask for more than "
                f"that and less than 1, got {self.at_most}"
            )


@dataclass(frozen=True)
class NamingBound:
    """At most `value` of uniform guesses among so many `people` are right, from so many `clips` of one person.

    `kind` is the noise it stands on: `gaussian`, `pure` (discrete Laplace), `codes` (randomized response), `counted`
    for a filter without noise that has too few codes to tell everyone apart, and `none`, where nothing is certain.
    """

    value: float
    people: int
    clips: int
    kind: Kind

    def __str__(self) -> str:
        clips = "1 clip" if self.clips == 1 else f"{self.clips} clips"
        if self.kind == "none":
            return f"naming one of {self.people} people from {clips}: {NOTHING}"
        return (
            f"nobody names one of {self.people} people from {clips} more often than {self.value:.3f} "
            f"(chance {1 / self.people:.3f}; {self.kind})"
        )


def no_bound(people: int, clips: int, codes: int | None = None) -> NamingBound:
    """Of a filter without noise. With K codes there are K^T things to be told, each of which names one person: K^T / S
    of them at most, which says something for a clip or two.
    """
    check_count("people", people)
    check_count("clips", clips)
    if codes is not None and clips * math.log(codes) < math.log(people):
        return NamingBound(codes**clips / people, people, clips, "counted")
    return NamingBound(1.0, people, clips, "none")


def named_in_ball(people: int, clips: int, bound: float, sigma: float) -> float:
    """Phi(Phi^-1(1 / S) + sqrt(T) R / sigma), of continuous Gaussian noise on vectors in a ball.

    >>> round(named_in_ball(people=60, clips=10, bound=1.0, sigma=4.0), 4)
    0.0905
    """
    check_positive("bound", bound)
    check_positive("sigma", sigma)
    apart = math.sqrt(check_count("clips", clips)) * bound / sigma
    return float(ndtr(ndtri(1 / check_count("people", people)) + apart))


def named_by_profile(delta: Callable[[float], float], people: int) -> float:
    """F(1 / S) = min over epsilon of e^epsilon / S + delta(epsilon), of noise whose profile is known against Q and the
    other way round. Below 0, delta(-epsilon) = 1 - e^-epsilon + e^-epsilon delta(epsilon) of the other way. The sum is
    convex in e^epsilon, which is at most S; any epsilon gives a bound that holds.
    """

    def bound(ratio: float) -> float:
        if ratio >= 1:
            return ratio / people + delta(math.log(ratio))
        return ratio / people + 1 - ratio + ratio * delta(-math.log(ratio))

    found = minimize_scalar(
        bound, bounds=(1e-9, check_count("people", people)), method="bounded", options={"xatol": 1e-9}
    )
    return float(min(found.fun, bound(1.0), 1.0))


def named_by_coins(right: float, by_chance: float, people: int, clips: int) -> float:
    """F(1 / S) where each of T clips is a coin that falls right with probability `right` under P_s, and `by_chance` <
    `right` under Q: the power of the test that believes the largest counts, randomized to be of level 1 / S exactly.
    """
    left, power = 1 / check_count("people", people), 0.0
    for count in range(check_count("clips", clips), -1, -1):
        level, found = float(binom.pmf(count, clips, by_chance)), float(binom.pmf(count, clips, right))
        if level >= left:
            return min(1.0, power + found * left / level)
        left, power = left - level, power + found
    return 1.0


def named_by_codes(epsilon: float, codes: int, people: int, clips: int) -> float:
    """Of randomized response on K codes, against Q that tells a uniform one: P_s tells its own with probability
    e^epsilon / (e^epsilon + K - 1). No bound is better: with a person for each of K^T series of codes it is attained.

    >>> round(named_by_codes(2.0, codes=3, people=9, clips=2), 6) == round((1 / (1 + 2 * math.exp(-2.0))) ** 2, 6)
    True
    """
    check_positive("epsilon", epsilon)
    return named_by_coins(1 / (1 + (codes - 1) * math.exp(-epsilon)), 1 / check_count("codes", codes), people, clips)


def named_by_pure(epsilon: float, people: int, clips: int) -> float:
    """Of any noise whose every clip is epsilon-DP against Q: no law is told apart better than two coins of odds
    e^epsilon and e^-epsilon (Kairouz, Oh and Viswanath 2015).
    """
    check_positive("epsilon", epsilon)
    return named_by_coins(1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon)), people, clips)
