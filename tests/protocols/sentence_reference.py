"""Small services for sentences, and what they must hear: a recursion over floats, with no schedule and no shares."""

from dataclasses import replace

import numpy as np

from ppspeech.protocols.networks import Layer, NetworkArrays, NetworkShape, fit_network
from ppspeech.protocols.scores.monomials import gaussian_weights
from ppspeech.protocols.sentences import Heard, SentenceArrays, SentenceShape

LEAVE = 0.2


def loop_arrays(
    words: int = 3,
    states: int = 2,
    *,
    dimensions: int = 2,
    frames: int = 24,
    seed: int = 0,
    spread: float = 3.0,
    **more: object,
) -> SentenceArrays:
    """Words of one Gaussian a state around one junction; the last of them is silence."""
    generator = np.random.default_rng(seed)
    count = words * states
    means = generator.normal(scale=spread, size=(count, dimensions))
    weights = gaussian_weights(np.zeros(count), means, np.ones((count, dimensions)))
    weights[-1] += np.log1p(-LEAVE)
    arcs, nats = [], []
    for vertex in range(count):
        arcs.append((vertex, vertex, 0, -1))
        nats.append(0.0)
        if vertex % states:
            arcs.append((vertex - 1, vertex, 0, -1))
            nats.append(float(generator.normal() / 2))
    for word in range(words):
        arcs += [(word * states + states - 1, count, 0, -1), (count, word * states, 1, word)]
        nats += [np.log(LEAVE), -np.log(words)]
    shape = SentenceShape(
        **{
            "frames": frames,
            "dimensions": dimensions,
            "terms": "diagonal",
            "columns": (*range(count), -1),
            "arcs": tuple(arcs),
            "starts": tuple((word * states, word) for word in range(words)),
            "end": count,
            "words": (*(f"word {number}" for number in range(words - 1)), ""),
            "most_words": 12,
            "radius": 12.0,
        }
        | more  # type: ignore[arg-type]
    )
    return SentenceArrays(shape, weights, np.array(nats), np.full(words, -np.log(words)))


def say(arrays: SentenceArrays, *words: int, seed: int = 0, stay: int = 2) -> np.ndarray:
    """Frames near the means of the words' states."""
    shape, generator = arrays.shape, np.random.default_rng(seed)
    forms = arrays.weights
    means = forms[shape.dimensions : 2 * shape.dimensions].T / (-2 * forms[: shape.dimensions].T)
    states = shape.scores // len(shape.words)
    path = [word * states + state for word in words for state in range(states) for _ in range(stay)]
    return means[path] + 0.3 * generator.normal(size=(len(path), shape.dimensions))


def network_arrays(seed: int = 0, words: int = 3, states: int = 2, scale: float = 4.0) -> SentenceArrays:
    """The same loop, whose states a network scores that looks at five frames."""
    loop, rng = loop_arrays(words, states, seed=seed), np.random.default_rng(seed)
    shape = loop.shape
    whole = shape.bits - shape.fraction
    layers = (Layer(6, width=3), Layer(5, width=2, dilation=2), Layer(shape.scores, activation="none"))
    network = NetworkShape(shape.frames + 4, shape.dimensions, layers, "scores", radius=shape.radius)
    sizes = [(network.inner(number), layer.outputs) for number, layer in enumerate(layers)]
    matrices = [rng.normal(size=size) * np.sqrt(2 / size[0]) for size in sizes]
    biases = [0.2 * rng.normal(size=outputs) for _, outputs in sizes]
    matrices[-1] *= scale
    fitted = fit_network(network, tuple(matrices), tuple(biases), ())
    *before, last = fitted.shape.layers
    told = replace(fitted.shape, layers=(*before, replace(last, range_bits=whole)))
    own = NetworkArrays(told, tuple(matrices), tuple(biases), ())
    none = np.zeros((0, shape.scores))
    return SentenceArrays(replace(shape, terms="linear", network=told), none, loop.arcs, loop.starts, own)


def sure(arrays: SentenceArrays, frames: int, seed: int = 0) -> np.ndarray:
    """Frames in which errors of scores of a third of a nat change nothing that is heard."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        said = np.cumsum(rng.normal(size=(frames, arrays.shape.dimensions)), axis=0)
        errors = [0.3 * rng.uniform(-1, 1, size=(frames, arrays.shape.scores)) for _ in range(6)]
        if all(hear(arrays, said, error) == hear(arrays, said) for error in errors):
            return said
    raise AssertionError("every utterance is a matter of opinion")


def hear(arrays: SentenceArrays, frames: np.ndarray, error: np.ndarray | float = 0.0) -> list[Heard]:
    """The best way, by tokens that carry their whole history; with errors of scores."""
    shape = arrays.shape
    if arrays.network is None:
        scores = shape.frame_monomials(frames) @ arrays.weights + error
    else:
        scores = arrays.network.scores(shape.factor(frames))[: len(frames)] + error
    order = [v for v, c in enumerate(shape.columns) if c >= 0] + list(shape.trellis.junction_order)
    before: dict[int, tuple[float, tuple[tuple[int, int], ...]]] = {}
    for frame in range(len(frames)):
        now: dict[int, tuple[float, tuple[tuple[int, int], ...]]] = {}
        for vertex in order:
            column = shape.columns[vertex]
            ways = [
                (nats, ((0, word),))
                for (start, word), nats in zip(shape.starts, arrays.starts, strict=True)
                if start == vertex and frame == 0
            ]
            for (source, target, begins, word), nats in zip(shape.arcs, arrays.arcs, strict=True):
                tokens = now if shape.columns[target] < 0 else before
                if target == vertex and source in tokens:
                    score, history = tokens[source]
                    if begins:
                        history = (*history, (frame, word))
                    elif word >= 0:
                        history = (*history[:-1], (history[-1][0], word))
                    ways.append((score + (0.0 if source == target else nats), history))
            if ways:
                score, history = max(ways, key=lambda way: way[0])
                now[vertex] = score + (0.0 if column < 0 else scores[frame, column]), history
        before = now
    history = before[shape.end][1]
    ends = [start for start, _ in history[1:]] + [len(frames)]
    return [Heard(shape.words[word], start, end) for (start, word), end in zip(history, ends, strict=True)]
