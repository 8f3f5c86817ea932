"""`ppspeech bench`: measured figures beside peers."""

import importlib
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

from ppspeech.bench import NAMES
from ppspeech.errors import PpspeechError


def bench(
    name: Annotated[str, typer.Argument(help="Which; without a name, list them.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version of the same thing.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a figure.")] = False,
) -> None:
    """Measure ppspeech beside its peers, in one run.

    Examples: `ppspeech bench features`, `ppspeech bench features --quick --json`
    """
    from ppspeech.figures import show_figures

    if not name and not every:
        for known in NAMES:
            summary = (_module(known).__doc__ or "").splitlines()[0]
            Console().print(f"[bold]{known:14}[/] {summary}", highlight=False)
        return
    if name and name not in NAMES:
        raise PpspeechError(f"no benchmark called {name!r}: known are {', '.join(NAMES)}")
    for chosen in NAMES if every else (name,):
        try:
            figures = _module(chosen).run(quick)
        except ModuleNotFoundError as missing:
            raise PpspeechError(
                f"bench {chosen} runs beside {missing.name}, which is not installed: pip install 'ppspeech[peers]'"
            ) from None
        show_figures(figures, as_json=as_json, title=f"bench {chosen}")


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"ppspeech.bench.{name.replace('-', '_')}")
