"""How many threads to train with: as many as have a core to themselves."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

import torch

LOAD = Path("/proc/loadavg")
LOOKS, SECONDS = 20, 0.1


def idle_cores() -> int:
    """Cores that nobody else computes on now, at least one; it takes a tenth of a second to look.

    A thread that has to wait for a core makes all others wait for it, at every step of a small model: beside busy
    processes two threads train several times slower than one.
    """
    cores, running = len(os.sched_getaffinity(0)), []
    for _ in range(LOOKS):
        try:
            running.append(int(LOAD.read_text().split()[3].partition("/")[0]))
        except (OSError, IndexError, ValueError):  # not a Linux: all are taken to be ours
            return cores
        time.sleep(SECONDS / LOOKS)
    others = mean(running) - 1  # one of those that run is this process, looking
    return max(1, min(cores, round(cores - others)))


@contextmanager
def idle_cores_alone() -> Iterator[None]:
    """Compute on idle cores alone, unless OMP_NUM_THREADS says on how many."""
    before = torch.get_num_threads()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(before, idle_cores()))
    try:
        yield
    finally:
        torch.set_num_threads(before)
