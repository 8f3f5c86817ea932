"""Time and memory, measured alike for both sides of a comparison."""

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """The fastest of `repeats` runs after one to warm up: the time with the least interference."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_megabytes() -> float:
    """The most memory this process has had resident since it was started.

    Not `ru_maxrss` on Linux: that is handed down from the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def machine() -> str:
    """How many cores there are and how busy they are, for notes."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
