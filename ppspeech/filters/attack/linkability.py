"""Linkability: how surely two samples of one person can be told from two samples of two (Gomez-Barrero et al. 2018)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import ModelError

MOST_BINS, SCORES_A_BIN = 100, 10


@dataclass(frozen=True)
class Linkability:
    """D_sys of a list of scores, and what the same estimate gives where nothing is to be found."""

    value: float  # D_sys, from 0 (scores of one person and of two are distributed alike) to 1 (they never overlap)
    chance: float  # the mean of it with scores exchanged at random: its bias, which grows as scores get few


def linkability(
    mated: Tensor, non_mated: Tensor, *, omega: float = 1.0, shuffles: int = 20, seed: int = 0
) -> Linkability:
    """The global linkability D_sys of scores, by histograms.

    With LR(s) = p(s | mated) / p(s | non-mated), the local measure is

        D(s) = max(0, 2 omega LR(s) / (1 + omega LR(s)) - 1),

    which is how far the odds that a pair with score s is mated exceed even ones, and D_sys is its mean over mated
    scores. Scores are put in bins of equal counts (deciles and the like, ties together), at least 10 mated scores a bin
    and at most 100 bins; the published code uses bins of equal width. `omega` is the prior odds of a mated pair;
    `chance` is the mean of `shuffles` random exchanges. Raises ModelError for NaN scores, fewer than 20 of either kind,
    or odds that are not positive.

    >>> apart = linkability(torch.arange(100.0) + 1000, torch.arange(100.0))
    >>> apart.value
    1.0
    """
    mated, non_mated = mated.detach().double().reshape(-1), non_mated.detach().double().reshape(-1)
    if min(len(mated), len(non_mated)) < 2 * SCORES_A_BIN:
        raise ModelError(
            f"linkability needs at least {2 * SCORES_A_BIN} mated and non-mated scores, "
            f"got {len(mated)} and {len(non_mated)}"
        )
    if not omega > 0:
        raise ModelError(f"the prior odds omega must be > 0, got {omega}")
    scores = torch.cat([mated, non_mated])
    if bool(scores.isnan().any()):
        raise ModelError(f"{int(scores.isnan().sum())} of {len(scores)} scores are NaN")
    place, bins = _bins(scores, len(mated))
    generator = torch.Generator().manual_seed(seed)
    exchanged = [place[torch.randperm(len(place), generator=generator).to(place.device)] for _ in range(shuffles)]
    chance = [_global_measure(order, len(mated), bins, omega) for order in exchanged]
    return Linkability(_global_measure(place, len(mated), bins, omega), sum(chance) / max(1, len(chance)))


def _bins(scores: Tensor, mated: int) -> tuple[Tensor, int]:
    """The bin of each score and how many there are; half of the edges follow the mated scores, so both tails count."""
    wanted = max(2, min(MOST_BINS, mated // SCORES_A_BIN) // 2)
    levels = torch.linspace(0, 1, wanted + 1, dtype=torch.float64, device=scores.device)
    edges = torch.unique(torch.cat([_quantiles(scores[:mated], levels), _quantiles(scores[mated:], levels)]))
    return torch.bucketize(scores, edges), len(edges) + 1


def _quantiles(scores: Tensor, levels: Tensor) -> Tensor:
    """Values of the list at these levels; torch.quantile takes no list of more than 16 million."""
    ordered = scores.sort().values
    return ordered[(levels * (len(scores) - 1)).long()]


def _global_measure(place: Tensor, mated: int, bins: int, omega: float) -> float:
    own = torch.bincount(place[:mated], minlength=bins).double() / mated
    other = torch.bincount(place[mated:], minlength=bins).double() / (len(place) - mated)
    total = omega * own + other
    local = torch.where(total > 0, 2 * omega * own / total - 1, 0.0).clamp_min(0)
    return float((own * local).sum())
