"""The word with the best score, given to the client as its label: no score, no rank, not even its number."""

import numpy as np
from numpy.typing import NDArray

from ppspeech.crypto.argmax import argmax, argmax_cost
from ppspeech.crypto.engine import ShareEngine
from ppspeech.crypto.fixed_point import Ring
from ppspeech.crypto.ot_state import Party
from ppspeech.crypto.ring_shares import open_cost, open_to
from ppspeech.crypto.select import multiply_bit, multiply_bit_cost
from ppspeech.crypto.share_cost import Cost
from ppspeech.protocols.word_models import LABEL_BYTES, WordModels, WordShape, read_label

Words = NDArray[np.uint64]

LABEL_RING = Ring(8 * LABEL_BYTES)


def choose_words(
    engine: ShareEngine, shape: WordShape, models: WordModels | None, scores: Words
) -> list[str | None] | None:
    """The labels of the best candidates, to the second party.

    Args:
        engine: this party's.
        shape: of the models.
        models: the server's; None for the client.
        scores: shares, `(utterances, candidates)`.

    Returns:
        For the client: a label each, None where the garbage model won. For the server: None.
    """
    best = argmax(engine, scores, shape.scale.ring)
    labels = np.zeros((shape.candidates, shape.label_words), np.uint64)
    if models is not None:
        labels = models.label_numbers
    bits = np.repeat(best.reshape(-1), shape.label_words)
    words = np.tile(labels.reshape(-1), len(scores))
    spelt = multiply_bit(engine, bits, words, LABEL_RING)
    spelt = LABEL_RING.reduce(spelt.reshape(len(scores), *labels.shape).sum(axis=1, dtype=np.uint64))
    opened = open_to(engine, Party.SECOND, spelt, LABEL_RING)
    return None if opened is None else [read_label(row) for row in opened]


def choice_cost(shape: WordShape, utterances: int) -> Cost:
    """`choose_words`."""
    return (
        argmax_cost(shape.scale.ring, utterances, shape.candidates)
        + multiply_bit_cost(LABEL_RING, utterances * shape.candidates * shape.label_words)
        + open_cost(Party.SECOND, LABEL_RING, utterances * shape.label_words)
    )
