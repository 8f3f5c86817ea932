"""Runs of an experiment that do not know each other, spread where whoever started it asked for that.

with spread_over("local"):          # a command, once
    run_experiment()

errors = sweep(one_run, seeds)      # deep inside: by the workers of that cluster, else here, one after the other
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from ppspeech.cluster.workers import HERE, Pool, in_order, pool

Item = TypeVar("Item")
Result = TypeVar("Result")

_CHOSEN: ContextVar[Pool] = ContextVar("chosen", default=HERE)


@contextmanager
def spread_over(ray: str | None) -> Iterator[None]:
    """Inside of the block, sweeps are spread over this cluster: `local`, HOST:PORT, or None for this process."""
    with pool(ray) as workers:
        before = _CHOSEN.set(workers)
        try:
            yield
        finally:
            _CHOSEN.reset(before)


def sweep(function: Callable[[Item], Result], runs: Sequence[Item], what: str = "Running") -> list[Result]:
    """What the function says to every run, in order. It must be one that a module holds (`Pool`); runs that draw
    numbers take a seed with them, or draw noise, which is never the same.
    """
    return in_order(_CHOSEN.get(), function, runs, what)
