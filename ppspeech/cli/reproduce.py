"""`ppspeech reproduce`: results measured again on the real corpora."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ppspeech.cli.bench import Store, peers_of, refuse_nothing
from ppspeech.cli.lists import show_list
from ppspeech.cli.ray import Ray
from ppspeech.cli.report import RESULTS, Results, keep


def reproduce(
    name: Annotated[str, typer.Argument(help="Which; without a name, list them.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version of the same thing.")] = False,
    folder: Annotated[Path, typer.Option(help="Where the pictures go.")] = Path("runs/reproduce"),
    ray: Ray = None,
    store: Store = False,
    results: Results = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a figure.")] = False,
) -> None:
    """Measure a result again: a table, and a picture where there is one. Without a name, list them and what they need.

    With --ray, runs that do not know each other (seeds, splits, epsilons of a sweep) are spread; an experiment that is
    no sweep runs as ever.

    Examples: `ppspeech reproduce`, `ppspeech reproduce fsdd`, `ppspeech reproduce speakers --json`,
    `ppspeech reproduce fsdd --store`, `ppspeech reproduce five-classes --ray`
    """
    from ppspeech.registry import listed

    if not name:
        refuse_nothing("reproduce", store)
        show_list(listed("ppspeech.evidence.experiments"), as_json=as_json)
        return
    from ppspeech.cluster import spread_over
    from ppspeech.evidence.experiments import EXPERIMENTS
    from ppspeech.evidence.results import measured
    from ppspeech.figures import show_figures

    with peers_of(f"reproduce {name}"), spread_over(ray):
        work = partial(EXPERIMENTS[name], quick, folder)
        command = f"ppspeech reproduce {name}{' --quick' * quick}"
        provenance, figures = measured(command, work) if store else (None, work())
    show_figures(figures, as_json=as_json, title=f"reproduce {name}")
    if provenance is not None:
        keep(provenance, figures, results)
