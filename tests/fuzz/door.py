"""What a door is, and a peer that says what it likes."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from ppspeech.errors import BadLengthError, FrameTooLargeError, PeerGoneError, PpspeechError

Form = Literal["bytes", "json", "yaml", "csv"]


@dataclass(frozen=True)
class Door:
    """One way in.

    Attributes:
        enter: takes what came. It raises one of our errors, or is content.
        seeds: what may come; changed in one place, it gets far.
        form: how it is spelled, so that a part can be changed and the rest still be read.
    """

    enter: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    form: Form = "bytes"


DOORS: dict[str, Callable[[], Door]] = {}
"""How each door is made, by its name; made once, since some need keys."""
COSTS: dict[str, int] = {}
"""How much longer one takes than a header does, roughly: of a million inputs, each gets its part."""


def door(cost: int = 1) -> Callable[[Callable[[], Door]], Callable[[], Door]]:
    """Enter a door under the name of the function that makes it."""

    def enter(make: Callable[[], Door]) -> Callable[[], Door]:
        def made() -> Door:
            door = make()
            for seed in door.seeds:  # compiled code is loaded from its cache, which is a pickle of ours
                with suppress(PpspeechError):
                    door.enter(seed)
            return door

        assert make.__name__ not in DOORS
        DOORS[make.__name__] = cache(made)
        COSTS[make.__name__] = cost
        return DOORS[make.__name__]

    return enter


def new_folder() -> Path:
    """A folder for a door, which lasts as long as the process."""
    folder = tempfile.mkdtemp(prefix="fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


class Says:
    """A channel to a peer that says these messages, of whatever kind is asked for, and is then gone."""

    def __init__(self, *messages: bytes) -> None:
        self.messages = list(messages)

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        assert len(payload) <= 2**26

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        if not self.messages:
            raise PeerGoneError("it has said all it had to say")
        message = self.messages.pop(0)
        allowed = size if at_most is None else at_most
        assert allowed is not None
        assert allowed <= 2**26
        if len(message) > allowed:
            raise FrameTooLargeError(f"{len(message)} bytes where at most {allowed} may come")
        if size is not None and len(message) != size:
            raise BadLengthError(f"{len(message)} bytes where {size} must come")
        return message


def several(*messages: bytes) -> bytes:
    """Messages as one input."""
    return b"".join(len(each).to_bytes(4, "big") + each for each in messages)


def apart(data: bytes, least: int = 0) -> list[bytes]:
    """Any input as messages; where their lengths make no sense, the last has what is left."""
    messages: list[bytes] = []
    while len(data) >= 4:
        length = int.from_bytes(data[:4], "big")
        messages.append(data[4 : 4 + length])
        data = data[4 + length :]
    return messages + [b""] * (least - len(messages))
