"""`ppspeech reproduce`: results measured again on the real corpora."""

from pathlib import Path
from typing import Annotated

import typer

from ppspeech.cli.bench import peers_of
from ppspeech.cli.lists import show_list


def reproduce(
    name: Annotated[str, typer.Argument(help="Which; without a name, list them.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version of the same thing.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the pictures go.")] = Path("runs/reproduce"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a figure.")] = False,
) -> None:
    """Measure a result again: a table, and a picture where there is one. Without a name, list them and what they need.

    Examples: `ppspeech reproduce`, `ppspeech reproduce fsdd`, `ppspeech reproduce speakers --json`
    """
    from ppspeech.registry import listed

    if not name:
        show_list(listed("ppspeech.evidence.experiments"), as_json=as_json)
        return
    from ppspeech.evidence.experiments import EXPERIMENTS
    from ppspeech.figures import show_figures

    with peers_of(f"reproduce {name}"):
        figures = EXPERIMENTS[name](quick, folder)
    show_figures(figures, as_json=as_json, title=f"reproduce {name}")
