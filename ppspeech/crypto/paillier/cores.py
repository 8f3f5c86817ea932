"""Long-number work on several cores.

A product of two long numbers takes microseconds; threads would hand the interpreter lock over at every one of them.
Forked processes share nothing, inherit tables and keys without these being written
anywhere, and send back plain numbers of fixed length; nothing is pickled.
"""

import multiprocessing
from collections.abc import Callable, Sequence
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import TypeVar

from gmpy2 import mpz

from ppspeech.errors import PpspeechError

Item = TypeVar("Item")


def map_numbers(
    work: Callable[[Sequence[Item]], list[mpz]], items: Sequence[Item], *, size: int, workers: int = 1
) -> list[mpz]:
    """Apply `work` to contiguous parts of `items`, one process a part, and join the results in order. `work`: gives
    non-negative numbers; runs in this process if `workers` is 1. `size`: bytes that hold any one result. Raises
    PpspeechError if a process ended without a result, or the platform cannot fork.
    """
    if workers < 1:
        raise PpspeechError(f"workers must be at least 1, got {workers}")
    parts = min(workers, len(items))
    if parts <= 1:
        return work(items)
    if "fork" not in multiprocessing.get_all_start_methods():
        raise PpspeechError("this platform cannot fork processes: use workers=1")
    context = multiprocessing.get_context("fork")
    bounds = [len(items) * i // parts for i in range(parts + 1)]

    def child(pipe: Connection, part: Sequence[Item]) -> None:
        pipe.send_bytes(b"".join(number.to_bytes(size, "big") for number in work(part)))
        pipe.close()

    running = []
    for start, stop in pairwise(bounds[1:]):
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=child, args=(sending, items[start:stop]), daemon=True)
        process.start()
        sending.close()
        running.append((process, receiving))
    try:
        results = work(items[: bounds[1]])
        for process, receiving in running:
            try:
                data = receiving.recv_bytes()
            except EOFError:
                raise PpspeechError("a worker process ended without a result; see its error above") from None
            results += [mpz.from_bytes(data[i : i + size], "big") for i in range(0, len(data), size)]
            process.join()
    finally:
        for process, receiving in running:
            receiving.close()
            if process.is_alive():
                process.terminate()
            process.join()
    return results
