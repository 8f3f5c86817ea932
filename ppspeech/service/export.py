"""From a released model to the numbers an encrypted service computes with: one exporter a kind of model.

An exporter takes the module and what the deployment chooses, and gives word models, whose shares are then chosen
(`ppspeech.protocols.scores.fit`). A kind without one is refused by name.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ppspeech.arrays import Reals
from ppspeech.audio import LIMIT, MfccConfig, usual_range
from ppspeech.bundle import GARBAGE, NO_GARBAGE, feature_limit, word_radius
from ppspeech.errors import ModelError
from ppspeech.models import (
    EmbeddingHead,
    HuberSvm,
    KernelClassifier,
    LogisticRegression,
    SoftmaxRegression,
    TableClassifier,
    UtteranceClassifier,
    WordModel,
    score_floor,
)
from ppspeech.models.hmm import DiscreteEmission, GaussianEmission, HiddenMarkovModel, Topology
from ppspeech.models.margin import LargeMarginGaussians, LargeMarginHmm
from ppspeech.protocols.scores import (
    MOST,
    MOST_BITS,
    MOST_LIMIT,
    WordArrays,
    WordShape,
    fit_words,
    form_weights,
    scaled_weights,
)
from ppspeech.protocols.words import Told
from ppspeech.registry import Registry

HOP_SECONDS = 0.010  # from one frame to the next, unless a front end says otherwise
FEWEST_SECONDS, STEP_SECONDS = 1.0, 0.5
FOREVER = 0.995  # probability of staying in a state that words end in
SPARE = 1.0  # standard deviations of a word's length that there is room for


@dataclass(frozen=True, slots=True)
class Deployment:
    """What whoever serves a model chooses; all of it is public but the garbage model's offset.

    Attributes:
        frames: every utterance is padded to this, so that its length stays hidden; longer ones are refused. By default
            what the model's own words usually take (`usual_frames`).
        operation: `forward` adds up all paths, `viterbi` takes the best and is quicker.
        reject: whether a garbage model competes, so that "none of the words" can be the answer.
        garbage: nats a frame that the garbage model gets on top: the larger, the more is rejected.
        limit: features are clipped to this many spreads from their usual center (`ppspeech.audio.usual_range`); by
            default to what the model needs, as in the clear.
        bits: of the shares; by default as many as its scores need for certain. Fewer are refused.
        outcome: who learns the word, of heads on embeddings: the client, or the server alone, where the client agrees.
    """

    frames: int | None = None
    operation: Literal["forward", "viterbi"] = "forward"
    reject: bool = False
    garbage: float = GARBAGE
    limit: float | None = None
    bits: int | None = None
    outcome: Told = "client"


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """Word models as `ppspeech.protocols.scores.WordArrays` has them, of features as the module takes them; the range
    of their scores is not looked at yet.
    """

    shape: WordShape
    weights: Reals
    transitions: Reals
    initial: Reals
    labels: tuple[str, ...]


Exporter = Callable[[Any, tuple[str, ...], Deployment], Exported]
EXPORTERS: Registry[Exporter] = Registry("exporter", error=ModelError)
"""How a model is served, by the name of its kind (`ppspeech.bundle.MODEL_TYPES`)."""


def export_words(
    kind: str,
    module: nn.Module,
    labels: tuple[str, ...],
    deployment: Deployment | None = None,
    mfcc: MfccConfig | None = None,
) -> WordArrays:
    """The encrypted layer's form of a model that chooses among labels; its kind is such as a bundle's `config.type`.

    With the front end of a model of frames, the form is of features in their usual range, (x - center) / spread, which
    clients compute from public choices alone (`ppspeech.audio.in_usual_range`).

    The shares are chosen so that no score of any voice leaves their range. Frames are brought within the radius that
    they have in the clear (`ppspeech.bundle.word_radius`); models without one have the floor under a frame's scores
    that they have there (`ppspeech.models.score_floor`).

    Raises ModelError if there is no exporter for it, or it holds what cannot be served; RangeError for choices that its
    scores do not fit.
    """
    if kind not in EXPORTERS:
        raise ModelError(f"a {kind} cannot be served encrypted: there are exporters for {', '.join(EXPORTERS)}")
    chosen = deployment or Deployment()
    if chosen.outcome != "client" and kind != "embedding_head":
        raise ModelError(f"a server learns the words of heads on embeddings alone (outcome=server), not of a {kind}")
    limit = None if mfcc is None else feature_limit(module, mfcc)
    if chosen.limit is None and limit is not None:
        if limit > MOST_LIMIT:
            raise ModelError(
                f"features may lie {limit:g} spreads from where those of speech usually lie, and {MOST_LIMIT:g} can be "
                "served: train on normalized features, with cmvn utterance or public"
            )
        chosen = replace(chosen, limit=limit)
    if chosen.frames is None and mfcc is not None and isinstance(module, WordModel):
        chosen = replace(chosen, frames=usual_frames(module.log_transitions(), mfcc.hop_s))
    with torch.no_grad():
        found = EXPORTERS[kind](module, labels, chosen)
    radius = found.shape.radius if mfcc is None else word_radius(module, mfcc)
    weights, floor = found.weights, None if radius is not None else score_floor(module)
    if mfcc is not None and limit is not None:
        center, spread = usual_range(mfcc)
        weights = scaled_weights(weights, found.shape.terms, center, spread)
    return fit_words(
        replace(found.shape, radius=radius),
        weights,
        found.transitions,
        found.initial,
        labels,
        floor=None if floor is None else (floor.level, floor.depth),
        bits=chosen.bits,
    )


@EXPORTERS.register("keyword_hmm")
def export_hmm(bank: HiddenMarkovModel, labels: tuple[str, ...], deployment: Deployment) -> Exported:
    """A bank of models with a Gaussian, or a mixture, in every state."""
    emission = bank.emission
    if isinstance(emission, DiscreteEmission) or not isinstance(emission, GaussianEmission):
        raise ModelError(
            "models of symbols are served by `ppspeech.protocols.words.discrete_keyword`, not by this exporter"
        )
    logs = None if emission.weight_logits is None else emission.weight_logits.log_softmax(-1)
    terms: Literal["full", "diagonal"] = "full" if emission.whole else "diagonal"
    columns = score_columns(emission.gaussians.phi().double(), terms, logs)
    if deployment.reject:
        garbage = score_columns(emission.gaussians.pooled().phi(), terms)
        garbage[-1] += deployment.garbage
        columns = np.concatenate((columns, garbage), axis=1)
    given = (bank.log_transitions(), bank.log_initial(), labels, deployment, emission.features)
    return _word_arrays(bank.topology, terms, emission.components, columns, *given)


@EXPORTERS.register("large_margin_keyword")
def export_large_margin_hmm(bank: LargeMarginHmm, labels: tuple[str, ...], deployment: Deployment) -> Exported:
    """Word models whose states are matrices Phi, trained for a margin."""
    if deployment.reject:
        raise ModelError(NO_GARBAGE)
    phi = bank.phi().double()
    given = (bank.log_transitions(), bank.log_initial(), labels, deployment, phi.shape[-1] - 1)
    return _word_arrays(bank.topology, "full", 1, score_columns(phi, "full"), *given)


def export_large_margin(model: LargeMarginGaussians, labels: tuple[str, ...], deployment: Deployment) -> Exported:
    """Large-margin Gaussians on one vector, which the client clips to the public radius: one state, one frame."""
    phi = model.phi().double().clone()
    phi[..., -1, :] *= model.constant  # the model's z is [x, a], the client's [x, 1]
    phi[..., :, -1] *= model.constant
    if deployment.limit is None and model.radius is not None:
        deployment = replace(deployment, limit=max(LIMIT, float(model.radius)))  # nothing within the radius is clipped
    components = phi.shape[1]
    return one_frame_models(score_columns(phi, "full"), "full", phi.shape[-1] - 1, labels, deployment, components)


@EXPORTERS.register("large_margin_classifier")
def export_classifier(classifier: UtteranceClassifier, labels: tuple[str, ...], deployment: Deployment) -> Exported:
    """The same on the statistics of an utterance, which the client scales by the bundle's public mean and deviation."""
    return export_large_margin(classifier.model, labels, deployment)


