"""Several processes that train one model: which of them this is, what is whose, and what is added up over all.

A rank is a process of a Trainer with several devices. Nothing else in the house knows how ranks talk to each other: a
module asks its own place for sums, and alone every question answers itself. All ranks must ask the same questions in
the same order; one that fails ends the others (`reasons`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, distributed

from ppspeech.errors import ModelError, PpspeechError

Value = TypeVar("Value")

FAILED = "ppspeech/failed"  # where ranks that fail leave their last words


@dataclass(frozen=True, slots=True)
class Ranks:
    """Which of several processes this is, numbered from 0.

    >>> alone = Ranks()
    >>> alone.first, alone.added(torch.tensor(3)), alone.gathered([1, 2])
    (True, tensor(3), [1, 2])
    >>> Ranks(1, 2).owns(torch.tensor([7, 7, 4, 9])).tolist()
    [True, True, False, False]
    """

    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.ranks:
            raise PpspeechError(f"rank must lie in 0..{self.ranks - 1}, one of {self.ranks} ranks, got {self.rank}")

    @classmethod
    def of(cls, trainer: Any) -> "Ranks":
        """The place that a Trainer gives this process; alone without one."""
        return cls() if trainer is None else cls(trainer.global_rank, trainer.world_size)

    @property
    def first(self) -> bool:
        """Whether this is the one that speaks, writes and draws noise."""
        return self.rank == 0

    def owns(self, units: Tensor) -> Tensor:
        """Which items, of these units `(items,)`, are this rank's, bool: every unit, with all its items, has one owner.

        Units are dealt in the order of their numbers, whatever these are: ranks own equally many, but for one.
        """
        number: Tensor = torch.unique(units, return_inverse=True)[1]
        return number % self.ranks == self.rank

    def added(self, value: Tensor) -> Tensor:
        """The sum over all ranks' values, which have one shape and type; whole numbers add up exactly."""
        if self.ranks == 1:
            return value
        total = value.detach().clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total

    def sums(self, statistics: Value) -> Value:
        """The same for a dataclass of tensors: statistics are values that add."""
        if self.ranks == 1:
            return statistics
        parts = {field.name: self.added(getattr(statistics, field.name)) for field in fields(cast(Any, statistics))}
        return cast(Value, replace(cast(Any, statistics), **parts))

    def gathered(self, items: Sequence[Value]) -> list[Value]:
        """All ranks' items, in the order of ranks. They are pickled: for what this run made itself."""
        if self.ranks == 1:
            return list(items)
        parts: list[list[Value]] = [[] for _ in range(self.ranks)]
        distributed.all_gather_object(parts, list(items))
        return [item for part in parts for item in part]

    def rows(self, part: Tensor) -> Tensor:
        """All ranks' rows `(n, ...)`, in the order of ranks."""
        return part if self.ranks == 1 else torch.cat([each.to(part.device) for each in self.gathered([part.cpu()])])

    def once(self, work: Callable[[], Value]) -> Value:
        """What the first rank's `work` gives; the others do not do it. If it fails, all fail."""
        if self.ranks == 1:
            return work()
        told: list[Any] = [None, None]
        if self.first:
            try:
                told[0] = work()
            except PpspeechError as failed:
                told[1] = failed
        distributed.broadcast_object_list(told, src=0)
        if told[1] is not None:
            raise told[1]
        found: Value = told[0]
        return found

    def same_(self, values: Iterable[Tensor]) -> None:
        """Set tensors to the first rank's, to the bit."""
        if self.ranks > 1:
            for value in values:
                distributed.broadcast(value.detach(), src=0)


ONE_RANK = Ranks()


@contextmanager
def reasons() -> Iterator[None]:
    """A rank that fails says why, once, and ends the others: who can only tell that nobody answers says it for it.

    Raises ModelError with the other's words in the place of a broken connection, and leaves without a word where the
    first rank has spoken.
    """
    try:
        yield
    except Exception as failed:
        if not distributed.is_initialized() or distributed.get_world_size() == 1:
            raise
        rank, ranks = distributed.get_rank(), distributed.get_world_size()
        others = _words(f"process {rank + 1} of {ranks} failed: {failed}", first=rank == 0)
        if isinstance(failed, PpspeechError) or others is None:
            raise
        if rank:
            raise SystemExit(1) from None
        raise ModelError(others) from failed


def _words(own: str, *, first: bool) -> str | None:
    """Leave one's last words where the others look, and find theirs, if any: the others', of the first rank its own."""
    mine, theirs = (FAILED, f"{FAILED}/other")[:: 1 if first else -1]
    try:
        store = distributed.distributed_c10d._get_default_store()
        store.set(mine, own)
        return store.get(theirs).decode() if store.check([theirs]) else None
    except RuntimeError:  # it is the first rank's, who has left
        return own
