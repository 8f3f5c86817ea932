"""Rows tied to units: a unit is only protected where it is known which rows are its own."""

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.relation import Unit

OWN_ROWS: frozenset[Unit] = frozenset({"record", "frame"})
"""Units that are one row each by what they are: a row of a table, a row of features."""

MANY_ROWS: frozenset[Unit] = frozenset({"speaker", "party"})
"""Units that hold several rows, whose contributions are bounded together."""


def check_rows(unit: Unit, rows: int, ids: Tensor | None) -> None:
    """Refuse rows that are not tied to the unit they are to protect.

    A `record` and a `frame` are a row each; every other unit needs `ids`, `(rows,)`, that say whose each row is.
    """
    if ids is None:
        if unit not in OWN_ROWS:
            raise PrivacyError(
                f"a row is a record, and nothing here says which {unit} it is of: give groups, the {unit} of every "
                "row, or protect one record"
            )
        return
    if ids.shape != (rows,):
        raise PrivacyError(f"{rows} rows need as many groups, one a row, got shape {tuple(ids.shape)}")


def check_single_rows(unit: Unit, rows: int, ids: Tensor | None) -> None:
    """Refuse also several rows of one unit, where each row is bounded on its own; `MANY_ROWS` may have them."""
    check_rows(unit, rows, ids)
    if ids is None or unit in MANY_ROWS:
        return
    counts = torch.unique(ids, return_counts=True)[1]
    if bool((counts > 1).any()):
        raise PrivacyError(
            f"one {unit} has up to {int(counts.max())} rows, and each is bounded on its own: make one row of them, or "
            "protect the speaker"
        )
