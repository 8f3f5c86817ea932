"""`ppspeech corpus`: what is in a corpus or table, and what is wrong with it."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box

from ppspeech.cli.lists import show_list
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.data import CorpusSummary
    from ppspeech.data.tables import Table

KINDS = ("unusable", "narrow", "shared", "doubtful")  # of faults, the worst first


def corpus(
    name: Annotated[str, typer.Argument(help="A known corpus or table (`ppspeech corpus list`), or a folder.")],
    plot: Annotated[Path | None, typer.Option(help="Save a picture of it here (.png).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a table.")] = False,
) -> None:
    """Check a corpus: who says what, how often and how long, and everything that is wrong with the recordings.

    Every recording is listened to. Exit code 1 if any cannot be used, is narrower than the others, or stands under two
    names; doubtful ones (clipped, of an odd length, the same twice) are listed too.

    Examples: `ppspeech corpus synthetic`, `ppspeech corpus fsdd --json`, `ppspeech corpus my_folder --plot mine.png`
    """
    from ppspeech.registry import listed

    if name == "list":
        for kind, title in (("corpus", "corpora"), ("table", "tables")):
            found = listed(f"ppspeech.data.{title}", f"register_{kind}")
            show_list(found, as_json=as_json, title=title, kind=kind)
        return
    from ppspeech.data import load_corpus, load_table, plot_corpus, summarize, table_names
    from ppspeech.figures import show_figures

    if name in table_names():
        _show_table(load_table(name), as_json)
        return
    summary = summarize(load_corpus(name))
    if as_json:
        show_figures(summary.figures(), as_json=True)
        for fault in summary.faults:
            typer.echo(json.dumps({"clip": str(fault.utterance.path), "fault": fault.kind, "what": fault.what}))
    else:
        show_summary(summary)
        _show_faults(summary)
    if plot is not None:
        plot_corpus(summary, plot)
        if not as_json:
            Console().print(f"picture: {plot}")
    if not summary.is_sound:
        raise typer.Exit(1)


def show_summary(summary: "CorpusSummary") -> None:
    """Print a summary as a table."""
    from rich.table import Table as Grid

    console = Console()
    rates = summary.rates
    mixed = ", ".join(f"{count:,} at {rate:,} Hz" for rate, count in rates.items())
    at = f"mixed rates: {mixed}" if len(rates) > 1 else f"at {next(iter(rates), summary.sample_rate):,} Hz"
    console.print(
        f"{summary.name}: {summary.utterances:,} utterances by {summary.speakers} speakers, "
        f"{summary.seconds / 60:.1f} minutes, {at}"
    )
    console.print(", ".join(f"{which} {seconds:.2f} s" for which, seconds in summary.lengths.items()))
    if not summary.speakers_known:
        console.print(
            "who speaks is not known: every recording counts as a speaker, and a split by speaker as one by recording"
        )
    grid = Grid("label", "values", "utterances each", box=box.SIMPLE_HEAD)
    for label, counts in summary.labels.items():
        values = sorted(counts, key=lambda name: (int(name) if name.isdigit() else -1, name))
        shown = ", ".join(values[:8]) + (f", … ({len(values)})" if len(values) > 8 else "")
        low, high = min(counts.values()), max(counts.values())
        grid.add_row(label, shown, f"{low:,}" if low == high else f"{low:,} to {high:,}")
    console.print(grid)


def _show_faults(summary: "CorpusSummary") -> None:
    console = Console()
    for fault in sorted(summary.faults, key=lambda fault: KINDS.index(fault.kind)):
        console.print(f"{fault.kind}: {fault.utterance.path} {fault.what}")
    counts = Counter[str](fault.kind for fault in summary.faults)
    found = ", ".join(f"{counts[kind]:,} {kind}" for kind in KINDS if counts[kind])
    console.print(f"of {summary.utterances:,} recordings: {found or 'nothing is wrong'}")


def _show_table(table: "Table", as_json: bool) -> None:
    from ppspeech.figures import Figure, show_figures

    figures = [
        Figure(f"corpus.{table.name}.rows", len(table)),
        Figure(f"corpus.{table.name}.features", table.features[0].numel()),
        *(
            Figure(f"corpus.{table.name}.label.{name}", int((table.labels == i).sum()))
            for i, name in enumerate(table.label_names)
        ),
    ]
    if table.groups is not None:
        figures.append(Figure(f"corpus.{table.name}.subjects", len(set(table.groups.tolist()))))
    if table.is_test is not None:
        figures.append(Figure(f"corpus.{table.name}.test_rows", int(table.is_test.sum())))
    show_figures(figures, as_json=as_json, title=table.name)
