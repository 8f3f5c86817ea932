"""Viterbi search through a decoding graph: from emission scores to words with their times."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.decoding.graph import NOTHING, DecodingGraph
from ppspeech.models.hmm.forward_backward import LOG_ZERO


@dataclass(frozen=True, slots=True)
class Word:
    """A word that was heard in frames `start` to `end - 1`, with the score of these frames along the best path."""

    word: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What was heard: words without silence and garbage, and the best path's log-score and states of the graph."""

    words: tuple[Word, ...]
    score: float
    states: tuple[int, ...]


@torch.no_grad()
def decode(
    graph: DecodingGraph, log_emissions: Tensor, beam: float | None = None, word_beam: float | None = None
) -> Hypothesis:
    """The best path through the graph, exact without beams.

    `log_emissions` are of the pdfs the graph points to, `(frames, pdfs)`; for a bank, its emission scores `(frames,
    models, states)` flattened. States more than `beam` below the frame's best are forgotten, and beginnings of units
    more than `word_beam` below the best beginning. Raises ModelError for empty audio, missing columns, beams that are
    not positive, or when no path that is left explains the audio.
    """
    _check(graph, log_emissions, beam, word_beam)
    if beam is None and word_beam is None:
        origins, scores = _search_all(graph, log_emissions)
    else:
        origins, scores = _search_within(graph, log_emissions, beam, word_beam)
    total, last = (scores + graph.log_final.to(scores)).max(dim=0)
    if total < LOG_ZERO / 2:
        why = (
            "it is too short for anything the graph allows"
            if beam is None and word_beam is None
            else ("it is too short for the graph, or the beams lost the path: widen them")
        )
        raise ModelError(f"no path through the graph explains the audio of {len(log_emissions)} frames: {why}")
    return _trace(graph, log_emissions, origins, int(last), float(total))


def _search_all(graph: DecodingGraph, log_emissions: Tensor) -> tuple[list[Tensor], Tensor]:
    """For every frame after the first, the arc each state was best reached by; and the last scores."""
    device = log_emissions.device
    emissions = log_emissions[:, graph.pdfs.to(device)]
    sources, targets = graph.sources.to(device), graph.targets.to(device)
    weights = graph.log_weights.to(emissions)
    order = torch.arange(len(sources), device=device)
    scores = graph.log_initial.to(emissions) + emissions[0]
    origins = []
    for frame in emissions[1:]:
        arriving = scores[sources] + weights
        best = torch.full_like(scores, LOG_ZERO).scatter_reduce(0, targets, arriving, "amax")
        winner = torch.where(arriving == best[targets], order, len(order))
        origins.append(targets.new_full(scores.shape, len(order)).scatter_reduce(0, targets, winner, "amin"))
        scores = best + frame
    return origins, scores


def _search_within(
    graph: DecodingGraph, log_emissions: Tensor, beam: float | None, word_beam: float | None
) -> tuple[list[Tensor], Tensor]:
    """As `_search_all`, looking only at arcs that leave states within the beams."""
    device = log_emissions.device
    emissions = log_emissions[:, graph.pdfs.to(device)]
    sources, targets = graph.sources.to(device), graph.targets.to(device)
    weights, begins = graph.log_weights.to(emissions), (graph.entries != NOTHING).to(device)
    scores = graph.log_initial.to(emissions) + emissions[0]
    origins = []
    for frame in emissions[1:]:
        near = scores > (LOG_ZERO / 2 if beam is None else max(float(scores.max()) - beam, LOG_ZERO / 2))
        arcs = near[sources].nonzero().squeeze(-1)
        arriving = scores[sources[arcs]] + weights[arcs]
        if word_beam is not None:
            begin = begins[arcs]
            top = torch.where(begin, arriving, LOG_ZERO).amax() if len(arcs) else arriving.sum()
            keep = ~begin | (arriving >= top - word_beam)
            arcs, arriving = arcs[keep], arriving[keep]
        goals = targets[arcs]
        best = torch.full_like(scores, LOG_ZERO).scatter_reduce(0, goals, arriving, "amax")
        winner = torch.where(arriving == best[goals], arcs, len(sources))
        origins.append(goals.new_full(scores.shape, len(sources)).scatter_reduce(0, goals, winner, "amin"))
        scores = best + frame
    return origins, scores


def _trace(graph: DecodingGraph, log_emissions: Tensor, origins: list[Tensor], last: int, total: float) -> Hypothesis:
    """Walk back from the last state, then read words and their times off the arcs."""
    states, arcs = [last], []
    for origin in reversed(origins):
        arcs.append(int(origin[states[-1]]))
        states.append(int(graph.sources[arcs[-1]]))
    states, arcs = states[::-1], arcs[::-1]

    along = torch.tensor(arcs, dtype=torch.long)
    entries = [int(graph.first_entries[states[0]]), *graph.entries[along].tolist()]
    steps = torch.cat([graph.log_initial[states[:1]], graph.log_weights[along]])
    frames = log_emissions[torch.arange(len(states)), graph.pdfs[states].to(log_emissions.device)]
    gains = (steps + frames.to(steps)).tolist()
    said = [*graph.said[along].tolist(), int(graph.last_said[last])]  # after each frame
    begins = [t for t, entry in enumerate(entries) if entry != NOTHING]
    words = []
    for start, end in zip(begins, [*begins[1:], len(states)], strict=True):
        word = graph.words[entries[start] if entries[start] >= 0 else said[end - 1]]
        if word is not None:
            words.append(Word(word, start, end, sum(gains[start:end])))
    return Hypothesis(tuple(words), total, tuple(states))


def _check(graph: DecodingGraph, log_emissions: Tensor, beam: float | None, word_beam: float | None) -> None:
    if log_emissions.ndim != 2 or len(log_emissions) == 0:
        raise ModelError(
            f"decoding needs emission scores (frames, pdfs) of at least one frame, got {tuple(log_emissions.shape)}: "
            "the audio is empty or too short for a frame"
        )
    if int(graph.pdfs.max()) >= log_emissions.shape[1]:
        raise ModelError(
            f"the graph points to pdf {int(graph.pdfs.max())}, the scores have {log_emissions.shape[1]} columns: "
            "score with the bank the graph was built from"
        )
    for name, value in (("beam", beam), ("word_beam", word_beam)):
        if value is not None and not value > 0:
            raise ModelError(f"{name} must be > 0, got {value}")
