"""`ppspeech bench`: measured figures beside peers."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError
from typing import Annotated

import typer

from ppspeech.cli.lists import show_list
from ppspeech.cli.report import RESULTS, Results, keep
from ppspeech.errors import PpspeechError

Store = Annotated[bool, typer.Option("--store", help="Keep the figures for `ppspeech report`.")]


def bench(
    name: Annotated[str, typer.Argument(help="Which; without a name, list them.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version of the same thing.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    store: Store = False,
    results: Results = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a figure.")] = False,
) -> None:
    """Measure ppspeech beside its peers, in one run; without a name, list what can be measured and what that needs.

    A name that only begins others runs all of these: `scale` stands for every `scale-...`.

    Examples: `ppspeech bench`, `ppspeech bench features`, `ppspeech bench features --quick --json`,
    `ppspeech bench features --store`, `ppspeech bench scale --quick`
    """
    from ppspeech.registry import listed

    if not name and not every:
        refuse_nothing("bench", store)
        show_list(listed("ppspeech.evidence.bench"), as_json=as_json)
        return
    from ppspeech.evidence.bench import BENCHES
    from ppspeech.evidence.results import measured
    from ppspeech.figures import show_figures

    for chosen in BENCHES if every else begun_by(name, listed("ppspeech.evidence.bench")):
        with peers_of(f"bench {chosen}"):
            work = partial(BENCHES[chosen], quick)
            command = f"ppspeech bench {chosen}{' --quick' * quick}"
            provenance, figures = measured(command, work) if store else (None, work())
        show_figures(figures, as_json=as_json, title=f"bench {chosen}")
        if provenance is not None:
            keep(provenance, figures, results)


def begun_by(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """What a name stands for: itself, or where nothing is called so, all that begin with it.

    >>> begun_by("scale", ["hmm", "scale-ray", "scale-store"]), begun_by("hmm", ["hmm", "hmm-long"])
    (('scale-ray', 'scale-store'), ('hmm',))
    """
    names = tuple(known)
    parts = tuple(each for each in names if each.startswith(f"{name}-"))
    return (name,) if name in names or not parts else parts


def refuse_nothing(command: str, store: bool) -> None:
    """A list is nothing to store."""
    if store:
        raise PpspeechError(
            f"--store keeps the figures of a run, and none was named: `ppspeech {command} NAME --store`"
        )


@contextmanager
def peers_of(what: str) -> Iterator[None]:
    """Name the extra that brings a peer which is missing."""
    try:
        yield
    except (ModuleNotFoundError, PackageNotFoundError) as missing:
        raise PpspeechError(
            f"{what} runs beside {missing.name}, which is not installed: pip install 'ppspeech[peers]'"
        ) from None
