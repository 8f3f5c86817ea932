"""Time and memory, measured alike for both sides of a comparison."""

import ctypes
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def run_seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Of one run."""
    start = clock()
    work()
    return clock() - start


def best_seconds(work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """The fastest of `repeats` runs after one to warm up: the time with the least interference.

    The clock `time.thread_time` counts the computing of this thread alone, `time.process_time` that of all.
    """
    work()
    return min(run_seconds(work, clock) for _ in range(repeats))


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads in torch and numpy, for both sides of a comparison."""
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        torch.set_num_threads(before)


def peak_megabytes() -> float:
    """The most memory this process has had resident since it was started.

    Not `ru_maxrss` on Linux: that is handed down from the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def forget_peak() -> float:
    """Measure the peak from now on, where the system can (Linux): what is resident now, or has been, in megabytes. What
    was freed, and would be used again unnoticed, is given back before.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_megabytes()


def machine() -> str:
    """How many cores there are and how busy they are, for notes."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
