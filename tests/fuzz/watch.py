"""What must not happen, whatever comes in: an error that is not ours, growth, a long wait, a pickle, a program run."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from ppspeech.errors import PpspeechError
from tests.fuzz.change import change
from tests.fuzz.door import Door

LONGEST_SECONDS = 20.0
"""For one input, on a machine with other things to do: a guard against loops that somebody else's number decides."""

FORBIDDEN = {"pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "os.fork", "os.remove"}
_watching = [False]


class ForbiddenError(BaseException):
    """An input has made us do what no input may. No door catches it."""


def _audit(event: str, _: Any) -> None:
    if _watching[0] and event in FORBIDDEN:
        raise ForbiddenError(event)


sys.addaudithook(_audit)  # stays for as long as the process does, and looks while it is asked to


@contextmanager
def watching() -> Iterator[None]:
    """While it lasts, what is forbidden raises."""
    _watching[0] = True
    try:
        yield
    finally:
        _watching[0] = False


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def enter(door: Door, data: bytes) -> bool:
    """Give one input: whether it was taken for valid. Anything but one of our errors goes through."""
    began = time.monotonic()
    refused: PpspeechError | None = None
    with watching():
        try:
            door.enter(data)
        except PpspeechError as error:
            refused = error
    assert refused is None or str(refused), f"{type(refused).__name__} says nothing"
    assert time.monotonic() - began < LONGEST_SECONDS, f"{len(data)} bytes took {time.monotonic() - began:.1f} s"
    return refused is None


def batter(door: Door, inputs: int, seed: int, note: Callable[[bytes], None] = lambda _: None) -> int:
    """Give a door so many changed inputs: how many were taken for valid. `note` is shown each before it goes in."""
    dice, valid = Random(seed), 0
    for _ in range(inputs):
        data = change(door, dice)
        note(data)
        valid += enter(door, data)
    return valid
