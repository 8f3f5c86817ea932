"""Audit a recipe: its own module under its own hook, with canaries, and everything it books released many times."""

from collections.abc import Sequence

from ppspeech.figures import Figure
from ppspeech.privacy.audit import CONFIDENCE, AuditReport, audit_account
from ppspeech.training.audit.run import run_with_canaries
from ppspeech.training.module import SpeechModule
from ppspeech.training.private import PrivacyHook


def audit_recipe(
    name: str, module: SpeechModule, hook: PrivacyHook, epochs: int, *, canaries: int = 1000, runs: int = 100_000
) -> list[AuditReport]:
    """Try to refute what a recipe states: in one run with canaries, then by many draws of all that the run booked.

    `module` and `hook` as `run_with_canaries` takes them. The first looks at the recipe from end to end, the second at
    the noise: one run with guesses cannot tell half the noise from all of it, many draws can.
    """
    found = run_with_canaries(module, hook, epochs, canaries)
    booked = audit_account(found.account.events, found.guarantee, runs, confidence=CONFIDENCE)
    return [*found.reports(name), *booked]


def figures_of(reports: Sequence[AuditReport]) -> list[Figure]:
    """What a bundle says about its audit: what was stated, and the largest bound found by each way to look."""
    found = [
        Figure("audit.eps_stated", reports[0].eps_stated, note=f"{reports[0].relation}, delta {reports[0].delta:g}")
    ]
    for report in reports:
        place = report.mechanism.rsplit(".", 1)[-1]
        how = f"{report.note or report.method}; confidence {report.confidence:.6g}: {report.verdict}"
        found.append(Figure(f"audit.{place}.{report.method}.eps_lower", report.eps_lower, note=how[:200]))
    return found
