"""The best segment of a keyword in a recording, against a garbage model of everything else.

A keyword is a chain of states. What a frame scores in state j is a ratio, ln of staying there included:

    e_j(t) = ln b_j(x_t) - ln g(x_t) + ln a_jj

A segment's score is the sum of its frames' along the best path through all states. Every such path makes the same
moves, so what these add is one constant (`Chain.constant`), and the search itself needs no weights:

    x_0(t) = max(x_0(t-1), 0) + e_0(t),    x_j(t) = max(x_j(t-1), x_{j-1}(t-1)) + e_j(t),    best = max_t x_last(t).

A key phrase is several chains with any number of frames between them, which count 0. Whole numbers are searched as real
ones are, so the same functions are the twin of a search on shares.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.errors import ModelError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.baum_welch import baum_welch, flat_start_
from ppspeech.models.hmm.emissions import GaussianEmission, Prior
from ppspeech.models.hmm.topology import left_right

BEYOND = -20
"""What a frame beyond the end of a recording scores: no keyword is found there, and no sum of it is far away."""
LAST_STAY = 0.8
"""Probability of staying in a keyword's last state, of which clips that end there tell nothing."""


TAKEN_FROM_ALL = 30.0
"""Frames that the variance of all states is worth in that of one: takes of a keyword are few."""
OTHERS = 2.0
ITERATIONS = 8


@dataclass(frozen=True)
class Segments:
    """The best segment of each recording: its score, in frames `starts[0]` to `end - 1`.

    `score`, `end`: `(*batch)`; `starts`: of each word of a phrase, `(*batch, words)`.
    """

    score: Tensor
    starts: Tensor
    end: Tensor

    @property
    def start(self) -> Tensor:
        """Of the whole segment."""
        return self.starts[..., 0]

    @property
    def length(self) -> Tensor:
        """In frames."""
        return self.end - self.start


@dataclass(frozen=True)
class Chain:
    """What transitions add to the scores of a keyword. `stays`: ln of staying, `(states,)`; `constant`: ln of all moves
    through the chain, each less staying in the state that it leads to, which every path pays once.
    """

    stays: Tensor
    constant: float

    @classmethod
    def of_bank(cls, bank: HiddenMarkovModel, model: int) -> "Chain":
        """Of one model of a bank of chains. Raises ModelError for a bank that leaps over states."""
        if bank.topology.offsets not in {(0,), (0, 1)}:
            raise ModelError(f"keywords are chains without leaps, this bank moves by {bank.topology.offsets}")
        transitions = bank.log_transitions().detach()[model].double()
        stays = transitions.diagonal().clone()
        stays[-1] = torch.tensor(LAST_STAY).log()
        moves = transitions.diagonal(1)
        return cls(stays, float((moves - stays[1:]).sum() - stays[0]))

    def ratios(self, log_emissions: Tensor, garbage: Tensor) -> Tensor:
        """e of every frame and state, `(*batch, frames, states)`, from ln b, and ln g `(*batch, frames)`."""
        return log_emissions + self.stays.to(log_emissions) - garbage.unsqueeze(-1)


def best_segments(ratios: Tensor, words: Sequence[int] | None = None) -> Segments:
    """The best segment of each recording. `ratios`: `(*batch, frames, states)`, real or whole numbers. `words`: states
    of each word of a phrase, one after the other; None: one word. Of equals the earlier wins, and staying.

    Raises ModelError for recordings shorter than the shortest path, or words that are not all the states.
    """
    *batch, frames, states = ratios.shape
    sizes = tuple(words or (states,))
    if sum(sizes) != states or min(sizes) < 1 or frames < states:
        raise ModelError(f"words of {sizes} states need as many scores and frames, got {frames} frames of {states}")
    firsts = [sum(sizes[:word]) for word in range(len(sizes))]
    ends = [first + size - 1 for first, size in zip(firsts, sizes, strict=True)]
    lowest = -torch.inf if ratios.is_floating_point() else torch.iinfo(ratios.dtype).min // 4
    value = ratios.new_full((*batch, states), lowest)
    starts = torch.zeros((*batch, states, len(sizes)), dtype=torch.long, device=ratios.device)
    gap = value[
        ..., : len(sizes)
    ].clone()  # the best end of each word so far, and how it began; of the last: the answer
    gap_starts, end = starts[..., : len(sizes), :].clone(), starts[..., 0, 0].clone()
    for t in range(frames):
        arriving, began = value.roll(1, -1), starts.roll(1, -2)
        for word, first in enumerate(firsts):
            if word:
                arriving[..., first], began[..., first, :] = gap[..., word - 1], gap_starts[..., word - 1, :]
            else:
                arriving[..., 0], began[..., 0, :] = 0, 0
            began[..., first, word] = t
        moves = arriving > value
        value = torch.where(moves, arriving, value) + ratios[..., t, :]
        starts = torch.where(moves.unsqueeze(-1), began, starts)
        if not ratios.is_floating_point():
            value = value.clamp_min(lowest)
        better = value[..., ends] > gap
        gap = torch.where(better, value[..., ends], gap)
        gap_starts = torch.where(better.unsqueeze(-1), starts[..., ends, :], gap_starts)
        end = torch.where(better[..., -1], t + 1, end)
    return Segments(gap[..., -1], gap_starts[..., -1, :], end)


