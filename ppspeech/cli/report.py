"""`ppspeech report`: the page of results and the figures that documents quote, from what was measured and stored."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.evidence.results import Provenance, Store
    from ppspeech.figures import Figure

RESULTS = Path("docs/results")
DOCUMENTS = (Path("README.md"), Path("CONTRIBUTING.md"), Path("docs"))
Results = Annotated[Path, typer.Option("--results", help="The folder of stored results.")]


def report(
    action: Annotated[str, typer.Argument(help="`add` stores files; without it, the page is written.")] = "",
    files: Annotated[
        list[Path] | None, typer.Argument(help="To add: what `--json` printed, below a line of provenance.")
    ] = None,
    results: Results = RESULTS,
    documents: Annotated[
        list[Path] | None,
        typer.Option(help="Files and folders that quote figures; by default README.md, CONTRIBUTING.md and docs."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if page or documents are not what the store gives.")
    ] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="List the names of all stored figures.")] = False,
    machine: Annotated[str, typer.Option(help="To add: the machine of the run, if it was not this one.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="All stored figures, one JSON object each.")] = False,
) -> None:
    """Write the page of results (`index.md` in the folder) and the figures that documents quote.

    A file to add begins with `{"command": "ppspeech reproduce fsdd", "date": "2026-11-18", "seconds": 123}`.
    A document quotes by `<!-- figure: fsdd.hmm.accuracy percent --><!-- end -->`; the figure is put between.

    Examples: `ppspeech report`, `ppspeech report --check`, `ppspeech report --json`, `ppspeech report --metrics`,
    `ppspeech report add fsdd.jsonl`
    """
    from ppspeech.evidence.results import add_file, read_store

    if action not in {"", "add"} or bool(action) != bool(files):
        said = " ".join([action, *map(str, files or ())]) or "nothing"
        raise PpspeechError(f"`ppspeech report add FILE` stores files, `ppspeech report` writes the page; got {said}")
    if files:
        if check or metrics:
            raise PpspeechError("`ppspeech report add FILE` stores files; ask for --check or --metrics afterwards")
        for path in files:
            kept = add_file(path, results, where=machine)
            typer.echo(json.dumps({"stored": str(kept)}) if as_json else f"{kept}: `ppspeech report` shows it")
        return
    store = read_store(results)
    if metrics:
        _show_metrics(store, as_json)
    elif as_json:
        for result in store:
            told = {"command": result.provenance.command, "date": result.provenance.date}
            for figure in result.figures:
                typer.echo(json.dumps(told | json.loads(figure.to_json())))
    else:
        _write(store, results, _quoting(documents, results), check=check)


def keep(provenance: "Provenance", figures: "list[Figure]", results: Path) -> None:
    """Store what a command has just printed."""
    from ppspeech.evidence.results import write_result

    kept = write_result(provenance, figures, results)
    Console(stderr=True).print(f"{kept}: `ppspeech report` shows it")


def _show_metrics(store: "Store", as_json: bool) -> None:
    from rich import box
    from rich.table import Table

    rows = store.metrics()
    if as_json:
        for metric, unit, command in rows:
            typer.echo(json.dumps({"metric": metric, "unit": unit, "command": command}))
        return
    table = Table("metric", "unit", "command", box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _quoting(documents: list[Path] | None, results: Path) -> list[Path]:
    """The documents, without the page."""
    found: list[Path] = []
    for each in documents or [path for path in DOCUMENTS if path.exists()]:
        if not each.exists():
            raise PpspeechError(f"there is no {each} to look for quoted figures in")
        found += sorted(each.rglob("*.md")) if each.is_dir() else [each]
    return [path for path in found if path.resolve() != (results / "index.md").resolve()]


def _write(store: "Store", results: Path, documents: list[Path], *, check: bool) -> None:
    from ppspeech.evidence.results import problems_of, read_shown, rewritten, written_page
    from ppspeech.storage import atomic_write

    shown = read_shown(results / "shown.yaml")
    index, page = results / "index.md", written_page(store, shown)
    console = Console()
    if check:
        stale = not index.exists() or index.read_text(encoding="utf-8") != page
        wrong = [f"{index} is not what the store gives: run `ppspeech report`"] if stale else []
        for path in documents:
            wrong += [f"{path}, {said}" for said in problems_of(path.read_text(encoding="utf-8"), store)]
        for said in wrong:
            Console(stderr=True).print(said)
        if wrong:
            raise typer.Exit(1)
        console.print(f"{index} and {len(documents)} documents say what {len(store.results)} results give")
        return
    texts = {index: page}
    for path in documents:
        before = path.read_text(encoding="utf-8")
        try:
            after = rewritten(before, store)
        except PpspeechError as wrong:
            raise PpspeechError(f"{path}, {wrong}") from None
        if after != before:
            texts[path] = after
    for path, text in texts.items():
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        console.print(f"wrote {path}")
    missing = shown.missing(store)
    if missing:
        console.print(f"not measured yet: {', '.join(missing)}")
