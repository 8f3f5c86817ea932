"""The audit: lower bounds on what a mechanism really leaks. It can refute a guarantee and never proves one.

`audit_exact` where the density is known, `audit_sampling` where the mechanism can be run many times, `audit_one_run`
where it can be run once, `audit_leak_identity` where an equation gives the data away.
"""

from ppspeech.privacy.audit.account import attacks_on, audit_account
from ppspeech.privacy.audit.catalogue import (
    CONFIDENCE,
    audited,
    audits_of,
    exact_report,
    run_audits,
    run_once,
    scored_report,
)
from ppspeech.privacy.audit.exact import ExactAudit, audit_exact
from ppspeech.privacy.audit.membership import found_at
from ppspeech.privacy.audit.one_run import (
    audit_one_run,
    coins,
    guessed,
    one_run_epsilon,
    one_run_p_value,
    separated,
)
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.audit.sampling import audit_leak_identity, audit_sampling, epsilon_lower_bound

__all__ = [
    "CONFIDENCE",
    "AuditReport",
    "ExactAudit",
    "attacks_on",
    "audit_account",
    "audit_exact",
    "audit_leak_identity",
    "audit_one_run",
    "audit_sampling",
    "audited",
    "audits_of",
    "coins",
    "epsilon_lower_bound",
    "exact_report",
    "found_at",
    "guessed",
    "one_run_epsilon",
    "one_run_p_value",
    "run_audits",
    "run_once",
    "scored_report",
    "separated",
]
