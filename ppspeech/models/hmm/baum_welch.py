"""Baum-Welch for a bank of hidden Markov models: statistics that can be added, and what is best for them.

An E-step turns utterances into statistics, one row an utterance. Rows can be summed by model, by speaker, across
batches or machines, and whatever a caller does to them (clip them, add noise), the M-step `update_hmm_` looks at
nothing else: it is post-processing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.emissions import MAXIMUM_LIKELIHOOD, GaussianEmission, Prior, set_logits_
from ppspeech.models.hmm.start import start_components_


@dataclass(frozen=True, slots=True)
class HmmStatistics:
    """Expected counts and moments, with one leading axis: utterances, or models once they are summed.

    Attributes:
        initial: expected number of utterances that begin in each state, `(n, states)`.
        transitions: expected number of each transition, `(n, states, states)`.
        emissions: the emission's own sums, `(n, states, ...)`.
        log_likelihood: ln p of what was seen, under the parameters it was seen with, `(n,)`.
    """

    initial: Tensor
    transitions: Tensor
    emissions: Tensor
    log_likelihood: Tensor
    utterances: Tensor

    def __add__(self, other: "HmmStatistics") -> "HmmStatistics":
        """The statistics of both sets of utterances together; the leading axes must mean the same."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return HmmStatistics(*(mine + theirs for mine, theirs in pairs))

    def sum_by(self, group: Tensor, groups: int) -> "HmmStatistics":
        """Add up the rows of each group, `(n,)` in 0..groups - 1; a speaker and model is `speaker * models + model`."""
        # A product with the membership matrix is faster than index_add, and deterministic on every device.
        member = (torch.arange(groups, device=group.device).unsqueeze(-1) == group).to(self.initial)
        columns = (getattr(self, f.name) for f in fields(self))
        return HmmStatistics(
            *((member @ c.flatten(1)).view(groups, *c.shape[1:]) if c.ndim > 1 else member @ c for c in columns)
        )


@torch.no_grad()
def utterance_hmm_statistics(
    model: HiddenMarkovModel, features: Tensor, lengths: Tensor, labels: Tensor
) -> HmmStatistics:
    """The E-step of `(batch, frames, d)`, one row an utterance, each under the model its label `(batch,)` names.

    An empty utterance, or one that its model cannot explain, gives a row of zeros (with its log-likelihood and a count
    of one).
    """
    found = model.posteriors(features, lengths, labels)
    emissions = model.emission.statistics(features, found.states, labels)
    seen = torch.ones_like(found.log_likelihood)
    return HmmStatistics(found.states[:, 0], found.transitions, emissions, found.log_likelihood, seen)


@torch.no_grad()
def hmm_statistics(model: HiddenMarkovModel, features: Tensor, lengths: Tensor, labels: Tensor | int) -> HmmStatistics:
    """The E-step summed by model, leading axis `(models,)`; faster with one label for all utterances."""
    if not isinstance(labels, int):
        return utterance_hmm_statistics(model, features, lengths, labels).sum_by(labels, model.models)
    found = model.posteriors(features, lengths, labels)
    frames, own = (joined.flatten(0, 1).unsqueeze(0) for joined in (features, found.states))
    total = HmmStatistics(
        found.states[:, 0].sum(0, keepdim=True),
        found.transitions.sum(0, keepdim=True),
        model.emission.statistics(frames, own, labels),
        found.log_likelihood.sum(0, keepdim=True),
        torch.ones_like(found.log_likelihood).sum(0, keepdim=True),
    )
    return total.sum_by(torch.full_like(lengths[:1], labels), model.models)


@torch.no_grad()
def update_hmm_(model: HiddenMarkovModel, statistics: HmmStatistics, prior: Prior = MAXIMUM_LIKELIHOOD) -> None:
    """The M-step: set the bank's parameters from statistics summed by model.

    A state, component or model without data keeps its parameters. With `MAXIMUM_LIKELIHOOD` the likelihood of the data
    never falls. Raises ModelError if the statistics are not of this bank's size.
    """
    if len(statistics.initial) != model.models:
        raise ModelError(
            f"the bank has {model.models} models, the statistics {len(statistics.initial)} rows: sum them by model"
        )
    transitions, initial, _ = model.topology.masks(model.transition_logits)
    set_logits_(model.initial_logits, statistics.initial + prior.counts, initial)
    set_logits_(model.transition_logits, statistics.transitions + prior.counts, transitions)
    model.emission.maximize_(statistics.emissions, prior)


def flat_start_(
    model: HiddenMarkovModel,
    features: Tensor | NDArray[Any],
    lengths: Tensor | NDArray[Any],
    labels: Tensor | NDArray[Any],
    prior: Prior = MAXIMUM_LIKELIHOOD,
    batch_frames: int = 16_384,
) -> None:
    """Cut every utterance into equal parts, one a state; mixtures start from k-means within the states."""
    features, lengths, labels = map(torch.as_tensor, (features, lengths, labels))
    check_training_set(model, features, lengths, labels)
    batches = list(by_length(features, lengths, labels, batch_frames=batch_frames))
    _start_(model, [(some, _uniform_segments(model, some, lasting), named) for some, lasting, named in batches], prior)


