"""A store of random things made ahead of time, each of which may be used exactly once.

Such stores hold encryptions of zero. The lattice evaluator's hide the weights: without one, the second part of a reply
is sum(W_b a_b) with every a_b known to the key holder, who solves for W; with one used twice, the difference of the two
replies has none left. A key holder's own, and Paillier's, hide its numbers: used twice, the difference of the two
ciphertexts is the difference of the messages.
"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from ppspeech.errors import PpspeechError

Item = TypeVar("Item")


class SingleUse(Generic[Item]):
    """What `make(count)` gives, prepared ahead of time and given out once each; safe between threads and across forks.

    A forked child starts empty: parent and child can never spend the same one.

    >>> numbers = iter(range(10))
    >>> store = SingleUse(lambda count: [next(numbers) for _ in range(count)])
    >>> store.prepare(2)
    >>> store.take(3), len(store)
    ([0, 1, 2], 0)
    """

    def __init__(self, make: Callable[[int], list[Item]]) -> None:
        self._make = make
        self._store: deque[Item] = deque()  # pops are atomic: no two threads get the same item
        self._owner = os.getpid()

    def __len__(self) -> int:
        return len(self._own())

    def prepare(self, count: int, *, workers: int = 1) -> None:
        """Make `count` more: offline work."""
        if count < 0:
            raise PpspeechError(f"cannot prepare {count} of anything")
        self._own().extend(self._fresh(count, workers))

    def take(self, count: int, *, workers: int = 1) -> list[Item]:
        """Remove and give `count`; what is not ready is made now."""
        store = self._own()
        taken: list[Item] = []
        with suppress(IndexError):
            while len(taken) < count:
                taken.append(store.popleft())
        return taken + self._fresh(count - len(taken), workers)

    def _fresh(self, count: int, workers: int) -> list[Item]:  # noqa: ARG002 - for kinds that several cores can make
        return self._make(count) if count else []

    def _own(self) -> deque[Item]:
        """What this very process prepared."""
        if self._owner != os.getpid():
            self._store, self._owner = deque(), os.getpid()
        return self._store
