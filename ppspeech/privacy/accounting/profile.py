"""The privacy profile: delta as a function of epsilon, as numbers and as a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppspeech.errors import PrivacyError
from ppspeech.pictures import blank, save
from ppspeech.privacy.accounting.accountant import Accountant, Method


def privacy_profile(account: Accountant, epsilons: Sequence[float], method: Method = "auto") -> NDArray[np.float64]:
    """delta(epsilon) of an account at each epsilon, made non-increasing (a bound at a smaller epsilon still holds)."""
    deltas = np.array([account.delta(float(epsilon), method) for epsilon in epsilons])
    order = np.argsort(np.asarray(epsilons, dtype=np.float64), kind="stable")
    deltas[order] = np.minimum.accumulate(deltas[order])
    return deltas


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
