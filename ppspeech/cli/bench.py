"""`ppspeech bench`: measured figures beside peers."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING, Annotated

import typer

from ppspeech.cli.lists import show_list
from ppspeech.cli.ray import Ray
from ppspeech.cli.report import RESULTS, Results, keep
from ppspeech.errors import PpspeechError

if TYPE_CHECKING:
    from ppspeech.figures import Figure

Store = Annotated[bool, typer.Option("--store", help="Keep the figures for `ppspeech report`.")]


def bench(
    name: Annotated[str, typer.Argument(help="Which; without a name, list them.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version of the same thing.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    ray: Ray = None,
    store: Store = False,
    results: Results = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a figure.")] = False,
) -> None:
    """Measure ppspeech beside its peers, in one run; without a name, list what can be measured and what that needs.

    A name that only begins others runs all of these: `scale` stands for every `scale-...`. With --ray, each has a node
    of the cluster to itself, as what is timed must; figures are then of those machines, and are not stored.

    Examples: `ppspeech bench`, `ppspeech bench features`, `ppspeech bench features --quick --json`,
    `ppspeech bench features --store`, `ppspeech bench scale --quick`, `ppspeech bench --all --ray HOST:PORT`
    """
    from ppspeech.registry import listed

    if not name and not every:
        refuse_nothing("bench", store)
        show_list(listed("ppspeech.evidence.bench"), as_json=as_json)
        return
    from ppspeech.cluster import pool
    from ppspeech.evidence.bench import BENCHES
    from ppspeech.evidence.results import measured
    from ppspeech.figures import show_figures

    chosen_ones = list(BENCHES if every else begun_by(name, listed("ppspeech.evidence.bench")))
    if ray is not None:
        if store:
            raise PpspeechError("--store keeps figures of this machine, and --ray measures on others: give one of them")
        _ = [BENCHES[each] for each in chosen_ones]  # a name that is none is refused before a cluster starts
        with pool(ray, alone=True) as workers:
            for place, figures in workers.each(partial(_measured_there, quick), chosen_ones, "Measuring"):
                show_figures(figures, as_json=as_json, title=f"bench {chosen_ones[place]}")
        return
    for chosen in chosen_ones:
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


def _measured_there(quick: bool, name: str) -> "list[Figure]":
    """One benchmark, by a worker."""
    from ppspeech.evidence.bench import BENCHES

    with peers_of(f"bench {name}"):
        return BENCHES[name](quick)


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