def export_linear(
    model: LogisticRegression | SoftmaxRegression | HuberSvm, labels: tuple[str, ...], deployment: Deployment
) -> Exported:
    """Scores linear in one vector an utterance; one score for two classes is that of the second against 0."""
    weight = model.weight.double().clone()
    weight[:, -1] *= model.constant
    if len(weight) == 1:
        weight = torch.cat((torch.zeros_like(weight), weight))
    columns = weight.mT.contiguous().cpu().numpy()
    return one_frame_models(columns, "linear", weight.shape[-1] - 1, labels, deployment)


@EXPORTERS.register("linear_table")
@EXPORTERS.register("large_margin_table")
def export_table(classifier: TableClassifier, labels: tuple[str, ...], deployment: Deployment) -> Exported:
    """A model of rows; the client scales its row by the bundle's public mean and deviation."""
    if isinstance(classifier.model, LargeMarginGaussians):
        return export_large_margin(classifier.model, labels, deployment)
    assert not isinstance(classifier.model, KernelClassifier)  # a kind of its own, which is not served
    return export_linear(classifier.model, labels, deployment)


@EXPORTERS.register("embedding_head")
def export_head(head: EmbeddingHead, labels: tuple[str, ...], deployment: Deployment) -> Exported:
    """A head on one vector an utterance, which the client scales, projects and clips by public numbers alone. The
    background is the garbage model: where it wins, by `reject` nats or more, it was none of the words.
    """
    every = tuple(labels) if len(labels) == head.head.classes else ("none", *labels)
    if deployment.garbage != GARBAGE or (deployment.reject and len(every) == len(labels)):
        raise ModelError("what a word must beat is in the head, if it knows a background: it takes no garbage model")
    if not head.radius <= MOST_LIMIT:
        raise ModelError(f"heads are served on vectors of length up to {MOST_LIMIT:g}, got a radius of {head.radius:g}")
    chosen = replace(deployment, limit=head.radius, reject=False)
    if isinstance(head.head, LargeMarginGaussians):
        found = export_large_margin(head.head, every, chosen)
    else:
        found = export_linear(head.head, every, chosen)
    columns, shape = found.weights, replace(found.shape, radius=head.radius)
    if len(every) > len(labels):
        columns = np.roll(columns, -1, axis=1)
        columns[-1, -1] += float(head.reject)
        shape = replace(shape, words=len(labels), reject=True, label_bytes=label_bytes(labels))
    return Exported(shape, columns, np.zeros((len(labels), 1, 1)), np.zeros((len(labels), 1)), labels)


