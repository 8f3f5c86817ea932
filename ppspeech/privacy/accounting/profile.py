"""The privacy profile: delta as a function of epsilon, as numbers and as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppspeech.errors import PrivacyError
from ppspeech.pictures import blank, save
from ppspeech.privacy.accounting.accountant import Accountant, Method

LEAST_DELTA = 1e-9
"""Where a trade-off curve's largest epsilon is."""
POINTS = 97


def privacy_profile(account: Accountant, epsilons: Sequence[float], method: Method = "auto") -> NDArray[np.float64]:
    """delta(epsilon) of an account at each epsilon, made non-increasing (a bound at a smaller epsilon still holds)."""
    deltas = np.array([account.delta(float(epsilon), method) for epsilon in epsilons])
    order = np.argsort(np.asarray(epsilons, dtype=np.float64), kind="stable")
    deltas[order] = np.minimum.accumulate(deltas[order])
    return deltas


def trade_off(account: Accountant, rates: Sequence[float], method: Method = "auto") -> NDArray[np.float64]:
    """The least rate of false negatives, at each rate of false positives, of whoever says whether one unit was in.

    From (epsilon, delta(epsilon))-DP at `POINTS` epsilons, each of which leaves no test a smaller one than
    max(0, 1 - delta - e^epsilon rate, e^-epsilon (1 - delta - rate)) (Dong, Roth and Su 2022, Proposition 2.5): no
    tester, with any knowledge, is below the curve. Raises PrivacyError for a rate outside of [0, 1].

    >>> from ppspeech.privacy import Relation
    >>> trade_off(Accountant(Relation("speaker", "add_remove")), [0.0, 0.25, 1.0]).tolist()
    [1.0, 0.75, 0.0]
    """
    asked = np.asarray(rates, dtype=np.float64)
    if asked.size and not (asked.min() >= 0 and asked.max() <= 1):
        raise PrivacyError(f"rates of false positives are between 0 and 1, got {asked.min():g} to {asked.max():g}")
    end = account.epsilon(LEAST_DELTA, method)
    epsilons = np.linspace(0.0, end if np.isfinite(end) else 0.0, POINTS)
    kept = 1 - privacy_profile(account, epsilons.tolist(), method)[:, None]
    factors = np.exp(epsilons)[:, None]
    return np.maximum(0.0, np.maximum(kept - factors * asked, (kept - asked) / factors)).max(axis=0)  # type: ignore[no-any-return]


def trade_off_curve(account: Accountant) -> list[tuple[float, float]]:
    """The trade-off at 101 rates of false positives, as pairs for programs and pictures; see `trade_off`."""
    rates = np.linspace(0.0, 1.0, 101)
    return [(round(x, 4), round(y, 6)) for x, y in zip(rates.tolist(), trade_off(account, rates.tolist()), strict=True)]


def plot_profile(
    accounts: Mapping[str, Accountant], path: Path, *, largest: float | None = None, method: Method = "auto"
) -> None:
    """Draw profiles of accounts of one relation up to epsilon `largest`, by default where all reach delta = 1e-9."""
    if not accounts:
        raise PrivacyError("there is no account to draw")
    relations = {account.relation for account in accounts.values()}
    if len(relations) > 1:
        names = ", ".join(map(str, sorted(relations)))
        raise PrivacyError(f"profiles of different units or adjacencies do not compare: {names}")
    (relation,) = relations
    ends = [account.epsilon(1e-9, method) for account in accounts.values()]
    end = largest or max([e for e in ends if np.isfinite(e)], default=1.0) or 1.0
    epsilons = np.linspace(0.0, end, 129)
    figure = blank(6, 4)
    axes = figure.subplots()
    for name, account in accounts.items():
        deltas = privacy_profile(account, epsilons.tolist(), method)
        axes.semilogy(epsilons, np.where(deltas > 0, deltas, np.nan), label=name)
    axes.set(xlabel=f"epsilon for {relation}", ylabel="delta", ylim=(1e-12, 1.5))
    axes.legend()
    axes.grid(alpha=0.3)
    save(figure, path)
