r"""The forward and backward recursions of hidden Markov models, in log space, for any emission scores.

With e_t(j) the log-likelihood of frame t in state j, A the transition and pi the initial probabilities,

    alpha_0(j) = ln pi_j + e_0(j),     alpha_t(j) = e_t(j) + ln sum_i exp( alpha_{t-1}(i) + ln A_ij )
    beta_{L-1}(i) = ln final_i,        beta_t(i)  = ln sum_j exp( ln A_ij + e_{t+1}(j) + beta_{t+1}(j) )

and ln p(x) = ln sum_j exp( alpha_{L-1}(j) + ln final_j ) for an utterance of L frames.

Nothing here knows a module. Everywhere `*lead` stands for any axes that are computed side by side, such as the
models of a bank; `log_transitions` is `(*lead, states, states)`, `log_initial` and `log_final` are
`(*lead, states)`, and each may carry a batch axis in front where utterances have parameters of their own.

Minus infinity is the finite `LOG_ZERO`: a sum of impossible things stays a number and has a gradient that is a
number. It leaves room for 10^8 impossible frames in float32. An utterance that no path can explain scores
below `LOG_ZERO / 2`. An utterance of length 0 has probability one (score 0) and posteriors of zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.errors import ModelError

LOG_ZERO = -1e30

Band = Sequence[int] | None
"""The diagonals j - i of the transition matrix that are in use; None for all, computed densely."""


def forward_variables(
    log_emissions: Tensor, log_transitions: Tensor, log_initial: Tensor, lengths: Tensor, band: Band = None
) -> Tensor:
    """ln alpha of every frame, `(batch, frames, *lead, states)`; from an utterance's end on, its last is repeated.

    Emissions are of that shape too, transitions and initial as in the module's docstring, lengths `(batch,)`. With the
    diagonals in use as `band`, a left-right model needs two additions a state instead of a row of them.
    """
    check_recursion(log_emissions, log_transitions, log_initial, lengths)
    advance = _Advance(log_transitions, band)
    frames, live = log_emissions.unbind(1), _live(log_emissions, lengths).unbind(1)
    alpha = log_initial + frames[0]
    alphas = [alpha]
    for frame, inside in zip(frames[1:], live[1:], strict=True):
        alpha = torch.where(inside, frame + advance(alpha), alpha)
        alphas.append(alpha)
    return torch.stack(alphas, dim=1)


def backward_variables(
    log_emissions: Tensor, log_transitions: Tensor, lengths: Tensor, log_final: Tensor | None = None, band: Band = None
) -> Tensor:
    """ln beta of every frame, `(batch, frames, *lead, states)`; arguments as in `forward_variables`.

    From an utterance's last frame on, beta is `log_final`, or 0 where there is none.
    """
    check_recursion(log_emissions, log_transitions, None, lengths)
    retreat = _Advance(log_transitions.mT, None if band is None else [-k for k in band])
    frames, live = log_emissions.unbind(1), _live(log_emissions, lengths).unbind(1)
    beta = torch.zeros_like(frames[0])
    beta = beta if log_final is None else beta + log_final
    betas = [beta]
    for frame, inside in zip(frames[:0:-1], live[:0:-1], strict=True):
        beta = torch.where(inside, retreat(frame + beta), beta)
        betas.append(beta)
    return torch.stack(betas[::-1], dim=1)


def log_likelihood(
    log_emissions: Tensor,
    log_transitions: Tensor,
    log_initial: Tensor,
    lengths: Tensor,
    log_final: Tensor | None = None,
    band: Band = None,
) -> Tensor:
    """ln p(x) of every utterance, `(batch, *lead)`; arguments as in `forward_variables`, of which no frame is kept."""
    check_recursion(log_emissions, log_transitions, log_initial, lengths)
    advance = _Advance(log_transitions, band)
    live = _live(log_emissions, lengths)
    log_emissions, level = _rebase(log_emissions, live)
    frames, within = log_emissions.unbind(1), live.unbind(1)
    alpha = log_initial + frames[0]
    for frame, inside in zip(frames[1:], within[1:], strict=True):
        alpha = torch.where(inside, frame + advance(alpha), alpha)
    return _finish(alpha, log_final, within[0]) + level


@dataclass(frozen=True, slots=True)
class Posteriors:
    """What the data says about the hidden path.

    Attributes:
        states: gamma, the probability of each state at each frame, `(batch, frames, *lead, states)`; zero beyond an
            utterance's length.
        transitions: xi summed over time, the expected number of each transition, `(batch, *lead, states, states)`.
        log_likelihood: ln p(x), `(batch, *lead)`.

    Where no path can explain an utterance, its posteriors are zero: it has nothing to teach.
    """

    states: Tensor
    transitions: Tensor
    log_likelihood: Tensor


def posteriors(
    log_emissions: Tensor,
    log_transitions: Tensor,
    log_initial: Tensor,
    lengths: Tensor,
    log_final: Tensor | None = None,
    band: Band = None,
) -> Posteriors:
    """Gamma, summed xi and the log-likelihood; arguments as in `forward_variables`."""
    check_recursion(log_emissions, log_transitions, log_initial, lengths)
    live = _live(log_emissions, lengths)
    log_emissions, level = _rebase(log_emissions, live)
    alpha = forward_variables(log_emissions, log_transitions, log_initial, lengths, band)
    beta = backward_variables(log_emissions, log_transitions, lengths, log_final, band)
    rest = _finish(alpha[:, -1], log_final, live[:, 0])
    score = rest + level
    possible = live & (score > LOG_ZERO / 2)[:, None, ..., None]
    rest = rest[:, None, ..., None]
    gamma = _exp(torch.where(possible, alpha + beta - rest, LOG_ZERO))

    states = log_emissions.shape[-1]
    offsets = range(1 - states, states) if band is None else band
    arriving = torch.where(possible, log_emissions + beta - rest, LOG_ZERO)[:, 1:]
    batched = log_transitions.ndim == log_emissions.ndim
    xi = score.new_zeros(*score.shape, states, states)
    for offset in offsets:
        weight = _diagonal(log_transitions, offset)
        weight = weight.unsqueeze(1) if batched else weight
        expected = _exp(_shift(alpha[:, :-1], offset) + weight + arriving).sum(1)
        inside = expected[..., max(offset, 0) : states + min(offset, 0)]
        xi.diagonal(offset, -2, -1).copy_(inside)
    return Posteriors(gamma, xi, score)


def check_recursion(
    log_emissions: Tensor, log_transitions: Tensor, log_initial: Tensor | None, lengths: Tensor
) -> None:
    """Refuse shapes that do not fit each other. Raises ModelError naming the shapes."""
    if log_emissions.ndim < 3 or log_emissions.shape[1] < 1:
        raise ModelError(
            "log_emissions must be (batch, frames, ..., states) with at least one frame, "
            f"got {tuple(log_emissions.shape)}"
        )
    states = log_emissions.shape[-1]
    if log_transitions.shape[-2:] != (states, states) or (log_initial is not None and log_initial.shape[-1] != states):
        initial = "" if log_initial is None else f" and log_initial {tuple(log_initial.shape)}"
        raise ModelError(f"log_transitions {tuple(log_transitions.shape)}{initial} do not fit {states} states")
    if lengths.shape != log_emissions.shape[:1]:
        raise ModelError(f"lengths must be ({log_emissions.shape[0]},), one a batch entry, got {tuple(lengths.shape)}")


class _Advance:
    """ln sum_i exp( alpha_i + ln A_ij ), densely or along the diagonals in use."""

    def __init__(self, log_transitions: Tensor, band: Band) -> None:
        self.dense = log_transitions
        self.diagonals = None if band is None else [(k, _diagonal(log_transitions, k)) for k in band]

    def __call__(self, alpha: Tensor) -> Tensor:
        if self.diagonals is None:
            return torch.logsumexp(alpha.unsqueeze(-1) + self.dense, dim=-2)
        terms = [_shift(alpha, offset) + weight for offset, weight in self.diagonals]
        total = terms[0]
        for term in terms[1:]:
            total = torch.logaddexp(total, term)
        return total


def _shift(alpha: Tensor, offset: int) -> Tensor:
    """Move the value of state i to state i + offset; what comes in from outside is impossible."""
    return functional.pad(alpha, (offset, -offset), value=LOG_ZERO) if offset else alpha


def _diagonal(log_transitions: Tensor, offset: int) -> Tensor:
    """ln A_{j - offset, j} for every state j it exists for, impossible elsewhere: `(..., states)`."""
    inside = log_transitions.diagonal(offset, -2, -1)
    return functional.pad(inside, (max(offset, 0), max(-offset, 0)), value=LOG_ZERO)


def _exp(logarithm: Tensor) -> Tensor:
    """exp, and 0 below the root of the smallest normal number: products with denormal numbers are many times slower."""
    smallest = math.log(torch.finfo(logarithm.dtype).tiny) / 2
    return torch.where(logarithm < smallest, LOG_ZERO, logarithm).exp()


def _live(log_emissions: Tensor, lengths: Tensor) -> Tensor:
    """Which frames lie within their utterance, `(batch, frames, 1, ..., 1)`."""
    batch, frames = log_emissions.shape[:2]
    live = torch.arange(frames, device=log_emissions.device) < lengths.unsqueeze(-1)
    return live.view(batch, frames, *[1] * (log_emissions.ndim - 2))


def _rebase(log_emissions: Tensor, live: Tensor) -> tuple[Tensor, Tensor]:
    """Measure each frame from its best state, and the sum of what that takes off, `(batch, *lead)`.

    A running sum of 20,000 frames' log-likelihoods would round off whole nats in float32; what is left after
    this is small.
    """
    best = log_emissions.detach().amax(-1, keepdim=True)
    return log_emissions - best, torch.where(live, best, 0).sum(1).squeeze(-1)


def _finish(alpha: Tensor, log_final: Tensor | None, not_empty: Tensor) -> Tensor:
    """ln sum over the states an utterance may end in, and 0 for an empty one."""
    total = torch.logsumexp(alpha if log_final is None else alpha + log_final, dim=-1)
    return torch.where(not_empty.squeeze(-1), total, 0)
