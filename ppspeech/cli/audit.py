"""`ppspeech audit`: can the stated epsilon be refuted?"""

import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.figures import Figure
    from ppspeech.privacy.audit import AuditReport

RUNS, QUICK_RUNS = 2000, 400  # runs of a mechanism on each of two data sets, where an audit samples
BUNDLE_RUNS, QUICK_BUNDLE_RUNS = 100_000, 10_000  # of all that a bundle released, which are drawn many at a time


def audit(
    target: Annotated[str, typer.Argument(help="A mechanism or a bundle; without one, list the mechanisms.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Every mechanism.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs where an audit samples.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a figure.")] = False,
    one_run: Annotated[bool, typer.Option("--one-run", help="One release with 1,000 canaries instead.")] = False,
    profile: Annotated[Path | None, typer.Option(help="Of a bundle: draw delta by epsilon here (.png).")] = None,
) -> None:
    """Attack what is stated. An audit can refute an epsilon; it never proves one. Exit code 2 if it does.

    For a bundle the events are replayed, which must give the stated epsilon; then all that they book is released
    again, with its own noise, sampling and number of releases, and an attacker guesses whether one unit was in.
    The trained weights themselves, and the code that bounded what each unit says, are not attacked.

    Examples: `ppspeech audit gaussian`, `ppspeech audit --all --json`, `ppspeech audit gaussian --one-run`,
    `ppspeech audit words --profile words.png`
    """
    from ppspeech.errors import PrivacyError
    from ppspeech.figures import show_figures
    from ppspeech.privacy import MECHANISMS
    from ppspeech.privacy.audit import audited, run_audits, run_once

    MECHANISMS.look_in("ppspeech.evidence.published.mechanisms")

    if every and target:
        raise PrivacyError(f"give either {target!r} or --all")
    if not every and not target:
        for name in audited():
            typer.echo(json.dumps({"name": name}) if as_json else name)
        return
    of_bundle = bool(target) and target not in MECHANISMS and Path(target).is_dir()
    if profile is not None and not of_bundle:
        raise PrivacyError(f"--profile draws the account of a bundle; {target or '--all'} is none")
    if of_bundle:
        if one_run:
            raise PrivacyError("--one-run audits a mechanism; a bundle is audited by all that it released")
        reports = _of_bundle(Path(target), as_json, profile, quick)
    elif one_run:
        reports = [run_once(name) for name in ([target] if target else audited())]
    else:
        reports = run_audits([target] if target else audited(), runs=QUICK_RUNS if quick else RUNS)
    if as_json:
        show_figures(figures_of(reports), as_json=True)
    else:
        _show(reports)
    # What others printed is listed to be refuted: that it is takes nothing from what rests on the rest.
    broken = {report.mechanism for report in reports if report.verdict == "violated"}
    broken -= {name for name in broken if every and name.startswith("published_")}
    if broken:
        raise PrivacyError(f"the audit refutes what {target or 'this package'} states: {', '.join(sorted(broken))}")


def figures_of(reports: "Iterable[AuditReport]") -> "list[Figure]":
    """Two figures a mechanism: what it states, and the largest lower bound that an audit of it found."""
    strongest: dict[str, AuditReport] = {}
    for report in reports:
        known = strongest.get(report.mechanism)
        if known is None or report.eps_lower > known.eps_lower:
            strongest[report.mechanism] = report
    found = []
    for name, report in strongest.items():
        relation = f"{report.relation}, delta {report.delta:g}"
        how = f"{report.method}, confidence {report.confidence:g}: {report.verdict}"
        found += [
            _figure(f"audit.{name}.eps_stated", report.eps_stated, relation),
            _figure(f"audit.{name}.eps_lower", report.eps_lower, how),
        ]
    return found


def _figure(metric: str, value: float, note: str) -> "Figure":
    """JSON has no infinity: the largest number stands for it, and the note says so."""
    from ppspeech.figures import Figure

    if math.isinf(value):
        return Figure(metric, sys.float_info.max, note=f"infinite; {note}")
    return Figure(metric, value, note=note)


def _of_bundle(folder: Path, as_json: bool, profile: Path | None, quick: bool) -> "list[AuditReport]":
    """Attack all that a bundle released, at its own parameters; loading it has replayed the events.

    Events that no mechanism attacks at its own parameters are attacked by the audits of their mechanisms at standard
    ones, and those without an audit are named.
    """
    from ppspeech.bundle import load_bundle
    from ppspeech.errors import BundleError
    from ppspeech.privacy.accounting import plot_profile
    from ppspeech.privacy.audit import CONFIDENCE, attackable, audit_account, audits_of, run_audits

    bundle = load_bundle(folder)
    guarantee = bundle.statement.guarantee
    if not guarantee.proven:
        raise BundleError(f"{folder} states no guarantee: there is nothing to refute")
    if profile is not None:
        plot_profile({folder.name: bundle.account}, profile)
    entries = bundle.account.events
    runs = QUICK_BUNDLE_RUNS if quick else BUNDLE_RUNS
    found = audit_account(entries, guarantee, runs, confidence=CONFIDENCE)
    others = [event for event, _ in entries if attackable(event) is None]
    names = list(dict.fromkeys(name for event in others for name in audits_of(event)))
    if not as_json:
        console = Console()
        console.print(f"{folder}: the events give {guarantee}, as stated")
        if found is not None:
            console.print(f"attacked as it was released: {found.note}")
        if names:
            console.print(f"attacked at standard parameters, not this bundle's: {', '.join(names)}")
        for name in dict.fromkeys(event.type_name for event in others if not audits_of(event)):
            console.print(f"no audit is registered for events of type {name}")
        console.print("not attacked: the trained weights, and the code that bounds what one unit says")
    return [*([found] if found is not None else []), *run_audits(names, runs=QUICK_RUNS if quick else RUNS)]


def _show(reports: "Sequence[AuditReport]") -> None:
    table = Table(title="audit", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("mechanism", "method", "stated epsilon", "lower bound", "confidence", "verdict"):
        table.add_column(heading, justify="right" if heading in {"stated epsilon", "lower bound"} else "left")
    for report in reports:
        table.add_row(
            report.mechanism,
            report.method,
            f"{report.eps_stated:.4g}",
            f"{report.eps_lower:.4g}",
            f"{report.confidence:g}",
            Text(report.verdict, "bold red" if report.verdict == "violated" else ""),
        )
    console = Console()
    console.print(table)
    console.print("  a lower bound above the stated epsilon refutes it; one below proves nothing", style="dim")
