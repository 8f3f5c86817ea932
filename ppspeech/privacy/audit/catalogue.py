"""Audits by the name of a mechanism, and the reports that audits of the same form share."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import Event
from ppspeech.privacy.accounting.hockey_stick import smallest_epsilon
from ppspeech.privacy.audit.exact import ExactAudit
from ppspeech.privacy.audit.one_run import audit_one_run
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.audit.sampling import audit_sampling, audit_scores
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import MECHANISMS
from ppspeech.privacy.relation import Relation

CONFIDENCE = 0.999  # of the sampling audits: a sound mechanism raises a false alarm once in a thousand audits

ONE_RECORD = Relation("record", "add_remove")  # what audits at standard parameters protect

CANARIES = 1000  # in an audit by one run


class Stated(Protocol):
    """A mechanism, as far as it is held to what it says."""

    @property
    def event(self) -> Event:
        """What one release costs."""

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""


class Additive(Stated, Protocol):
    """A mechanism that adds noise to a tensor."""

    @property
    def sensitivity(self) -> float:
        """How far one unit moves the value, in the norm that the mechanism is calibrated for."""

    def release(self, value: Tensor, /) -> Released[Tensor]:
        """The value with noise."""


def audited() -> tuple[str, ...]:
    """The names of the mechanisms that have an audit, sorted."""
    return tuple(name for name in MECHANISMS.names() if MECHANISMS[name].audit is not None)


def run_audits(names: Sequence[str] | None = None, *, runs: int = 2000) -> list[AuditReport]:
    """Audit the named mechanisms, or all; PrivacyError for a name without a registered audit."""
    reports: list[AuditReport] = []
    for name in audited() if names is None else names:
        audit = MECHANISMS[name].audit
        if audit is None and not MECHANISMS[name].events:
            raise PrivacyError(
                f"{name!r} states no epsilon that could be refuted; link a table that it made to people: "
                "`ppspeech audit TABLE.csv --known OTHER.csv --person COLUMN`"
            )
        if audit is None:
            raise PrivacyError(f"no audit is registered for {name!r}; there are audits of {', '.join(audited())}")
        reports += audit(runs)
    return reports


def audits_of(event: Event) -> list[str]:
    """The audits that speak for an event: those of the mechanisms that book its type."""
    return [name for name in audited() if type(event) in MECHANISMS[name].events]


def run_once(name: str) -> AuditReport:
    """Audit a mechanism that adds noise by one release with many canaries (Steinke, Nasr and Jagielski 2023).

    Every canary is a coordinate of its own and as large as the sensitivity; half of them are in. Raises PrivacyError
    for a mechanism that does not say how it is made for any number of coordinates (`example`).
    """
    example = getattr(MECHANISMS[name].kind, "example", None)
    if example is None:
        able = [known for known in audited() if hasattr(MECHANISMS[known].kind, "example")]
        raise PrivacyError(f"{name!r} cannot be audited by one run with many canaries; {', '.join(able)} can")
    mechanism: Additive = example(CANARIES)

    def release(present: Sequence[int]) -> Tensor:
        value = torch.zeros(CANARIES, dtype=torch.float64)
        value[list(present)] = mechanism.sensitivity
        return mechanism.release(value).value

    held: dict[str, Any] = {"name": name, "stated": mechanism.guarantee, "confidence": CONFIDENCE}
    return audit_one_run(release, range(CANARIES), lambda noisy, k: float(noisy[k]), CANARIES // 5, **held)


def exact_report(name: str, found: ExactAudit, stated: Guarantee, note: str = "") -> AuditReport:
    """The report of an exact audit: the largest loss at delta = 0, else the epsilon that delta really needs."""
    lower = found.sup_loss if stated.delta == 0 else smallest_epsilon(found.delta, stated.delta)
    return AuditReport.of(name, "exact", stated, lower, note=note)


def sampled_report(name: str, mechanism: Additive, runs: int) -> AuditReport:
    """End to end, on one number that moves by the whole sensitivity."""
    held: dict[str, Any] = {"name": name, "stated": mechanism.guarantee, "confidence": CONFIDENCE}
    held["entries"] = [(mechanism.event, 1)]
    zero = torch.zeros(1, dtype=torch.float64)
    return audit_sampling(lambda v: mechanism.release(v).value, zero + mechanism.sensitivity, zero, float, runs, **held)


def released_report(
    name: str, mechanism: Stated, release: Callable[[Any], float], data: Any, neighbor: Any, runs: int
) -> AuditReport:
    """End to end, by a number that is released about two data sets that are neighbors."""
    inside, outside = (
        torch.tensor([release(each) for _ in range(runs)], dtype=torch.float64) for each in (data, neighbor)
    )
    return scored_report(name, inside, outside, mechanism.guarantee, [(mechanism.event, 1)])


def scored_report(
    name: str, inside: Tensor, outside: Tensor, stated: Guarantee, entries: Sequence[tuple[Event, int]], note: str = ""
) -> AuditReport:
    """Of an attacker's scores `(runs,)` of releases with a unit in and out, against what is booked."""
    held: dict[str, Any] = {"stated": stated, "confidence": CONFIDENCE, "entries": entries, "note": note}
    return audit_scores(inside.numpy(), outside.numpy(), name=name, **held)


def line(reach: float, dimension: int = 1, points: int = 40_001) -> tuple[Tensor, float]:
    """Points on the first axis from -reach to reach, `(points, dimension)`, and their distance."""
    x = torch.linspace(-reach, reach, points, dtype=torch.float64)
    return torch.nn.functional.pad(x.unsqueeze(1), (0, dimension - 1)), 2 * reach / (points - 1)


def shift(dimension: int = 1) -> dict[str, Any]:
    """Two neighboring values a unit step apart on the first axis, for `audit_exact`."""
    moved = torch.zeros(dimension)
    moved[0] = 1.0
    return {"data": torch.zeros(dimension), "neighbor": moved}
