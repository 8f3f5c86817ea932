"""Word models as an encrypted service computes them: no rarer moves than so, and a floor under what a frame can score.

One outlier among the frames costs a path thousands of nats, more than all others together tell. Shares have a range
(`ppspeech.protocols.scores.range`). Where it does not hold what frames within the public radius can score, there is a
floor, and for answers to be the same in the clear, it is here too:

    e_t(j) <- max(e_t(j), level - ln a_jj),      for every component of a state, staying in the state included,

and a transition or beginning that the structure has counts as no rarer than e^RAREST.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ppspeech.models.hmm.bank import BANDED, HiddenMarkovModel
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.forward_backward import LOG_ZERO, log_likelihood
from ppspeech.models.hmm.viterbi import viterbi
from ppspeech.models.margin.hmm import LargeMarginHmm

RAREST = -100.0  # ln of the rarest transition: what is rarer, or impossible, counts as this rare
DEPTH = 512  # nats from the highest score to the floor, doubled until every state has its room
ROOM = 256  # nats from the lowest of all states' highest scores to the floor

WordModel = HiddenMarkovModel | LargeMarginHmm


@dataclass(frozen=True, slots=True)
class ScoreFloor:
    """`level`: the score of a frame, staying included, below which nothing counts. `depth`: nats to it from the highest
    score of a frame; a client that is told it learns about the model how often it was doubled.
    """

    level: float
    depth: int


@torch.no_grad()
def score_floor(model: nn.Module) -> ScoreFloor | None:
    """The floor of a model, from its weights alone; None for one that scores no frames, or symbols."""
    if not isinstance(model, WordModel) or (
        isinstance(model, HiddenMarkovModel) and not isinstance(model.emission, GaussianEmission)
    ):
        return None
    peaks = _peaks(model)
    stays = _stays(model, _chances(model)[0]).double()
    peaks = peaks + stays.view(*stays.shape, *[1] * (peaks.ndim - 2))
    highest, lowest = float(peaks.max()), float(peaks.min())
    depth = DEPTH
    while depth < highest - lowest + ROOM:
        depth *= 2
    return ScoreFloor(highest - depth, depth)


def floored_scores(
    model: WordModel, features: Tensor, lengths: Tensor, floor: ScoreFloor | None, *, best_path: bool = False
) -> Tensor:
    """As `model(features, lengths)`, or of the best path alone, above the floor, if any: `(batch, models)`."""
    transitions, initial = _chances(model)
    least = (-math.inf if floor is None else floor.level) - _stays(model, transitions)
    if isinstance(model, LargeMarginHmm):
        emissions = torch.maximum(model.emissions(features), least)
    else:
        assert isinstance(model.emission, GaussianEmission)
        emissions = model.emission.log_likelihood(features, least=least)
    terms = emissions, transitions, initial, lengths, model.log_final()
    if best_path:
        return viterbi(*terms).score
    offsets = model.topology.offsets
    return log_likelihood(*terms, band=offsets if len(offsets) <= BANDED else None)


def _peaks(model: WordModel) -> Tensor:
    """The highest score of a frame in each state, or component, `(models, states[, components])`, in float64.

    A density is highest at its mean; -z' Phi z too, on all of a plane where Phi is only semidefinite.
    """
    if isinstance(model, LargeMarginHmm):
        phi = model.phi().double()
        side = phi[..., :-1, -1:]
        lifted = side.mT @ torch.linalg.pinv(phi[..., :-1, :-1], hermitian=True) @ side
        peaks: Tensor = lifted[..., 0, 0] - phi[..., -1, -1]
        return peaks
    assert isinstance(model.emission, GaussianEmission)
    covariances, logits = model.emission.gaussians.covariances().double(), model.emission.weight_logits
    weights = 0.0 if logits is None else logits.double().log_softmax(-1)
    return weights - (2 * math.pi * covariances).logdet() / 2


def _chances(model: WordModel) -> tuple[Tensor, Tensor]:
    """ln of all transitions along the diagonals in use, and of all beginnings that may be, RAREST at least."""
    offsets, states = model.topology.offsets, model.topology.states
    place = torch.arange(states, device=model.initial_logits.device)
    apart = (place - place.unsqueeze(-1)).unsqueeze(-1)
    used = (apart == torch.tensor(offsets, device=place.device)).any(-1)
    begins = model.topology.masks(model.initial_logits)[1]
    transitions = torch.where(used, model.log_transitions().clamp_min(RAREST), LOG_ZERO)
    return transitions, torch.where(begins, model.log_initial().clamp_min(RAREST), LOG_ZERO)


def _stays(model: WordModel, transitions: Tensor) -> Tensor:
    """ln of staying in each state, `(models, states)`; 0 where no path stays."""
    stays = transitions.diagonal(dim1=-2, dim2=-1)
    return stays if 0 in model.topology.offsets else torch.zeros_like(stays)
