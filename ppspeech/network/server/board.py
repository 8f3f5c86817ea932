"""What a server's process shows of itself to others that watch it: a few whole numbers in memory that they share."""

import mmap
import struct
import time
from collections.abc import Mapping

REASONS = ("silent", "full", "gone", "draining", "no_process")
"""Why a connection was never given a process: it said nothing in time; there were too many, or it waited too long; it
left; the server was ending; the system gave no process.
"""
FIELDS = ("beat_ms", "ready", "draining", "running", "waiting", "started", "killed", *REASONS)

_NUMBER = struct.Struct("=q")


class Board:
    """Numbers that one process writes and others, forked from it, read. Each is written whole.

    `ready` is 1 from when clients are served until the server is asked to stop, then `draining` is 1 until it ends;
    `beat_ms` is when its loop last went around.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _NUMBER.size * len(FIELDS))

    def put(self, **values: int) -> None:
        """Write some of the numbers."""
        for name, value in values.items():
            _NUMBER.pack_into(self._memory, _NUMBER.size * FIELDS.index(name), value)

    def add(self, name: str) -> None:
        """Count one more."""
        self.put(**{name: self[name] + 1})

    def beat(self) -> None:
        """Show that the loop goes around."""
        self.put(beat_ms=int(time.monotonic() * 1000))

    def __getitem__(self, name: str) -> int:
        return int(_NUMBER.unpack_from(self._memory, _NUMBER.size * FIELDS.index(name))[0])

    @property
    def silent_seconds(self) -> float:
        """Since the loop last went around."""
        return time.monotonic() - self["beat_ms"] / 1000

    @property
    def refused(self) -> Mapping[str, int]:
        """Connections without a process, by reason."""
        return {reason: self[reason] for reason in REASONS}
