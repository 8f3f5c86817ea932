"""Training a bank of models on sentences: only transcripts are known, not where words begin and end.

Each sentence is a graph (its words in order, with optional silence). Baum-Welch runs on the graphs, and what
their states own is added up over all places where a model's state occurs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.errors import ModelError
from ppspeech.models.decoding.graph import DecodingGraph
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.baum_welch import HmmStatistics, update_hmm_
from ppspeech.models.hmm.emissions import MAXIMUM_LIKELIHOOD, Prior
from ppspeech.models.hmm.forward_backward import LOG_ZERO, posteriors


def embedded_training(
    bank: HiddenMarkovModel,
    features: Tensor,
    lengths: Tensor,
    draw: Callable[[HiddenMarkovModel], Sequence[DecodingGraph]],
    iterations: int = 10,
    prior: Prior = MAXIMUM_LIKELIHOOD,
) -> tuple[float, ...]:
    """Baum-Welch on sentences `(sentences, frames, d)`; the bank is trained in place.

    The bank must be initialized (`even_start_`). `draw` gives the graphs for the bank as it is: their weights come from
    its transitions. Returns the log-likelihood of the sentences before each iteration.
    """
    history = []
    for _ in range(iterations):
        found = embedded_statistics(bank, features, lengths, draw(bank))
        history.append(found.log_likelihood.sum())
        update_hmm_(bank, found, prior)
    return tuple(torch.stack(history).tolist()) if history else ()


@torch.no_grad()
def embedded_statistics(
    bank: HiddenMarkovModel, features: Tensor, lengths: Tensor, graphs: Sequence[DecodingGraph]
) -> HmmStatistics:
    """The E-step over sentences `(sentences, frames, d)`, summed by model.

    Graphs, one a sentence, have no loops over units; their pdf m * states + s is state s of model m, as `units_of_bank`
    numbers them. Returns statistics with the leading axis `(models,)`. A sentence that its graph cannot explain, being
    too short, adds no counts. A sentence's log-likelihood belongs to no model in particular and is shared equally.
    Raises ModelError if there are not as many graphs as sentences.
    """
    if len(graphs) != len(features):
        raise ModelError(f"{len(features)} sentences need as many graphs, got {len(graphs)}")
    models, states, frames = bank.models, bank.states, features.shape[1]
    scores = bank.emission.log_likelihood(features).flatten(2)
    together = _side_by_side(graphs, scores)
    column = together.pdfs.unsqueeze(1).expand(-1, frames, -1)
    found = posteriors(
        scores.gather(2, column), together.transitions, together.initial, lengths, together.final, together.band
    )
    own = torch.zeros_like(scores).scatter_add(2, column, found.states).view(-1, frames, models, states)

    # A transition belongs to a model where both its ends lie in the same copy of it.
    inside = found.transitions * together.same_copy
    pair = together.pdfs.unsqueeze(-1) * (models * states) + together.pdfs.unsqueeze(-2)
    counts = scores.new_zeros((models * states) ** 2).index_add(0, pair.flatten(), inside.flatten())
    within = counts.view(models, states, models, states).diagonal(dim1=0, dim2=2).permute(2, 0, 1)
    entered = (own.sum((0, 1)) - within.sum(1)).clamp_min(0)
    heard = own.sum((1, 3)).gt(0).sum(0).to(scores)
    share = (found.log_likelihood.sum() / models).expand(models)
    return HmmStatistics(entered, within, _emission_statistics(bank, features, own), share, heard)


@torch.no_grad()
def even_start_(
    bank: HiddenMarkovModel,
    features: Tensor,
    lengths: Tensor,
    transcripts: Sequence[Sequence[int]],
    quiet: Tensor | None = None,
    silence: int | None = None,
    prior: Prior = MAXIMUM_LIKELIHOOD,
) -> None:
    """Initialize emissions by cutting sentences into equal parts, one for each state of each model in a transcript.

    Frames without speech, `quiet` `(sentences, frames)`, go to the `silence` model, all its states alike, and only the
    others are cut. Raises ModelError if there are not as many transcripts as sentences, one is empty, or `quiet` comes
    without `silence`.
    """
    if len(transcripts) != len(features) or not all(transcripts):
        raise ModelError(f"{len(features)} sentences need as many transcripts of at least one model each")
    if (quiet is None) != (silence is None):
        raise ModelError("quiet frames and the index of the silence model must be given together")
    lines = [torch.tensor([m * bank.states + s for m in t for s in range(bank.states)]) for t in transcripts]
    parts = torch.tensor([len(line) for line in lines], device=features.device)
    line = torch.nn.utils.rnn.pad_sequence(lines, batch_first=True).to(features.device)
    inside = torch.arange(features.shape[1], device=features.device) < lengths.unsqueeze(-1)
    spoken = inside if quiet is None else inside & ~quiet
    order = spoken.cumsum(1) - 1
    place = order * parts.unsqueeze(-1) // spoken.sum(1, keepdim=True).clamp_min(1)
    pdf = line.gather(1, place.clamp_min(0).minimum(parts.unsqueeze(-1) - 1))
    own = functional.one_hot(pdf, bank.models * bank.states) * spoken.unsqueeze(-1)
    own = own.to(bank.initial_logits.dtype).view(*features.shape[:2], bank.models, bank.states)
    if silence is not None:
        own[:, :, silence] += (inside & ~spoken).unsqueeze(-1) / bank.states
    bank.emission.maximize_(_emission_statistics(bank, features, own), prior)


def _emission_statistics(bank: HiddenMarkovModel, features: Tensor, own: Tensor) -> Tensor:
    """The emission's sums for frames owned by states of several models, `(batch, frames, models, states)`."""
    by_model = []
    for m in range(bank.models):
        labels = torch.full((len(features),), m, device=features.device)
        by_model.append(bank.emission.statistics(features, own[:, :, m], labels).sum(0))
    return torch.stack(by_model)


@dataclass(frozen=True, slots=True)
class _SideBySide:
    """Graphs padded to one size, with a leading batch axis; states beyond a graph's own are impossible."""

    pdfs: Tensor
    transitions: Tensor
    initial: Tensor
    final: Tensor
    same_copy: Tensor
    band: tuple[int, ...]


def _side_by_side(graphs: Sequence[DecodingGraph], like: Tensor) -> _SideBySide:
    most = max(graph.states for graph in graphs)

    def padded(values: list[Tensor], filling: float) -> Tensor:
        return torch.stack([functional.pad(v, (0, most - len(v)) * v.ndim, value=filling) for v in values]).to(
            like.device
        )

    pdfs = padded([graph.pdfs for graph in graphs], 0)
    copies = padded([graph.copies for graph in graphs], -1)
    same = copies.unsqueeze(-1) == copies.unsqueeze(-2)
    leaps = torch.unique(torch.cat([graph.targets - graph.sources for graph in graphs])).tolist()
    return _SideBySide(
        pdfs,
        padded([graph.dense_transitions() for graph in graphs], LOG_ZERO).to(like),
        padded([graph.log_initial for graph in graphs], LOG_ZERO).to(like),
        padded([graph.log_final for graph in graphs], LOG_ZERO).to(like),
        same.to(like),
        tuple(leaps),
    )
