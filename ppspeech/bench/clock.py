"""Timing that two sides of a comparison share."""

import time
from collections.abc import Callable


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """The fastest of `repeats` runs after one to warm up: the time with the least interference."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
