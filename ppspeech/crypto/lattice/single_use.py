"""A store of random things made ahead of time, each of which may be used exactly once.

Two kinds live in such stores. The evaluator's encryptions of zero hide the weights: without one, the second part of a
reply is sum(W_b a_b) with every a_b known to the key holder, who solves for W; with one used twice, the difference of
the two replies has none left. The key holder's own encryptions of zero hide its numbers: used twice, the difference of
the two ciphertexts is the difference of the messages.
"""

import os
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from ppspeech.errors import PpspeechError

Item = TypeVar("Item")


class SingleUse(Generic[Item]):
    """What `make` gives, prepared ahead of time and given out once each; safe between threads and across forks.

    A forked child starts empty: parent and child can never spend the same one.

    >>> numbers = iter(range(10))
    >>> store = SingleUse(lambda: next(numbers))
    >>> store.prepare(2)
    >>> store.take(3), len(store)
    ([0, 1, 2], 0)
    """

    def __init__(self, make: Callable[[], Item]) -> None:
        self._make = make
        self._ready: deque[Item] = deque()  # pops are atomic: no two threads get the same item
        self._owner = os.getpid()

    def __len__(self) -> int:
        return len(self._own())

    def prepare(self, count: int) -> None:
        """Make `count` more: offline work."""
        if count < 0:
            raise PpspeechError(f"cannot prepare {count} of anything")
        self._own().extend([self._make() for _ in range(count)])

    def take(self, count: int) -> list[Item]:
        """Remove and give `count`; what is not ready is made now."""
        ready, taken = self._own(), []
        for _ in range(count):
            try:
                taken.append(ready.popleft())
            except IndexError:
                taken.append(self._make())
        return taken

    def _own(self) -> deque[Item]:
        """What this very process prepared."""
        if self._owner != os.getpid():
            self._ready = deque()
            self._owner = os.getpid()
        return self._ready
