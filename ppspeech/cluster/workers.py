"""One function for each of many items: in this process, or by the workers of a Ray cluster.

    with pool(ray="local") as workers:
        for place, result in workers.each(function, items, "Reading"):
            ...                                                  # as they are done, in whatever order

A function must be one that a module holds, with `partial` for what is the same for all; an item is best a path, or a
few of them: workers open files themselves, so on several machines they must be on storage that all of them share, under
one name. Who asks writes what comes back, whole or not at all (`ppspeech.storage.atomic_write`): workers that die, and
commands that are stopped, leave no part of a file.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ppspeech import __version__, errors
from ppspeech.cluster.connection import check_reachable, ray_cluster
from ppspeech.errors import ClusterError, PpspeechError
from ppspeech.progress import track

Item = TypeVar("Item")
Result = TypeVar("Result")

RETRIES = 4  # of an item whose worker or node died: of a fifth, the item is to blame
AHEAD = 4  # items a worker that wait in the cluster
PATIENCE_SECONDS = 5.0  # without a result until the cluster is asked whether it is still there


class Pool(Protocol):
    """Workers."""

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item], what: str
    ) -> Iterator[tuple[int, Result]]:
        """The place of every item with what the function says to it, as they are done, behind a progress bar.

        An item whose worker dies, or whose result is lost with a node, is done again. An error that the function raises
        ends the work; it must say itself what it is about.
        """


@contextmanager
def pool(ray: str | None = None, workers: int | None = None, *, alone: bool = False) -> Iterator[Pool]:
    """Workers for as long as the block lasts: this process, or with `ray` a cluster's (`local`, or HOST:PORT).

    `workers` is how many a cluster of our own has, one a core by default. Each item has a core, or if it must be
    `alone`, as what is timed must, a whole node: one of those with the most cores.
    """
    if ray is None:
        yield HERE
        return
    with ray_cluster(ray, workers) as connected:
        yield _Workers(connected, alone)


def in_order(
    workers: Pool, function: Callable[[Item], Result], items: Sequence[Item], what: str = "Working"
) -> list[Result]:
    """What the function says to every item, in the order of the items."""
    found = dict(workers.each(function, items, what))
    return [found[place] for place in range(len(items))]


class Slices(Sequence[Sequence[Any]]):
    """Items a few at a time, for workers: taken from where they are when it is their turn."""

    def __init__(self, items: Sequence[Any], size: int) -> None:
        self._items, self._size = items, size

    def __len__(self) -> int:
        return -(-len(self._items) // self._size)

    def __getitem__(self, number: Any) -> Any:
        """The items of one slice."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        return [
            self._items[place] for place in range(number * self._size, min(len(self._items), (number + 1) * self._size))
        ]


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error for people, as it travels: what an exception holds besides may not."""

    kind: str
    message: str

    def error(self) -> PpspeechError:
        kind = getattr(errors, self.kind, PpspeechError)
        ours = [each for each in kind.__mro__ if each.__module__ == errors.__name__]
        takes_a_message = not any("__init__" in vars(each) for each in ours)
        error: PpspeechError = kind(self.message) if takes_a_message else PpspeechError(self.message)
        return error


class _Here:
    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item], what: str
    ) -> Iterator[tuple[int, Result]]:
        for place, item in enumerate(track(items, what, total=len(items)) if len(items) > 1 else items):
            yield place, function(item)


HERE: Pool = _Here()
"""This process, as the pool that it is where nobody asked for another."""


class _Workers:
    def __init__(self, ray: Any, alone: bool) -> None:
        self._ray = ray
        cores = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        self._cores = max([1, *cores]) if alone else 1
        self._ahead = AHEAD * max(1, sum(cores) // self._cores)

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item], what: str
    ) -> Iterator[tuple[int, Result]]:
        yield from track(self._done(function, items), what, total=len(items))

    def _done(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        ray, lost = self._ray, self._ray.exceptions
        options = {"num_cpus": self._cores, "max_retries": RETRIES, "scheduling_strategy": "SPREAD"}
        remote = ray.remote(_done).options(**options)
        shared = ray.put(function)  # once, with the model or front end it may hold
        places, waiting = iter(range(len(items))), dict[Any, int]()
        try:
            while True:
                for _, place in zip(range(self._ahead - len(waiting)), places, strict=False):
                    waiting[remote.remote(__version__, shared, items[place])] = place
                if not waiting:
                    return
                found = ray.wait(list(waiting), num_returns=1, timeout=PATIENCE_SECONDS)[0]
                if not found:
                    check_reachable(ray)
                for done in found:
                    place = waiting.pop(done)
                    yield place, _known(self._got(done, items[place]))
        finally:
            for promised in waiting if ray.is_initialized() else ():  # or else Ray would start another cluster
                with suppress(lost.RayError):
                    ray.cancel(promised)

    def _got(self, promised: Any, item: object) -> Any:
        lost = self._ray.exceptions
        try:
            return self._ray.get(promised)
        except lost.RayTaskError as failed:
            failed.cause.add_note(f"at {item!s:.300}")
            raise failed.cause from None
        except lost.RayError as death:
            why = str(death).partition("\n")[0][:300]
            raise ClusterError(
                f"{item!s:.300}: its workers died {RETRIES + 1} times, the last of this: {why}"
            ) from None


def _done(version: str, function: Callable[[Item], Result], item: Item) -> Result | _Failed:
    """What a worker does."""
    if version != __version__:
        return _Failed("ClusterError", f"a worker has ppspeech {__version__}, and this is {version}: install one")
    try:
        return function(item)
    except PpspeechError as error:
        return _Failed(type(error).__name__, str(error))


def _known(result: Result | _Failed) -> Result:
    if isinstance(result, _Failed):
        raise result.error()
    return result