def flat_start_batches_(
    model: HiddenMarkovModel, batches: Iterable[tuple[Tensor, ...]], prior: Prior = MAXIMUM_LIKELIHOOD
) -> None:
    """`flat_start_` from batches of features, lengths and labels, of which one at a time is held.

    They are gone through once, or, where states have several components, a dozen times: not an iterator. Raises
    ModelError for no batch, or inputs that do not fit the bank.
    """
    _start_(model, _Segments(model, batches), prior)


@torch.no_grad()
def _start_(model: HiddenMarkovModel, owned: Iterable[tuple[Tensor, Tensor, Tensor]], prior: Prior) -> None:
    """From batches of features, one-hot states `(batch, frames, states)` and labels."""
    emission = model.emission
    if isinstance(emission, GaussianEmission) and emission.components > 1:
        start_components_(emission, owned)
    total: HmmStatistics | None = None
    for some, own, named in owned:
        follows = own[:, :-1].mT @ own[:, 1:]
        seen = own.new_ones(len(own))
        found = HmmStatistics(own[:, 0], follows, emission.statistics(some, own, named), 0 * seen, seen)
        by_model = found.sum_by(named, model.models)
        total = by_model if total is None else total + by_model
    if total is None:
        raise ModelError("there is no utterance to start from")
    update_hmm_(model, total, prior)


class _Segments:
    """Batches as `(features, one-hot states, labels)`, each utterance cut into equal parts."""

    def __init__(self, model: HiddenMarkovModel, batches: Iterable[tuple[Tensor, ...]]) -> None:
        self._model, self._batches = model, batches

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        for features, lengths, labels in self._batches:
            check_training_set(self._model, features, lengths, labels)
            yield features, _uniform_segments(self._model, features, lengths), labels


def baum_welch(
    model: HiddenMarkovModel,
    features: Tensor | NDArray[Any],
    lengths: Tensor | NDArray[Any],
    labels: Tensor | NDArray[Any],
    iterations: int = 10,
    prior: Prior = MAXIMUM_LIKELIHOOD,
    batch_frames: int = 16_384,
) -> tuple[float, ...]:
    """Train every model of the bank on the utterances `(utterances, frames, d)` that bear its label.

    The bank must be initialized (`flat_start_`). Utterances are sorted by length and cut into passes of `batch_frames`,
    so that little padding is computed. Returns the log-likelihood of all before each iteration. Raises ModelError for
    inputs that do not fit each other or the bank.
    """
    features, lengths, labels = map(torch.as_tensor, (features, lengths, labels))
    check_training_set(model, features, lengths, labels)
    batches = []
    for label in torch.unique(labels).tolist():
        chosen = (labels == label).nonzero().squeeze(-1)
        some = by_length(features[chosen], lengths[chosen], batch_frames=batch_frames)
        batches += [(x, lasting, label) for x, lasting in some]
    history = []
    for _ in range(iterations):
        total = reduce(add, (hmm_statistics(model, *batch) for batch in batches))
        history.append(total.log_likelihood.sum())
        update_hmm_(model, total, prior)
    return tuple(torch.stack(history).tolist()) if history else ()


def by_length(
    features: Tensor, lengths: Tensor, *others: Tensor, batch_frames: int = 16_384
) -> Iterator[tuple[Tensor, ...]]:
    """Batches of utterances of similar length, each cut to its longest: `(features, lengths, *others)`.

    A batch holds at most `batch_frames` frames, padding included, or a single utterance that is longer.
    """
    order = lengths.argsort()
    chosen: list[int] = []
    for i, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        if chosen and (len(chosen) + 1) * length > batch_frames:
            yield _cut(chosen, features, lengths, others)
            chosen = []
        chosen.append(i)
    if chosen:
        yield _cut(chosen, features, lengths, others)


def _cut(chosen: list[int], features: Tensor, lengths: Tensor, others: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    index = torch.tensor(chosen, device=lengths.device)
    longest = max(int(lengths[index[-1]]), 1)
    return features[index, :longest], lengths[index], *(other[index] for other in others)


def check_training_set(model: HiddenMarkovModel, features: Tensor, lengths: Tensor, labels: Tensor) -> None:
    """Refuse training data that does not fit. It looks at the values: once before training, not in a step."""
    model.emission.check(features)
    utterances, frames = features.shape[:2]
    if utterances < 1 or lengths.shape != (utterances,) or labels.shape != (utterances,):
        raise ModelError(
            f"{utterances} utterances need as many lengths and labels (and at least one), "
            f"got {tuple(lengths.shape)} and {tuple(labels.shape)}"
        )
    if not 0 <= int(lengths.min()) <= int(lengths.max()) <= frames:
        raise ModelError(f"lengths must lie in 0..{frames}, got {int(lengths.min())}..{int(lengths.max())}")
    if not 0 <= int(labels.min()) <= int(labels.max()) < model.models:
        raise ModelError(f"labels must lie in 0..{model.models - 1}, got {int(labels.min())}..{int(labels.max())}")


def _uniform_segments(model: HiddenMarkovModel, features: Tensor, lengths: Tensor) -> Tensor:
    """One-hot state of each frame when an utterance is cut into equal parts, `(batch, frames, states)`."""
    t = torch.arange(features.shape[1], device=features.device)
    state = (t * model.states // lengths.clamp_min(1).unsqueeze(-1)).clamp_max(model.states - 1)
    inside = t < lengths.unsqueeze(-1)
    one_hot = torch.nn.functional.one_hot(state, model.states) * inside.unsqueeze(-1)
    return one_hot.to(model.initial_logits.dtype)
