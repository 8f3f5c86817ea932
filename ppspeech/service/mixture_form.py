"""A background model and its speakers as the encrypted layer wants them: arrays, sizes, and frames within bounds."""

import math
from dataclasses import replace

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.bundle import Bundle
from ppspeech.errors import RangeError
from ppspeech.protocols.scores import Covariance, MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers import UNLIKELY

DEVIATIONS = 2.5
"""Frames are held to so many standard deviations in every direction: those of normalized features rarely reach it."""
LONGEST_FRAME = 100.0
"""Where features are not normalized."""
LARGEST_REACH = 16


def covariance_of(bundle: Bundle) -> Covariance:
    """Which monomials its Gaussians need."""
    return "full" if bundle.verifier.ubm.gaussians.kind in {"full", "tied"} else "diagonal"


@torch.no_grad()
def background_mixture(bundle: Bundle) -> Mixtures:
    """The background model, a batch of one."""
    ubm = bundle.verifier.ubm
    matrices = ubm.gaussians.covariances().double()
    covariances = matrices if covariance_of(bundle) == "full" else matrices.diagonal(dim1=-2, dim2=-1)
    parts = (ubm.log_weights().double(), ubm.gaussians.mean.double(), covariances)
    return Mixtures(*(np.array(part.cpu().numpy())[None] for part in parts))


def with_means(background: Mixtures, means: Reals) -> Mixtures:
    """The mixtures of speakers whose templates are means `(speakers, size)`."""
    count = len(means)
    logs, covariances = (np.repeat(each, count, axis=0) for each in (background.log_weights, background.covariances))
    return Mixtures(logs, means.reshape(count, *background.means.shape[1:]), covariances)


def unlikely(background: Mixtures, count: int) -> Mixtures:
    """What stands in empty places: the background made so unlikely that nobody is accepted."""
    lowered = replace(background, log_weights=background.log_weights - UNLIKELY)
    return Mixtures(*(np.repeat(each, count, axis=0) for each in vars(lowered).values()))


def together(*mixtures: Mixtures) -> Mixtures:
    """All of them as one batch."""
    return Mixtures(*(np.concatenate(parts) for parts in zip(*(vars(each).values() for each in mixtures), strict=True)))


def plan_mixtures(bundle: Bundle, frames: int, places: int, cohort: int) -> MixturePlan:
    """Public sizes and scales: log-densities have a bit more room than the background's own need.

    Raises:
        RangeError: if the background's variances are too small for any plan.
    """
    ubm = bundle.verifier.ubm
    background, size = background_mixture(bundle), bundle.mfcc.features
    norm = LONGEST_FRAME if bundle.mfcc.cmvn == "none" else min(LONGEST_FRAME, DEVIATIONS * math.sqrt(size))
    for reach in range(7, LARGEST_REACH + 1):
        tried = MixturePlan(frames, size, ubm.components, covariance=covariance_of(bundle), norm=norm, reach=reach)
        try:
            MixtureScorer.of(tried, background, unlikely(background, 1), 0.0)
        except RangeError as too_far:
            refused = too_far
        else:
            return replace(tried, models=places, cohort=cohort, reach=min(LARGEST_REACH, reach + 1))
    raise refused


def plain_ratios(plan: MixturePlan, background: Mixtures, speakers: Mixtures, frames: Reals) -> Reals:
    """Average log-likelihood ratios of one trial in the clear, `(speakers,)`."""
    held = trial_frames(plan, frames)
    weights = together(background, speakers).weights(plan.covariance)
    densities = np.tensordot(plan.expand(held)[: len(held)], weights, axes=1)
    highest = densities.max(axis=-1)
    joined = highest + np.log(np.exp(densities - highest[..., None]).sum(axis=-1))
    ratios: Reals = (joined[:, 1:] - joined[:, :1]).mean(axis=0)
    return ratios
