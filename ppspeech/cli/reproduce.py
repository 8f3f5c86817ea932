"""`ppspeech reproduce`: results measured again on the real corpora."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

from ppspeech.errors import PpspeechError
from ppspeech.reproduce import NAMES


def reproduce(
    name: Annotated[str, typer.Argument(help="Which; without a name, list them.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version of the same thing.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the pictures go.")] = Path("runs/reproduce"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a figure.")] = False,
) -> None:
    """Measure a result again: a table, and a picture where there is one.

    Examples: `ppspeech reproduce fsdd`, `ppspeech reproduce speakers --json`
    """
    from ppspeech.figures import show_figures

    if not name:
        for known in NAMES:
            summary = (_module(known).__doc__ or "").splitlines()[0]
            Console().print(f"[bold]{known:19}[/] {summary}", highlight=False)
        return
    if name not in NAMES:
        raise PpspeechError(f"no experiment called {name!r}: known are {', '.join(NAMES)}")
    figures = _module(name).run(quick, folder)
    show_figures(figures, as_json=as_json, title=f"reproduce {name}")


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"ppspeech.reproduce.{name.replace('-', '_')}")
