"""Word models made at random, and their scores in the clear by the obvious loop."""

from itertools import product
from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.protocols.scores.range import RAREST
from ppspeech.protocols.scores.states import WordArrays, WordShape


def made_models(seed: int = 0, **sizes: Any) -> WordArrays:
    """Models of the given shape with weights of the size that speech gives."""
    usual = {"frames": 12, "dimensions": 3, "terms": "full", "words": 3, "states": 3}
    sizes = {"ends": (sizes.get("states", 3) - 1,)} | usual | sizes
    shape = WordShape(**sizes)
    make = np.random.default_rng(seed)
    weights = make.normal(scale=0.6, size=(shape.monomials, shape.columns))
    transitions = np.log(make.dirichlet(np.ones(len(shape.moves)), size=(shape.words, shape.states)))
    initial = np.log(make.dirichlet(np.ones(len(shape.starts)), size=shape.words))
    return WordArrays(shape, weights, transitions, initial, tuple(f"word{n}" for n in range(shape.words)))


def plain_models(models: WordArrays) -> dict[str, Any]:
    """The models as JSON can hold them: what a server's program takes."""
    arrays = {name: getattr(models, name).tolist() for name in ("weights", "transitions", "initial")}
    return {**arrays, "labels": list(models.labels), "top": models.highest}


def made_utterance(models: WordArrays, frames: int, seed: int) -> Reals:
    """Frames of about unit size."""
    return np.random.default_rng(seed).normal(size=(frames, models.shape.dimensions))


def plain_scores(models: WordArrays, frames: Reals) -> Reals:
    """Scores of all candidates above the floor: a loop over frames, words, states and sources."""
    shape = models.shape
    combine = np.logaddexp.reduce if shape.operation == "forward" else np.max
    scores = floored_scores(models, shape.frame_monomials(frames) @ models.weights)
    parts = scores[:, : shape.words * shape.states * shape.components]
    emissions = combine(parts.reshape(len(frames), shape.words, shape.states, shape.components), axis=-1)
    result = []
    for word in range(shape.words):
        gamma = np.full(shape.states, -np.inf)
        for at, start in enumerate(shape.starts):
            gamma[start] = max(models.initial[word, at], RAREST) + emissions[0, word, start]
        for emission in emissions[1:, word]:
            arriving: list[list[float]] = [[] for _ in range(shape.states)]
            for source, (number, move) in product(range(shape.states), enumerate(shape.moves)):
                if 0 <= source + move < shape.states and gamma[source] > -np.inf:
                    weight = max(models.transitions[word, source, number], RAREST)
                    arriving[source + move].append(gamma[source] + weight)
            gamma = np.array([combine(each) if each else -np.inf for each in arriving]) + emission
        ends = gamma[list(shape.ends)]
        result.append(combine(ends[ends > -np.inf]))
    if shape.reject:
        result.append(scores[:, -1].sum())
    return np.array(result)


def floored_scores(models: WordArrays, scores: Reals) -> Reals:
    """Scores of frames, `(frames, columns)`, none below the floor once staying is added."""
    shape = models.shape
    stays = np.zeros(shape.columns)
    stays[: shape.words * shape.states * shape.components] = np.repeat(models.stays, shape.components)
    return np.maximum(scores, models.highest - shape.depth - stays)


def plain_word(models: WordArrays, frames: Reals) -> str | None:
    """The label of the best candidate."""
    best = int(plain_scores(models, frames).argmax())
    return models.labels[best] if best < models.shape.words else None
