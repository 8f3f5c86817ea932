"""`ppspeech simulate eigen`: the principal direction of what local processes hold together."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from ppspeech.arrays import Reals
from ppspeech.errors import PpspeechError

if TYPE_CHECKING:
    from ppspeech.network.group import Group, Identity


def find_direction(console: Console, rows: Reals, parties: int, name: str) -> Mapping[str, Any]:
    """Run the protocol between processes that hold parts of the rows, and say how good the answer is.

    Args:
        console: where to.
        rows: `(rows, features)`, at most 128 features.
        parties: how many.
        name: of the table, for people.

    Returns:
        How each party ended, for the table of what it saw.

    Raises:
        PpspeechError: if the table has too many features, or the round ended without a result.
    """
    from ppspeech.network import Limits
    from ppspeech.network.local import Player, run_group
    from ppspeech.protocols.eigen import MOST_FEATURES

    features = rows.shape[1]
    if features > MOST_FEATURES:
        raise PpspeechError(
            f"{name} has {features} features, and directions are found among up to {MOST_FEATURES}: try --table adult"
        )
    # Public by the coding of the table: no party can have more.
    bound = len(rows) * float(np.square(rows).sum(axis=1).max())
    order = np.random.default_rng(0).permutation(len(rows))
    parts = np.array_split(rows[order], parties)
    players = {f"party{place}": Player("party", _party(part, features, bound)) for place, part in enumerate(parts)}
    console.print(f"{parties} parties, each a process with rows of {features} features; TLS on loopback")
    start = time.perf_counter()
    outcomes = run_group("eigen", players, limits=Limits(message_seconds=600.0))
    took = time.perf_counter() - start
    found = [outcome.result["direction"] for outcome in outcomes.values() if outcome.result]
    if len(found) < parties:
        raise PpspeechError("the round ended without a result for everybody; nothing was published")
    central = np.linalg.eigh(rows.T @ rows)[1][:, -1]
    agreement = abs(float(np.asarray(found[0]) @ central))
    console.print(
        f"all have the same direction after {took:.1f} s; with all rows in one place: |cos| = {agreement:.8f}"
    )
    return outcomes


def _party(rows: Reals, features: int, bound: float) -> Callable[..., dict[str, Any]]:
    def program(channels: Mapping[str, Any], group: "Group", identity: "Identity") -> dict[str, Any]:
        from ppspeech.cli.simulate import seen_by
        from ppspeech.network import Transcript
        from ppspeech.protocols import Party
        from ppspeech.protocols.eigen import find_together

        records = {other: Transcript(channel) for other, channel in channels.items()}
        found = find_together(Party.met(records, group, identity), rows, features=features, bound=bound)
        return {"direction": found[0].tolist(), "saw": seen_by(records)}

    return program
