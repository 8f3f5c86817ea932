"""Private Baum-Welch and private EM: what the banks of the models room contribute, and their M-steps."""

import torch
from torch import Tensor

from ppspeech.audio import length_mask
from ppspeech.errors import ModelError
from ppspeech.models.gaussian import GaussianMixture, Gaussians, mixture_statistics
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, Topology, set_logits_, utterance_hmm_statistics
from ppspeech.training.private.statistics import Moments, StatisticsRelease, about, reestimate_


@torch.no_grad()
def hmm_moments(bank: HiddenMarkovModel, features: Tensor, lengths: Tensor, labels: Tensor) -> Moments:
    """What each utterance says about a bank of word models: one row an utterance.

    Args:
        bank: one diagonal Gaussian a state.
        features: `(batch, frames, d)`.
        lengths: `(batch,)`.
        labels: the word of each, `(batch,)`.

    Raises:
        ModelError: if the bank's emissions are not one diagonal Gaussian a state.
    """
    found = utterance_hmm_statistics(bank, features, lengths, labels)
    count, first, second = about(_diagonal(bank), found.emissions, labels)
    own = (labels.unsqueeze(-1) == torch.arange(bank.models, device=labels.device)).to(count)
    moves = found.transitions[:, free_transitions(bank.topology, count)]
    return Moments(
        own[:, :, None] * count[:, None],
        own[:, :, None, None] * first[:, None],
        second,
        count.sum(-1, keepdim=True),
        own[:, :, None] * moves[:, None],
    )


@torch.no_grad()
def maximize_hmm_(bank: HiddenMarkovModel, noisy: Moments, release: StatisticsRelease) -> None:
    """The M-step from released sums: post-processing.

    Transitions get a Dirichlet prior around the released ones, as heavy as the noise: max(1, sd) a free entry.
    """
    reestimate_(_diagonal(bank), noisy, release)
    if release.transition_share == 0:
        return
    allowed, _, _ = bank.topology.masks(bank.transition_logits)
    free = free_transitions(bank.topology, bank.transition_logits)
    counts = bank.log_transitions().exp()
    prior = max(1.0, release.mechanism.sigma / release.scales[4]) * free.sum(-1, keepdim=True).clamp_min(1)
    counts = counts * prior
    counts[:, free] += noisy.transitions[0].clamp_min(0.0)
    set_logits_(bank.transition_logits, counts, allowed)


def free_transitions(topology: Topology, like: Tensor) -> Tensor:
    """The transitions that the topology allows and does not force, `(states, states)`."""
    allowed, _, _ = topology.masks(like)
    return allowed & (allowed.sum(-1, keepdim=True) > 1)


@torch.no_grad()
def mixture_moments(model: GaussianMixture, features: Tensor, lengths: Tensor) -> Moments:
    """What each utterance says about a background model: a bank of one model whose cells are the components.

    Raises:
        ModelError: if the mixture is not one diagonal mixture.
    """
    gaussians = _one_diagonal(model)
    inside = length_mask(lengths, features.shape[1]).to(features.dtype)
    found = mixture_statistics(model, features, inside)
    sums = torch.cat([found.second, found.first, found.count.unsqueeze(-1)], dim=-1).to(features.dtype)
    count, first, second = about(gaussians, sums, torch.zeros_like(lengths))
    mass = count.sum(-1, keepdim=True)
    return Moments(count.unsqueeze(1), first.unsqueeze(1), second, mass, count.new_zeros(len(count), 1, 0))


@torch.no_grad()
def maximize_mixture_(model: GaussianMixture, noisy: Moments, release: StatisticsRelease) -> None:
    """The M-step of a background model from released sums: post-processing."""
    gaussians = _one_diagonal(model)
    count = reestimate_(gaussians, noisy, release)[0]
    model.gaussians.set_moments_(gaussians.mean[0], gaussians.variances()[0])
    model.logits.copy_((count / count.sum()).log())


def _diagonal(bank: HiddenMarkovModel) -> Gaussians:
    emission = bank.emission
    if not isinstance(emission, GaussianEmission) or emission.components > 1 or emission.gaussians.kind != "diagonal":
        raise ModelError("private Baum-Welch needs one Gaussian of diagonal covariance a state")
    return emission.gaussians


def _one_diagonal(model: GaussianMixture) -> Gaussians:
    """The mixture's Gaussians as a bank of one model, `(1, components)`."""
    bank = model.gaussians
    if bank.kind != "diagonal" or model.batch:
        raise ModelError(f"private EM needs one mixture of diagonal covariances, got {bank.kind!r} {model.batch}")
    one = Gaussians((1, model.components), bank.features, "diagonal", bank.floor, bank.mean.dtype).to(bank.mean.device)
    one.set_moments_(bank.mean.detach().unsqueeze(0), bank.variances().detach().unsqueeze(0))
    return one
