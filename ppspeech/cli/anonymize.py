"""`ppspeech anonymize`: rows that are like k - 1 others, and what that does not promise."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ppspeech.screen import Console


def anonymize(
    table: Annotated[Path, typer.Argument(help="A CSV file with a header, a row a person.")],
    quasi: Annotated[str, typer.Option(help="Columns that others may know, apart by commas.")],
    out: Annotated[Path, typer.Option(help="The anonymized table (.csv).")],
    k: Annotated[int, typer.Option("--k", help="Rows that must be alike in these columns, at the least.", min=2)] = 10,
    sensitive: Annotated[str, typer.Option(help="A column that should not be told; what is told of it is said.")] = "",
    drop: Annotated[str, typer.Option(help="Columns to leave out, such as names, apart by commas.")] = "",
    leave_out: Annotated[float, typer.Option(help="Share of rows that may be left out.", min=0.0, max=0.99)] = 0.0,
    method: Annotated[
        str, typer.Option(help="lattice: the least loss of one level a column; mondrian: boxes; auto.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Make a table k-anonymous: numbers become intervals, other values one of several, or nothing is said.

    This promises nothing. A class whose rows share a value tells it, whoever knows another column names people, and two
    such tables of the same people are not anonymous. Rows are written in a random order. Columns that are not named
    are written as they are: `--drop` names. Attack what is left: `ppspeech audit FILE --known OTHER.csv --person NAME`.
    With a guarantee: `privacy:` in a recipe, or a mechanism of `ppspeech.privacy`.

    Examples: `ppspeech anonymize people.csv --k 10 --quasi age,sex --drop name --out anonymous.csv`,
    `ppspeech anonymize people.csv --quasi age,sex,city --sensitive illness --out anonymous.csv --json`
    """
    from ppspeech.data import read_rows, write_rows
    from ppspeech.errors import CorpusError, PrivacyError
    from ppspeech.privacy.anonymity import KAnonymity, Records, measure, shuffled, smallest_class
    from ppspeech.storage import atomic_write

    if not table.is_file():
        raise CorpusError(f"there is no file {table}: a table is a CSV file with a header")
    named, dropped = _names(quasi), _names(drop)
    if sensitive in named:
        raise PrivacyError(f"{sensitive} cannot be both known to others and sensitive: take it out of --quasi")
    rows = read_rows(table, [*named, *dropped, *([sensitive] if sensitive else [])])
    records = Records.of_rows([{name: value for name, value in row.items() if name not in dropped} for row in rows])
    made = KAnonymity(k=k, quasi=named, leave_out=leave_out, method=method).release(records)  # type: ignore[arg-type]
    left = made.value
    written = shuffled(left.records)
    alike = smallest_class(left.records, named)
    told = measure(left.records, named, sensitive) if sensitive else None
    with atomic_write(out) as temporary:
        write_rows(temporary, list(written.columns), written.rows())
    as_they_are = [name for name in left.records.columns if name not in named]
    if as_json:
        plain: dict[str, Any] = {
            "rows": len(left.records),
            "left_out": left.left_out,
            "loss": left.loss,
            "method": left.method,
        }
        plain |= {"k": alike, "levels": dict(left.levels), "as_they_are": as_they_are}
        if told is not None:
            plain |= {"l": told.diversity, "t": told.closeness, "homogeneous": told.homogeneous}
            plain |= {"guessed": told.guessed, "guessed_by_nothing": told.frequent}
        typer.echo(json.dumps(plain | {"guarantee": made.guarantee.kind, "caveat": made.guarantee.caveat}))
        return
    console = Console()
    lost = f"{left.left_out:,} left out; loss {left.loss:.3f} by {left.method}"
    console.print(f"{out}: {len(left.records):,} rows, {lost}")
    console.print(f"at least {alike} rows are alike in {', '.join(named)}")
    if told is not None:
        console.print(
            f"{sensitive}: l = {told.diversity}, t = {told.closeness:.2f}; {told.homogeneous:.3f} of the rows are in "
            f"classes of one value; guessed right by the class {told.guessed:.3f}, by nothing {told.frequent:.3f}"
        )
    if as_they_are:
        console.print(f"as they are: {', '.join(as_they_are)}")
    console.print(str(made.guarantee), style="bold")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
