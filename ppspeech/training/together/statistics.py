"""Mixtures and hidden Markov models from many users' speech that nobody sees: sums of EM statistics, round by round.

The model of every round is public. Each user computes locally what its own speech says about it, the statistics are
added up so that only their sum is seen, and everyone takes the same M-step. With a budget the statistics of one unit
are clipped and the users add noise that nobody knows (`private_statistics` has the bounds and the M-step); without, the
sums are exact to the grid, and what the sequence of models gives away, it gives away. Who takes part is seen by all:
what is protected is what a unit contributes.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ppspeech.audio import length_mask
from ppspeech.errors import ModelError
from ppspeech.models.gaussian import GaussianMixture, MixtureStatistics, mixture_statistics, update_mixture_
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel
from ppspeech.privacy import check_count
from ppspeech.privacy.mechanisms import Moments, StatisticsRelease, UnitSums, shares_for
from ppspeech.protocols.sums import JointSum, PlainSum, Shares
from ppspeech.training.private.statistics import (
    free_transitions,
    hmm_moments,
    maximize_hmm_,
    maximize_mixture_,
    mixture_moments,
)


def statistics_shares(release: StatisticsRelease, parties: int, dimension: int, colluders: int = 1) -> Shares:
    """One user's part of the noise of every round, so that all rounds together meet the release's budget.

    Args:
        release: the bounds, the budget and the number of rounds.
        parties: how many users take part.
        dimension: of the statistics: `mixture_dimension` or `hmm_dimension`.
        colluders: how many may share what they know.
    """
    return shares_for(
        "skellam",
        epsilon=release.epsilon,
        delta=release.delta,
        parties=parties,
        sensitivity=release.mechanism.sensitivity,
        dimension=dimension,
        relation=release.relation,
        colluders=colluders,
        releases=release.iterations,
    )


def mixture_dimension(model: GaussianMixture) -> int:
    """How many numbers a private round adds up: counts, first moments, pooled second moments, mass."""
    features = model.gaussians.features
    return model.components * (1 + features) + features + 1


def hmm_dimension(bank: HiddenMarkovModel) -> int:
    """How many numbers a private round adds up, transitions too.

    Raises:
        ModelError: if the emissions are not one Gaussian a state.
    """
    if not isinstance(bank.emission, GaussianEmission) or bank.emission.components > 1:
        raise ModelError("private Baum-Welch needs one Gaussian of diagonal covariance a state")
    models, cells, features = bank.emission.gaussians.mean.shape
    free = int(free_transitions(bank.topology, bank.transition_logits).sum())
    return models * cells * (1 + features) + features + 1 + models * free


@torch.no_grad()
def fit_mixture_jointly_(
    model: GaussianMixture, total: PlainSum, features: Tensor, lengths: Tensor, rounds: int
) -> None:
    """Be one user of EM without noise, for any covariance; all users end with the same model.

    Args:
        model: the public start.
        total: the exact sum over all users.
        features: our utterances, `(n, frames, d)`.
        lengths: `(n,)`.
        rounds: R, fixed in advance.

    Raises:
        RoundEndedError: if a user is missing.
    """
    check_count("rounds", rounds)
    inside = length_mask(lengths, features.shape[1]).flatten()
    for _ in range(rounds):
        found = mixture_statistics(model, features.flatten(0, 1), inside.to(features.dtype))
        # The likelihood is left out: the M-step does not need it.
        parts = (found.count, found.first, found.second)
        sums = _split(total(torch.cat([part.flatten() for part in parts])), [part.shape for part in parts])
        count, first, second = sums
        update_mixture_(model, MixtureStatistics(count, first, second, found.log_likelihood, found.frames))


@torch.no_grad()
def fit_mixture_privately_(
    model: GaussianMixture,
    total: JointSum | PlainSum,
    features: Tensor,
    lengths: Tensor,
    release: StatisticsRelease,
) -> None:
    """Be one user of private EM for one diagonal mixture (a background model); all users end with the same.

    Args:
        model: the public start.
        total: the noisy sum over all users.
        features: our utterances, `(n, frames, d)`; where the unit is a speaker they are one speaker's.
        lengths: `(n,)`.
        release: the bounds; its iterations are the rounds.

    Raises:
        RoundEndedError: if a user is missing.
    """
    for _ in range(release.iterations):
        noisy = _released(total, mixture_moments(model, features, lengths), lengths, release)
        maximize_mixture_(model, noisy, release)


@torch.no_grad()
def fit_hmm_privately_(
    bank: HiddenMarkovModel,
    total: JointSum | PlainSum,
    features: Tensor,
    lengths: Tensor,
    labels: Tensor,
    release: StatisticsRelease,
) -> None:
    """Be one user of private Baum-Welch for a bank of word models; all users end with the same.

    Args:
        bank: the public start, one diagonal Gaussian a state.
        total: the noisy sum over all users.
        features: our utterances, `(n, frames, d)`.
        lengths: `(n,)`.
        labels: the word of each, `(n,)`.
        release: the bounds; its iterations are the rounds.
    """
    for _ in range(release.iterations):
        noisy = _released(total, hmm_moments(bank, features, lengths, labels), lengths, release)
        maximize_hmm_(bank, noisy, release)


def _released(
    total: Callable[[Tensor], Tensor], moments: Moments, lengths: Tensor, release: StatisticsRelease
) -> Moments:
    """The noisy sums of all users as moments of one row."""
    sums = UnitSums(release, speakers=1)
    sums.add(moments, lengths, torch.zeros_like(lengths))
    pieces = _split(total(sums.total()), [part.shape[1:] for part in moments.parts])
    return Moments(
        *((piece / (scale or 1.0)).unsqueeze(0) for piece, scale in zip(pieces, release.scales, strict=True))
    )


def _split(vector: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    pieces = torch.split(vector, [shape.numel() for shape in shapes])
    return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]
