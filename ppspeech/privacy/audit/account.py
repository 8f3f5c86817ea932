"""Audit an account at its own parameters: all that it books is released again, with one unit in and with it out."""

from collections.abc import Sequence

import torch

from ppspeech.privacy.accounting.events import Event
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.audit.sampling import audit_scores
from ppspeech.privacy.guarantee import Guarantee
from ppspeech.privacy.mechanism import MECHANISMS, Losses

MOST_DRAWS = 20_000_000  # noise drawn in one audit: of many releases there are fewer runs
LEAST_RUNS = 1_000


def attackable(event: Event) -> Losses | None:
    """How what an event books is attacked at the event's own parameters, if a mechanism says so."""
    for name in MECHANISMS.names():
        known = MECHANISMS[name]
        losses: Losses | None = getattr(known.kind, "losses", None)
        if losses is not None and type(event) in known.events:
            return losses
    return None


def audit_account(
    entries: Sequence[tuple[Event, int]], stated: Guarantee, runs: int, *, confidence: float
) -> AuditReport | None:
    """Release what the entries book, each so many times, and guess from all of it whether one unit was in.

    The guess is the best there is: the sum of the privacy losses, in the case that the event calls its worst. What no
    mechanism can attack is left out, which makes the bound smaller and not false; None if nothing is left.
    """
    known = [(losses, event, count) for event, count in entries if (losses := attackable(event)) is not None]
    if not known:
        return None
    draws = sum(count * getattr(event, "steps", 1) for _, event, count in known)
    runs = max(LEAST_RUNS, min(runs, MOST_DRAWS // draws))

    def scores(present: bool) -> torch.Tensor:
        total = torch.zeros(runs, dtype=torch.float64)
        for losses, event, count in known:
            for _ in range(count):
                total += losses(event, runs, present)
        return total

    note = " and ".join(f"{count} x {event}" for _, event, count in known)
    return audit_scores(
        scores(True).numpy(), scores(False).numpy(), name="bundle", stated=stated, confidence=confidence, note=note
    )
