"""The best path through hidden Markov models, in log space, for any emission scores."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.models.hmm.forward_backward import check_recursion


@dataclass(frozen=True, slots=True)
class BestPath:
    """The most probable path of every utterance.

    Attributes:
        score: its log-probability together with the frames, `(batch, *lead)`; 0 for an empty utterance, below `LOG_ZERO
            / 2` where there is no path.
        states: the state at each frame, `(batch, frames, *lead)`, and -1 beyond the utterance's length. Of equal paths,
            the one through lower states.
    """

    score: Tensor
    states: Tensor


def viterbi(
    log_emissions: Tensor,
    log_transitions: Tensor,
    log_initial: Tensor,
    lengths: Tensor,
    log_final: Tensor | None = None,
) -> BestPath:
    """Max in place of the forward recursion's sum, then a traceback; shapes as in `forward_variables`.

    The score carries a gradient: that of the frames and transitions along the best path.
    """
    check_recursion(log_emissions, log_transitions, log_initial, lengths)
    batch, frames = log_emissions.shape[:2]
    ones = [1] * (log_emissions.ndim - 2)
    live = (torch.arange(frames, device=log_emissions.device) < lengths.unsqueeze(-1)).view(batch, frames, *ones)
    itself = torch.arange(log_emissions.shape[-1], device=log_emissions.device)

    best = log_initial + log_emissions[:, 0]
    origins = []
    for t in range(1, frames):
        arriving, origin = (best.unsqueeze(-1) + log_transitions).max(dim=-2)
        best = torch.where(live[:, t], log_emissions[:, t] + arriving, best)
        origins.append(torch.where(live[:, t], origin, itself))
    score, state = (best if log_final is None else best + log_final).max(dim=-1)

    path = [state]
    for origin in reversed(origins):
        state = origin.gather(-1, state.unsqueeze(-1)).squeeze(-1)
        path.append(state)
    inside = live.squeeze(-1)
    states = torch.where(inside, torch.stack(path[::-1], dim=1), -1)
    return BestPath(torch.where(inside[:, 0], score, 0), states)
