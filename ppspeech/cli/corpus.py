"""`ppspeech corpus`: what is in a corpus or table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box

from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.data import CorpusSummary
    from ppspeech.data.tables import Table


def corpus(
    name: Annotated[str, typer.Argument(help="A known corpus or table (`ppspeech corpus list`), or a folder.")],
    plot: Annotated[Path | None, typer.Option(help="Save a picture of it here (.png).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a table.")] = False,
) -> None:
    """Check a corpus and show who says what, how often and how long.

    Examples: `ppspeech corpus synthetic`, `ppspeech corpus fsdd --json`, `ppspeech corpus my_folder --plot mine.png`
    """
    from ppspeech.data import corpus_names, load_corpus, load_table, plot_corpus, summarize, table_names
    from ppspeech.figures import show_figures

    if name == "list":
        Console().print(f"corpora: {', '.join(corpus_names())}\ntables:  {', '.join(table_names())}")
        return
    if name in table_names():
        _show_table(load_table(name), as_json)
        return
    summary = summarize(load_corpus(name))
    if as_json:
        show_figures(summary.figures(), as_json=True)
    else:
        show_summary(summary)
    if plot is not None:
        plot_corpus(summary, plot)
        if not as_json:
            Console().print(f"picture: {plot}")


def show_summary(summary: "CorpusSummary") -> None:
    """Print a summary as a table."""
    from rich.table import Table as Grid

    console = Console()
    console.print(
        f"{summary.name}: {summary.utterances:,} utterances by {summary.speakers} speakers, "
        f"{summary.seconds / 60:.1f} minutes at {summary.sample_rate:,} Hz",
    )
    grid = Grid("label", "values", "utterances each", box=box.SIMPLE_HEAD)
    for label, counts in summary.labels.items():
        values = sorted(counts, key=lambda name: (int(name) if name.isdigit() else -1, name))
        shown = ", ".join(values[:8]) + (f", … ({len(values)})" if len(values) > 8 else "")
        low, high = min(counts.values()), max(counts.values())
        grid.add_row(label, shown, f"{low:,}" if low == high else f"{low:,} to {high:,}")
    console.print(grid)


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
