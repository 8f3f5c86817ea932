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
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ppspeech import __version__, errors
from ppspeech.cluster.ray_cluster import ray_cluster
from ppspeech.errors import ClusterError, PpspeechError
from ppspeech.progress import track

Item = TypeVar("Item")
Result = TypeVar("Result")

RETRIES = 4  # of an item whose worker or node died: of a fifth, the item is to blame
AHEAD = 4  # items a worker that wait in the cluster


class Pool(Protocol):
    """Workers."""

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item], what: str
    ) -> Iterator[tuple[int, Result]]:
        """The place of every item with what the function says to it, as they are done, behind a progress bar.

        An item whose worker dies, or whose result is lost with a node, is done again. An error that the function raises
        for people to act on ends the work and names the item.
        """


@contextmanager
def pool(ray: str | None = None, workers: int | None = None) -> Iterator[Pool]:
    """Workers for as long as the block lasts: this process, or with `ray` a cluster's (`local`, or HOST:PORT)."""
    if ray is None:
        yield _Here()
        return
    with ray_cluster(ray, workers) as connected:
        yield _Workers(connected)


def in_order(
    workers: Pool, function: Callable[[Item], Result], items: Sequence[Item], what: str = "Working"
) -> list[Result]:
    """What the function says to every item, in the order of the items."""
    found = dict(workers.each(function, items, what))
    return [found[place] for place in range(len(items))]


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error for people, as it travels: what an exception holds besides may not."""

    kind: str
    message: str

    def error(self) -> PpspeechError:
        kind = getattr(errors, self.kind, PpspeechError)
        takes_a_message = (
            isinstance(kind, type) and issubclass(kind, PpspeechError) and kind.__init__ is PpspeechError.__init__
        )
        return kind(self.message) if takes_a_message else PpspeechError(self.message)


class _Here:
    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item], what: str
    ) -> Iterator[tuple[int, Result]]:
        for place, item in enumerate(track(items, what, total=len(items))):
            yield place, _known(_done(__version__, function, item))


class _Workers:
    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item], what: str
    ) -> Iterator[tuple[int, Result]]:
        yield from track(self._done(function, items), what, total=len(items))

    def _done(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        ray = self._ray
        remote = ray.remote(_done).options(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")
        shared = ray.put(function)  # once, with the model or front end it may hold
        ahead = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        places, waiting = iter(range(len(items))), dict[Any, int]()
        try:
            while True:
                for place, _ in zip(places, range(ahead - len(waiting)), strict=False):
                    waiting[remote.remote(__version__, shared, items[place])] = place
                if not waiting:
                    return
                for done in ray.wait(list(waiting), num_returns=1)[0]:
                    place = waiting.pop(done)
                    yield place, _known(self._got(done, items[place]))
        finally:
            for promised in waiting:
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
        message = str(error)
        named = message if str(item) in message else f"{item!s:.300}: {message}"
        return _Failed(type(error).__name__, named)


def _known(result: Result | _Failed) -> Result:
    if isinstance(result, _Failed):
        raise result.error()
    return result
