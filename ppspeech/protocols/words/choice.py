"""The word with the best score, given to the client as its label: no score, no rank, not even its number."""

from ppspeech.arrays import Residues
from ppspeech.crypto.shares import (
    TEXT_RING,
    Cost,
    ShareEngine,
    best_text,
    blank,
    open_to,
    read_text,
    record,
)
from ppspeech.crypto.transfer import Side
from ppspeech.protocols.scores.states import WordModels, WordShape


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
    labels = blank(shape.candidates, shape.label_residues) if models is None else models.label_numbers
    opened = open_to(engine, Side.SECOND, best_text(engine, scores, labels, shape.scale.ring), TEXT_RING)
    return None if opened is None else [read_text(row) for row in opened]


def choice_cost(shape: WordShape, utterances: int) -> Cost:
    """`choose_residues`."""
    return record(lambda engine: choose_residues(engine, shape, None, blank(utterances, shape.candidates)))
