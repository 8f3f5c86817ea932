"""`ppspeech inspect`: what a bundle is and what it promises."""

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.bundle import Bundle


def inspect_bundle(
    folder: Annotated[Path, typer.Argument(help="A bundle.")],
    registry: Annotated[
        Path | None, typer.Option(help="Also write its record for the OpenDP deployments registry (.yaml).")
    ] = None,
    trade_off: Annotated[
        bool,
        typer.Option("--trade-off", help="Also how often whoever says who was in is wrong, at best, in both ways."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Check a bundle as loading does, and show it: the model, its guarantee, and what the guarantee leaves out.

    That a statement follows from its events is always checked; that the events and weights are real, only a signature
    vouches for: `ppspeech verify-release`.

    Examples: `ppspeech inspect words`, `ppspeech inspect words --trade-off`,
    `ppspeech inspect words --registry words.yaml`
    """
    from ppspeech.bundle import deployment_yaml, load_bundle
    from ppspeech.errors import BundleError
    from ppspeech.privacy.accounting import trade_off_curve
    from ppspeech.storage import atomic_write

    bundle = load_bundle(folder)
    if registry is not None:
        if registry.suffix not in {".yaml", ".yml"}:
            raise BundleError(f"a registry record is saved as .yaml, got {registry}")
        text = deployment_yaml(bundle, folder.resolve().name, datetime.datetime.now(tz=datetime.UTC).date())
        with atomic_write(registry) as temporary:
            temporary.write_text(text, "utf-8")
    if as_json:
        curve = {"trade_off": trade_off_curve(bundle.account)} if trade_off else {}
        typer.echo(json.dumps(_plain(bundle) | curve))
        return
    show_bundle(bundle, folder)
    if trade_off:
        for false_positives, false_negatives in trade_off_curve(bundle.account)[::10]:
            Console().print(f"false positives {false_positives:.2f}: false negatives at least {false_negatives:.4f}")
    if registry is not None:
        Console().print(f"registry record: {registry!s}")


def _plain(bundle: "Bundle") -> dict[str, Any]:
    return {
        "config": bundle.config.to_json(),
        "privacy": bundle.statement.to_json(),
        "events": bundle.account.to_json(),
        "metrics": {figure.metric: figure.value for figure in bundle.metrics},
        "digests": dict(bundle.digests),
        "fingerprint": bundle.fingerprint,
    }


def show_bundle(bundle: "Bundle", folder: Path) -> None:
    """Print the model, its guarantee, and what the guarantee leaves out."""
    from ppspeech.bundle import STATUS, for_people, in_words

    config, statement = bundle.config, bundle.statement
    table = Table(title=str(folder), title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")

    def row(name: str, text: str) -> None:
        table.add_row(name, text)

    row("model", f"{config.type}: {config.task}")
    row("labels", ", ".join(config.labels) or "none")
    row("input", config.input)
    row("weights", f"{sum(tensor.numel() for tensor in bundle.model.state_dict().values()):,}, finite")
    row("guarantee", str(statement.guarantee))
    row("in words", in_words(statement.guarantee))
    for line in for_people(statement.groups, statement.guarantee.unit):
        row("for a person", line)
    if statement.private:
        report = bundle.account.report(statement.guarantee.delta)
        methods = ", ".join(f"{method} {epsilon:.4g}" for method, epsilon in report.epsilons.items())
        row("epsilon", f"replayed from the events: {methods}")
    for event, count in bundle.account.events:
        row("event", f"{count} x {event}")
    for name, lines in (
        ("covers", statement.covers),
        ("assumes", statement.guarantee.assumptions),
        ("caveat", statement.caveats),
    ):
        for line in lines:
            row(name, line)
    for touch in statement.touches:
        row(touch.topic.replace("_", " "), f"{STATUS[touch.status]}: {touch.note}")
    for figure in bundle.metrics:
        row(figure.metric, f"{figure.value:.4g} {figure.unit}".strip() + (f" ({figure.note})" if figure.note else ""))
    row("fingerprint", bundle.fingerprint)
    row("not shown here", "that the events are what happened: `ppspeech verify-release` says who vouches for it")
    Console().print(table)