def in_blocks(ratios: Tensor, block: int, longest: int, beyond: float = BEYOND) -> Tensor:
    """Recordings cut into blocks that overlap by the longest segment: `(*batch, blocks, block + longest, states)` from
    `(*batch, frames, states)`. Whatever is no longer lies in one of them whole.
    """
    if block < 1 or longest < 1:
        raise ModelError(f"blocks and what they overlap by have at least one frame, got {block} and {longest}")
    frames = ratios.shape[-2]
    blocks = -(-frames // block)
    padding = ratios.new_full((*ratios.shape[:-2], (blocks - 1) * block + block + longest - frames, 1), beyond)
    whole = torch.cat([ratios, padding.expand(*padding.shape[:-1], ratios.shape[-1])], dim=-2)
    return whole.unfold(-2, block + longest, block).transpose(-1, -2)


def best_of_blocks(found: Segments, block: int) -> Segments:
    """The best segment of each recording from those of its blocks, `(*batch, blocks)`; of equals the first."""
    at = found.score.argmax(-1, keepdim=True)
    score, end = (each.gather(-1, at).squeeze(-1) for each in (found.score, found.end))
    starts = found.starts.gather(-2, at.unsqueeze(-1).expand(*at.shape, found.starts.shape[-1])).squeeze(-2)
    moved = block * at.squeeze(-1)
    return Segments(score, starts + moved.unsqueeze(-1), end + moved)


def spot(ratios: Tensor, block: int, longest: int, words: Sequence[int] | None = None) -> Segments:
    """The best segment no longer than `longest` (longer ones where a block holds them), of each recording."""
    return best_of_blocks(best_segments(in_blocks(ratios, block, longest), words), block)


def best_average(ratios: Tensor, block: int, longest: int, constant: float = 0.0, passes: int = 6) -> Segments:
    """The segment whose frames score best on average, moves included; its `score` is that average.

    Iterative Viterbi (Silaghi 1999), a fixed number of passes: with θ taken off every frame the best segment scores
    s = Σ e - θ n, and Σ e / n = θ + s / n is the next θ. From the second pass on it never falls, and where it stays,
    nothing is better. `constant`: that of the chain. Raises ModelError for no pass.
    """
    if passes < 1:
        raise ModelError(f"a best average needs at least one pass, got {passes}")
    average = torch.zeros(ratios.shape[:-2], dtype=ratios.dtype, device=ratios.device)
    for _ in range(passes):
        found = spot(ratios - average[..., None, None], block, longest)
        average = average + (found.score + constant) / found.length
    return replace(found, score=average)


@dataclass(frozen=True)
class KeywordModel:
    """A chain of Gaussians: `mean` and `variances` `(states, d)`."""

    mean: Tensor
    variances: Tensor
    chain: Chain


@torch.no_grad()
def keyword_of_takes(takes: Sequence[Tensor], states: int, floor: float, people: int | None = None) -> KeywordModel:
    """A keyword from a few takes of it, `(frames, d)` each, by Baum-Welch; `people`: how many there are where some of
    the takes are the same one again.

    Few takes know little of how others say it: every state's variance is shrunk to that of all frames, which is worth
    `OTHERS` takes, and all states last as long. Raises ModelError for a take with fewer frames than states.
    """
    short = min((len(take) for take in takes), default=0)
    if short <= states:
        raise ModelError(f"a keyword of {states} states needs takes of more frames, got one of {short}")
    features = pad_sequence([take.float() for take in takes], batch_first=True)
    lengths, said = torch.tensor([len(take) for take in takes]), torch.zeros(len(takes), dtype=torch.long)
    emission = GaussianEmission(1, states, features.shape[-1], covariance="diagonal", floor=floor)
    bank, prior = HiddenMarkovModel(left_right(states, must_finish=True), emission), Prior(covariance=TAKEN_FROM_ALL)
    flat_start_(bank, features, lengths, said, prior)
    baum_welch(bank, features, lengths, said, ITERATIONS, prior)
    known = people or len(takes)
    own, every = emission.gaussians.variances()[0].double(), torch.cat(list(takes)).double().var(0)
    variances = ((known * own + OTHERS * every) / (known + OTHERS)).clamp_min(floor)
    move = states / float(lengths.double().mean())
    stays = torch.full((states,), 1 - move, dtype=torch.float64).log()
    constant = (states - 1) * math.log(move) - states * float(stays[0])
    return KeywordModel(emission.gaussians.mean[0].double(), variances, Chain(stays, constant))


def unit_ratios(log_emissions: Tensor, stays: Tensor, floor: float) -> Tensor:
    """What frames score in the states of all units, `(frames, states)`, against all together, each as likely.

        e_j = ln b_j - ln (1/n Σ_i b_i) + ln a_jj,      floor <= e_j <= ln n.

    `stays`: ln a_jj, `(states,)`. Nobody needs another garbage model, and no ratio is beyond what is public.
    """
    states = log_emissions.shape[-1]
    garbage = log_emissions.logsumexp(-1, keepdim=True) - torch.tensor(float(states)).log()
    return (log_emissions - garbage + stays.to(log_emissions)).clamp_min(floor)
