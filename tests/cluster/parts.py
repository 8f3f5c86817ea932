"""What workers and shards of the tests do: they import it by name."""

import os
import signal
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppspeech.errors import AudioError


class Part:
    """A shard that multiplies."""

    def __init__(self, factor: int) -> None:
        self.factor = factor
        self.kept = np.zeros(1, np.int64)

    def times(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return values * self.factor

    def put(self, values: NDArray[np.int64]) -> None:
        if values.sum() < 0:
            raise AudioError("less than nothing")
        self.kept = values

    def kept_times(self) -> NDArray[np.int64]:
        return self.kept * self.factor

    def process(self) -> NDArray[np.int64]:
        return np.array(os.getpid())

    def node(self) -> bytes:
        import ray

        return ray.get_runtime_context().get_node_id().encode()

    def hangs_on(self, values: NDArray[np.int64], victim: bytes, fifo: bytes) -> NDArray[np.int64]:
        """On the victim's node, tell that we were asked, and never answer."""
        if self.node() == victim:
            Path(os.fsdecode(fifo)).write_bytes(b"asked")
            time.sleep(600)
        return self.times(values)

    @staticmethod
    def whose(run: int) -> int:
        return os.getpid()

    def refuse(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        raise AudioError("too quiet")

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def square(item: int) -> int:
    return item * item


def picky(item: str) -> str:
    if item == "bad.wav":
        raise AudioError(f"{item}: no sound")
    return item


def dies_once(marks: Path, item: int) -> int:
    """The first worker that gets an item dies of it; the mark stays."""
    mark = marks / str(item)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def always_dies(item: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item
