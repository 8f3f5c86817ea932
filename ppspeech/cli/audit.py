"""`ppspeech audit`: can the stated epsilon be refuted? Can rows without names be linked to people?"""

import json
import math
import re
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

METRIC_LETTERS = re.compile("[^a-z0-9_]")  # what a metric's name has none of
RUNS, QUICK_RUNS = 10_000, 2_000  # runs of a mechanism on each of two data sets, where an audit samples
MANY_RUNS, QUICK_MANY_RUNS = 100_000, 10_000  # of all that a bundle or recipe books, which are drawn many at a time
CANARIES, QUICK_CANARIES = 1_000, 200  # in one run of a recipe


def audit(
    target: Annotated[
        str, typer.Argument(help="A mechanism, a bundle, a recipe or a table (.csv); without one, list the mechanisms.")
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Every mechanism.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs where an audit samples.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a figure.")] = False,
    one_run: Annotated[bool, typer.Option("--one-run", help="One release with 1,000 canaries instead.")] = False,
    profile: Annotated[Path | None, typer.Option(help="Of a bundle: draw delta by epsilon here (.png).")] = None,
    known: Annotated[Path | None, typer.Option(help="Of a table: what is known of people (.csv), with names.")] = None,
    person: Annotated[str, typer.Option(help="Of a table: the column with names, in both files.")] = "",
) -> None:
    """Attack what is stated. An audit can refute an epsilon; it never proves one. Exit code 1 if it does.

    For a bundle the events are replayed, which must give the stated epsilon; then all that they book is released
    again, by the code that releases it in training, with its own noise, sampling and number of releases, and an
    attacker guesses whether one unit was in. For a recipe the same, after a run of the recipe itself: its own model
    under its own privacy block, on canaries and public speech, with an attacker who sees every release and one who
    sees the model. Nobody's private speech is heard.

    A table without a guarantee is attacked by linking: each person of `--known` is given the row that resembles what is
    known most (Narayanan and Shmatikov 2008), and all people are matched to rows jointly. The column `--person` of the
    table is used to count what is right, and by nothing else. That few are named proves nothing: another attacker may
    know more.

    Examples: `ppspeech audit gaussian`, `ppspeech audit --all --json`, `ppspeech audit gaussian --one-run`,
    `ppspeech audit words --profile words.png`, `ppspeech audit keyword_dp`,
    `ppspeech audit anonymous.csv --known clips.csv --person name`
    """
    from ppspeech.errors import PrivacyError
    from ppspeech.figures import show_figures
    from ppspeech.privacy import MECHANISMS
    from ppspeech.privacy.audit import audited, run_audits, run_once

    for name in ("mechanisms", "projections", "kernel"):
        MECHANISMS.look_in(f"ppspeech.evidence.published.{name}")

    if every and target:
        raise PrivacyError(f"give either {target!r} or --all")
    if not every and not target:
        for name in audited():
            typer.echo(json.dumps({"name": name}) if as_json else name)
        return
    kind = "mechanism" if every else _kind(target)
    if profile is not None and kind != "bundle":
        raise PrivacyError(f"--profile draws the account of a bundle; {target or '--all'} is none")
    if one_run and kind != "mechanism":
        raise PrivacyError(f"--one-run audits a mechanism; a {kind} is audited by all that it releases")
    if (known is not None or person) and kind != "table":
        raise PrivacyError(f"--known and --person link rows of a table (.csv); {target or '--all'} is none")
    if kind == "table":
        show_figures(_of_table(Path(target), known, person), as_json=as_json, title=f"audit {Path(target).name}")
        return
    if kind == "bundle":
        reports = _of_bundle(Path(target), as_json, profile, quick)
    elif kind == "recipe":
        reports = _of_recipe(target, as_json, quick)
    elif one_run:
        reports = [run_once(name) for name in ([target] if target else audited())]
    else:
        reports = run_audits([target] if target else audited(), runs=QUICK_RUNS if quick else RUNS)
    if as_json:
        show_figures(figures_of(reports, one=None if kind == "mechanism" else Path(target).stem), as_json=True)
    else:
        _show(reports)
    # What others printed is listed to be refuted: that it is takes nothing from what rests on the rest.
    broken = {report.mechanism for report in reports if report.verdict == "violated"}
    broken -= {name for name in broken if every and name.startswith("published_")}
    if broken:
        told = f"the audit refutes what {target or 'this package'} states: {', '.join(sorted(broken))}"
        Console(stderr=True).print(Text.assemble(("violated:", "bold red"), f" {told}"))
        raise typer.Exit(1)


def _kind(target: str) -> str:
    """What a target is: the name of a mechanism, a bundle's folder, a table, or a recipe by name or file."""
    from ppspeech.privacy import MECHANISMS
    from ppspeech.recipes import shipped_recipes

    if target in MECHANISMS:
        return "mechanism"
    if Path(target).is_dir():
        return "bundle"
    if target.endswith(".csv"):
        return "table"
    return "recipe" if Path(target).is_file() or target in shipped_recipes() else "mechanism"


def figures_of(reports: "Iterable[AuditReport]", one: str | None = None) -> "list[Figure]":
    """Two figures a mechanism: what it states, and the largest lower bound that an audit of it found.

    Or two of `one` thing that all reports are about, a bundle or a recipe.
    """
    strongest: dict[str, AuditReport] = {}
    for report in reports:
        name = METRIC_LETTERS.sub("_", one.lower()) if one else report.mechanism
        known = strongest.get(name)
        if known is None or report.eps_lower > known.eps_lower:
            strongest[name] = report
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
    """Attack all that a bundle released, at its own parameters; loading it has replayed the events."""
    from ppspeech.bundle import load_bundle
    from ppspeech.errors import BundleError
    from ppspeech.privacy.accounting import plot_profile
    from ppspeech.privacy.audit import CONFIDENCE, attacks_on, audit_account

    bundle = load_bundle(folder)
    guarantee = bundle.statement.guarantee
    if not guarantee.proven:
        raise BundleError(f"{folder} states no guarantee: there is nothing to refute")
    if profile is not None:
        plot_profile({folder.name: bundle.account}, profile)
    entries = bundle.account.events
    found = audit_account(entries, guarantee, QUICK_MANY_RUNS if quick else MANY_RUNS, confidence=CONFIDENCE)
    if not as_json:
        console = Console()
        console.print(f"{folder}: the events give {guarantee}, as stated")
        for event, count in entries:
            how = f"attacked through {', '.join(attacks_on(event))}" if attacks_on(event) else "not attacked"
            console.print(f"{count} x {event}: {how}")
        console.print("not attacked: the trained weights (`ppspeech audit RECIPE` runs the recipe with canaries)")
    return found


def _of_recipe(target: str, as_json: bool, quick: bool) -> "list[AuditReport]":
    """Run a recipe with canaries, then attack all that the run booked."""
    from ppspeech.recipes import find_recipe
    from ppspeech.training import audited_recipe

    path = find_recipe(target)
    if not as_json:
        Console().print(f"{path.stem}: one run with canaries, then everything it booked, many times over")
    sizes = (
        {"canaries": QUICK_CANARIES, "runs": QUICK_MANY_RUNS} if quick else {"canaries": CANARIES, "runs": MANY_RUNS}
    )
    return audited_recipe(path, **sizes)


def _of_table(path: Path, known: Path | None, person: str) -> "list[Figure]":
    """Link the rows of a table to what is known of people."""
    from ppspeech.data import read_rows
    from ppspeech.errors import CorpusError, PrivacyError
    from ppspeech.evidence.attacks.tables import link_tables
    from ppspeech.figures import Figure
    from ppspeech.privacy.anonymity import Records

    if known is None or not person:
        raise PrivacyError(f"rows of {path} are linked to people: give --known FILE.csv and --person COLUMN")
    for each in (path, known):
        if not each.is_file():
            raise CorpusError(f"there is no file {each}: a table is a CSV file with a header")
    released, told = (Records.of_rows(read_rows(each, [person])) for each in (path, known))
    found = link_tables(released, told, person)
    about = f"{found.people} people, {found.rows} rows, linked by {', '.join(found.columns)}"
    name = f"audit.{METRIC_LETTERS.sub('_', path.stem.lower())}"
    return [
        Figure(f"{name}.named", found.named, note=f"share of people given a row of their own; {about}"),
        Figure(f"{name}.matched", found.matched, note="the same where all people are matched to rows jointly"),
        Figure(f"{name}.chance", found.chance, note="the same by drawing a row"),
        Figure(
            f"{name}.precision",
            found.precision,
            note=f"share right of the {found.believed} people whose row stands out",
        ),
        Figure(f"{name}.recall", found.recall, note="share of all people whose row stands out, and is right"),
    ]


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
