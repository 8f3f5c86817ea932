"""What a client of a split network finds out about its weights, by sending into every layer what it likes.

The answer of a layer to a is W a + b. Its answers to zero and to the unit vectors are b and b plus the columns of W: so
many frames, once, and everything is known. Of the sound form the client gets a share of the same answers, which is
uniform whatever they are.
"""

from collections.abc import Sequence

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import Ring
from ppspeech.crypto.paillier import PaillierSecretKey
from ppspeech.evidence.published.protocols.gelu_net import alice
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.networks import NetworkShape, activate, prepare_network, tell

Layers = list[tuple[Reals, Reals]]
"""Of every layer, what is taken for its matrix `(inputs, outputs)`, and its bias."""


def questions(inputs: int, frames: int) -> Reals:
    """Zero, the unit vectors, and zeros to the end: `(frames, inputs)`."""
    rows = np.zeros((frames, inputs))
    rows[1 : inputs + 1] = np.eye(inputs)
    return rows


def read_weights(answers: Sequence[Reals], sizes: Sequence[int]) -> Layers:
    """From every layer's answers to `questions`."""
    return [(each[1 : inputs + 1] - each[0], each[0]) for inputs, each in zip(sizes, answers, strict=False)]


def steal_published(channel: Channel, key: PaillierSecretKey, sizes: Sequence[int], **options: bool) -> Layers:
    """As Alice of `gelu_net`, of as many frames as the widest layer has inputs, and one."""
    frames = max(sizes[:-1]) + 1
    seen = alice(channel, key, sizes, lambda layer, _: questions(sizes[layer], frames), **options)
    return read_weights(seen, sizes)


def steal_shared(channel: Channel, shape: NetworkShape) -> Layers:
    """As a client of `ppspeech.protocols.networks`, of layers with windows of one frame: the same questions in place of
    its frames and shares; what it holds of the answers is taken for them.
    """
    sizes = [shape.dimensions, *(layer.outputs for layer in shape.layers)]
    answers, met = [], meet_as_client(channel)
    with met.session():
        engine = prepare_network(met, shape)
        for number, inputs in enumerate(sizes[:-1]):
            share = met.multiply(shape.product(number), questions(inputs, shape.frames))
            ring = Ring(shape.rings.results[number])
            answers.append(np.ldexp(ring.to_signed(share).astype(np.float64), -shape.fraction))
            share = activate(engine, shape, number, share)
        tell(engine, shape, share, None)
    return read_weights(answers, sizes)


def recovered(found: Layers, matrices: Sequence[Reals], biases: Sequence[Reals], within: float) -> float:
    """The part of all weights and biases that was found, to so much."""
    right = [
        np.concatenate([(np.abs(matrix - own) <= within).ravel(), np.abs(bias - other) <= within])
        for (matrix, bias), own, other in zip(found, matrices, biases, strict=True)
    ]
    return float(np.concatenate(right).mean())


def correlation(found: Layers, matrices: Sequence[Reals]) -> float:
    """Of what was found and the weights, every layer in units of its own."""
    alike = [[each.ravel() / each.std() for each in side] for side in ([matrix for matrix, _ in found], matrices)]
    one, other = (np.concatenate(side) for side in alike)
    return float(np.corrcoef(one, other)[0, 1])