def score_columns(phi: Tensor, terms: Literal["full", "diagonal"], logs: Tensor | None = None) -> Reals:
    """-z' Phi z as weights of the monomials, `(monomials, gaussians)`; `logs` are ln of the mixture weights."""
    weights = form_weights(-phi.flatten(0, -3).cpu().numpy(), terms)
    if logs is not None:
        weights[-1] += logs.double().flatten().cpu().numpy()
    return weights


def one_frame_models(
    columns: Reals,
    terms: Literal["full", "linear"],
    dimensions: int,
    labels: tuple[str, ...],
    deployment: Deployment,
    components: int = 1,
) -> Exported:
    """Classes of whole utterances: words of one state that last one frame."""
    if deployment.reject:
        raise ModelError(NO_GARBAGE)
    shape = WordShape(
        frames=1,
        dimensions=dimensions,
        terms=terms,
        words=len(labels),
        states=1,
        ends=(0,),
        components=components,
        moves=(0,),
        operation="viterbi",
        label_bytes=label_bytes(labels),
        bits=MOST_BITS,
        limit=LIMIT if deployment.limit is None else deployment.limit,
    )
    return Exported(shape, columns, np.zeros((len(labels), 1, 1)), np.zeros((len(labels), 1)), labels)


def _word_arrays(
    topology: Topology,
    terms: Literal["full", "diagonal"],
    components: int,
    columns: Reals,
    transitions: Tensor,
    initial: Tensor,
    labels: tuple[str, ...],
    deployment: Deployment,
    features: int,
) -> Exported:
    """Transitions by move instead of by target; what a move would lead out of the model is impossible."""
    shape = WordShape(
        frames=usual_frames(transitions) if deployment.frames is None else deployment.frames,
        dimensions=features,
        terms=terms,
        words=len(labels),
        states=topology.states,
        ends=tuple(state for state, allowed in enumerate(topology.final) if allowed),
        components=components,
        moves=topology.offsets,
        starts=tuple(state for state, allowed in enumerate(topology.initial) if allowed),
        operation=deployment.operation,
        reject=deployment.reject,
        label_bytes=label_bytes(labels),
        bits=MOST_BITS,
        limit=LIMIT if deployment.limit is None else deployment.limit,
    )
    by_move = np.full((shape.words, shape.states, len(shape.moves)), -np.inf)
    dense = transitions.double().cpu().numpy()
    for number, move in enumerate(shape.moves):
        for source in range(max(0, -move), min(shape.states, shape.states - move)):
            by_move[:, source, number] = dense[:, source, source + move]
    starts = initial.double().cpu().numpy()[:, list(shape.starts)]
    return Exported(shape, columns, by_move, starts, labels)


@torch.no_grad()
def usual_frames(transitions: Tensor, hop_s: float = HOP_SECONDS) -> int:
    """Frames that hold nearly all words, from how long models stay in their states, `(words, states, states)` in logs.

    It follows from the weights, so it tells nothing that a release does not; in steps of half a second, so that a
    client learns little. A state that is never left (the last) is taken to last as long as the others of its word.
    """
    stays = transitions.double().exp().diagonal(dim1=-2, dim2=-1)
    leaves = stays < FOREVER
    each = torch.where(leaves, 1 / (1 - stays.clamp_max(FOREVER)), 0.0)
    usual = each.sum(-1, keepdim=True) / leaves.sum(-1, keepdim=True).clamp_min(1)
    each = torch.where(leaves, each, usual)
    longest = float((each.sum(-1) + SPARE * (each * (each - 1)).clamp_min(0).sum(-1).sqrt()).max())
    step, fewest = round(STEP_SECONDS / hop_s), math.ceil(FEWEST_SECONDS / hop_s)
    return min(max(step * math.ceil(longest / step), fewest), MOST["frames"])


def label_bytes(labels: tuple[str, ...]) -> int:
    """Room for the longest label, in steps of 28 bytes so that it says little about the labels."""
    longest = max(len(label.encode()) for label in labels)
    return 28 * -(-longest // 28)
