"""Encryptions of zero made ahead of time, each handed out once."""

import os
import threading
from collections import deque
from collections.abc import Callable

from gmpy2 import mpz

from ppspeech.crypto.paillier.cores import map_numbers


class RandomizerPool:
    """A store of randomizers: what makes an encryption slow, prepared while nobody waits.

    `take` removes what it gives, under a lock, so no randomizer serves twice: two ciphertexts with the same one would
    reveal the difference of their plaintexts. When the store runs dry, fresh ones are made on the spot, slower but
    the same. A forked process finds the store empty, since its parent still holds the same numbers.

    Args:
        make: gives so many fresh randomizers.
        size: bytes that hold one.
    """

    def __init__(self, make: Callable[[int], list[mpz]], size: int) -> None:
        self._make = make
        self._size = size
        self._store: deque[mpz] = deque()
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __len__(self) -> int:
        return len(self._store) if self._process == os.getpid() else 0

    def __repr__(self) -> str:
        return f"RandomizerPool({len(self)} ready)"

    def prepare(self, count: int, *, workers: int = 1) -> None:
        """Make `count` more, ahead of time."""
        made = self._fresh(count, workers)
        self._leave_parent()
        with self._lock:
            self._store.extend(made)

    def take(self, count: int, *, workers: int = 1) -> list[mpz]:
        """`count` randomizers that nobody else got or will get."""
        self._leave_parent()
        with self._lock:
            taken = [self._store.popleft() for _ in range(min(count, len(self._store)))]
        return taken + self._fresh(count - len(taken), workers)

    def _fresh(self, count: int, workers: int) -> list[mpz]:
        return map_numbers(lambda part: self._make(len(part)), range(count), size=self._size, workers=workers)

    def _leave_parent(self) -> None:
        if self._process != os.getpid():
            # The lock too may be a copy, of one that another thread of the parent held and nobody here can release.
            self._lock, self._store, self._process = threading.Lock(), deque(), os.getpid()
