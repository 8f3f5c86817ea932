"""The word with the best score, given to the client as its label: no score, no rank, not even its number."""

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import (
    Cost,
    ShareEngine,
    argmax,
    argmax_cost,
    multiply_bit,
    multiply_bit_cost,
    open_cost,
    open_to,
)
from ppspeech.crypto.transfer import Side
from ppspeech.protocols.scores.states import LABEL_BYTES, WordModels, WordShape, read_label

LABEL_RING = Ring(8 * LABEL_BYTES)


def choose_residues(
    engine: ShareEngine, shape: WordShape, models: WordModels | None, scores: Residues
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
    labels = np.zeros((shape.candidates, shape.label_residues), np.uint64)
    if models is not None:
        labels = models.label_numbers
    bits = np.repeat(best.reshape(-1), shape.label_residues)
    words = np.tile(labels.reshape(-1), len(scores))
    spelled = multiply_bit(engine, bits, words, LABEL_RING)
    spelled = LABEL_RING.reduce(spelled.reshape(len(scores), *labels.shape).sum(axis=1, dtype=np.uint64))
    opened = open_to(engine, Side.SECOND, spelled, LABEL_RING)
    return None if opened is None else [read_label(row) for row in opened]


def choice_cost(shape: WordShape, utterances: int) -> Cost:
    """`choose_residues`."""
    return (
        argmax_cost(shape.scale.ring, utterances, shape.candidates)
        + multiply_bit_cost(LABEL_RING, utterances * shape.candidates * shape.label_residues)
        + open_cost(Side.SECOND, LABEL_RING, utterances * shape.label_residues)
    )
