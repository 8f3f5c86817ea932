"""`ppspeech classify`: which class does a row of a table belong to?"""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from ppspeech.screen import Console


def classify(
    bundle: Annotated[Path, typer.Argument(help="A bundle of a model of rows, such as `ppspeech simulate` writes.")],
    table: Annotated[str, typer.Argument(help="A CSV file with the model's columns by name, or a known table.")],
    label: Annotated[str, typer.Option(help="Of a CSV file: the column with the true class, to count errors.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write the class of every row here (.csv).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Apply a released model of rows, in the clear, and count its errors where the true class is known.

    Of a known table with an official split, the test rows are taken.

    Examples: `ppspeech classify joint new.csv --out found.csv`, `ppspeech classify joint held_out.csv --label income`,
    `ppspeech classify joint adult --json`
    """
    from ppspeech.bundle import load_bundle
    from ppspeech.data import load_table, write_rows
    from ppspeech.data.tables import read_table
    from ppspeech.errors import CorpusError
    from ppspeech.storage import atomic_write

    if label and not table.endswith(".csv"):
        raise CorpusError(f"--label names a column of a CSV file; {table} knows its classes by itself")
    loaded = load_bundle(bundle)
    columns, labels = loaded.config.columns, loaded.labels
    if table.endswith(".csv"):
        rows = read_table(table, label, columns, labels)
    else:
        rows = load_table(table)
        rows = rows if rows.is_test is None else rows.train_test()[1]
        if (rows.feature_names, rows.label_names) != (columns, labels):
            raise CorpusError(f"{table} has other columns or classes than {bundle} was trained on")
    found = loaded.classify(rows.features)
    known = bool(label) or not table.endswith(".csv")
    truth = [labels[place] for place in rows.labels.tolist()] if known else []
    right = sum(one == other for one, other in zip(found, truth, strict=False))
    counts = Counter(found)
    if out is not None:
        with atomic_write(out) as temporary:
            write_rows(temporary, ["row", "class"], enumerate(found, start=1))
    if as_json:
        accuracy = (
            {"accuracy": right / len(truth), "majority": max(Counter(truth).values()) / len(truth)} if known else {}
        )
        typer.echo(json.dumps({"rows": len(found), "classes": {name: counts[name] for name in labels}} | accuracy))
        return
    console = Console()
    grid = Table("class", "rows", box=box.SIMPLE_HEAD)
    for name in labels:
        grid.add_row(name, f"{counts[name]:,}")
    console.print(grid)
    if known:
        often, times = Counter(truth).most_common(1)[0]
        console.print(f"{right / len(truth):.3f} of {len(truth):,} rows right")
        console.print(f"{times / len(truth):.3f} would be by always saying {often!r}")
    if out is not None:
        console.print(f"written to {out}")
