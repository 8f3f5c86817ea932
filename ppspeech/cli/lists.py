"""Lists of what can be run or loaded, printed without importing any of it."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.registry import Listed


def show_list(entries: "Mapping[str, Listed]", *, as_json: bool, title: str = "", kind: str = "") -> None:
    """Print names with what they are and need: as a table, or one JSON object a line."""
    if as_json:
        for name, entry in entries.items():
            said = {"kind": kind, "name": name, "about": entry.about, "needs": entry.needs}
            typer.echo(json.dumps({field: value for field, value in said.items() if value}))
        return
    needs = any(entry.needs for entry in entries.values())
    table = Table("name", "what it is", *(["needs"] if needs else []), title=title or None, title_justify="left")
    table.box = box.SIMPLE_HEAD
    for name, entry in entries.items():
        table.add_row(Text(name, "bold", no_wrap=True), entry.about, *([entry.needs] if needs else []))
    Console().print(table)
