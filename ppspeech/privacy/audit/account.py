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


def attacks_on(event: Event) -> dict[str, Losses]:
    """How what an event books is attacked at its own parameters, by each mechanism that books it and says so.

    Mechanisms that are attacked by the same function are attacked once.
    """
    found: dict[str, Losses] = {}
    for name in MECHANISMS.names():
        losses = MECHANISMS[name].losses
        if losses is not None and type(event) in MECHANISMS[name].events and losses not in found.values():
            found[name] = losses
    return found


def audit_account(
    entries: Sequence[tuple[Event, int]], stated: Guarantee, runs: int, *, confidence: float
) -> list[AuditReport]:
    """Release what the entries book, each so many times, and guess from all of it whether one unit was in.

    Several mechanisms may book the same event, each by code of its own: there is a report for every one of them, and
    all share what `confidence` leaves. The guess is the best there is: the sum of the privacy losses, in the case that
    the event calls its worst. What no mechanism can attack is left out, which makes the bound smaller and not false;
    no report if nothing is left.
    """
    known = [(attacks_on(event), event, count) for event, count in entries]
    known = [entry for entry in known if entry[0]]
    names = list(dict.fromkeys(name for attacks, _, _ in known for name in attacks))
    draws = sum(count * getattr(event, "steps", 1) * MECHANISMS[next(iter(by))].work for by, event, count in known)
    each = 1 - (1 - confidence) / max(len(names), 1)
    return [_attacked(name, known, stated, max(LEAST_RUNS, min(runs, MOST_DRAWS // draws)), each) for name in names]


def _attacked(
    name: str, known: Sequence[tuple[dict[str, Losses], Event, int]], stated: Guarantee, runs: int, confidence: float
) -> AuditReport:
    """Attack through one mechanism where it books an event, and through any other where it does not."""

    def scores(present: bool) -> torch.Tensor:
        total = torch.zeros(runs, dtype=torch.float64)
        for attacks, event, count in known:
            losses = attacks.get(name) or next(iter(attacks.values()))
            for _ in range(count):
                total += losses(event, runs, present)
        return total

    return audit_scores(
        scores(True).numpy(),
        scores(False).numpy(),
        name=name,
        stated=stated,
        confidence=confidence,
        note=" and ".join(f"{count} x {event}" for _, event, count in known),
        entries=[(event, count) for _, event, count in known],
    )
