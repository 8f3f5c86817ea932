"""Score normalization against a cohort of impostors: Z-norm, T-norm and both."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import ModelError

SMALLEST_COHORT = 2


@dataclass(frozen=True)
class CohortStatistics:
    """Mean and standard deviation of impostor scores, one pair a speaker (Z) or a trial (T).

    Attributes:
        mean: `(...)`.
        std: `(...)`, > 0.
    """

    mean: Tensor
    std: Tensor


def cohort_statistics(scores: Tensor) -> CohortStatistics:
    """Statistics of cohort scores along the last axis, `(..., cohort)`.

    Raises:
        ModelError: for fewer than two cohort members, scores that are not finite, or a cohort whose scores are
            all equal: its scale is unknown.
    """
    if scores.ndim < 1 or scores.shape[-1] < SMALLEST_COHORT:
        size = scores.shape[-1] if scores.ndim else 0
        raise ModelError(f"a cohort needs at least {SMALLEST_COHORT} members to have a spread, got {size}")
    if not bool(scores.isfinite().all()):
        raise ModelError("cohort scores must be finite")
    std, mean = torch.std_mean(scores, dim=-1)
    if not bool((std > 0).all()):
        raise ModelError("the cohort's scores are all equal, so they give no scale: use other impostors")
    return CohortStatistics(mean, std)


def z_norm(scores: Tensor, impostors: Tensor) -> Tensor:
    """Each speaker's scores in units of the scores impostor trials get from that speaker's model.

    Args:
        scores: `(trials, speakers)`.
        impostors: scores of the cohort's trials, `(cohort, speakers)`.
    """
    cohort = cohort_statistics(impostors.mT)
    return (scores - cohort.mean) / cohort.std


def t_norm(scores: Tensor, cohort_models: Tensor) -> Tensor:
    """Each trial's scores in units of the scores the trial gets from the models of impostors.

    Args:
        scores: `(trials, speakers)`.
        cohort_models: scores of the same trials under the cohort's models, `(trials, cohort)`.
    """
    cohort = cohort_statistics(cohort_models)
    return (scores - cohort.mean.unsqueeze(-1)) / cohort.std.unsqueeze(-1)


def zt_norm(scores: Tensor, impostors: Tensor, cohort_models: Tensor, impostors_on_cohort: Tensor) -> Tensor:
    """Z-norm, then T-norm with cohort scores that are Z-normed themselves (Auckenthaler et al. 2000).

    Args:
        scores: `(trials, speakers)`.
        impostors: impostor trials under the speakers' models, `(impostors, speakers)`.
        cohort_models: the trials under the cohort's models, `(trials, cohort)`.
        impostors_on_cohort: impostor trials under the cohort's models, `(impostors, cohort)`.
    """
    return t_norm(z_norm(scores, impostors), z_norm(cohort_models, impostors_on_cohort))
