"""Audit by algebra: an equation that the output satisfies exactly for the true data set and for no other."""

from collections.abc import Callable
from typing import Any, TypeVar

from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.audit.sampling import epsilon_lower_bound, stated_epsilon
from ppspeech.privacy.guarantee import Guarantee
from ppspeech.privacy.parameters import check_count, check_positive

Output = TypeVar("Output")


def audit_leak_identity(
    mechanism: Callable[[Any], Output],
    data: Any,
    neighbor: Any,
    identity: Callable[[Output, Any], float],
    runs: int,
    *,
    tolerance: float,
    name: str,
    stated: Guarantee,
    confidence: float = 0.95,
) -> AuditReport:
    """Say "data" whenever the residual of the identity for `data` is within a tolerance that is fixed beforehand.

    Args:
        mechanism: data -> output, fresh noise in every call.
        identity: (output, data) -> residual >= 0, zero up to rounding if the output came from that data.
        runs: on each data set; all of them test, as nothing is chosen by looking.
        tolerance: residuals up to this count as zero.
    """
    check_count("runs", runs)
    check_positive("tolerance", tolerance)
    hits = sum(identity(mechanism(data), data) <= tolerance for _ in range(runs))
    alarms = sum(identity(mechanism(neighbor), data) <= tolerance for _ in range(runs))
    return AuditReport(
        mechanism=name,
        method="identity",
        relation=stated.relation,
        eps_stated=stated_epsilon(stated),
        eps_lower=epsilon_lower_bound(hits, alarms, runs, confidence=confidence, delta=stated.delta),
        delta=stated.delta,
        confidence=confidence,
        tpr=hits / runs,
        fpr=alarms / runs,
        power=epsilon_lower_bound(runs, 0, runs, confidence=confidence, delta=stated.delta),
    )
