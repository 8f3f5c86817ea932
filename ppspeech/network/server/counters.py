"""What a server has done so far."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Counters:
    """Counts since the server started.

    Attributes:
        started: connections that were given a process.
        finished: sessions whose party program returned.
        failed: the others of those, by the name of the error; `Killed` for a process that died or was ended.
        refused: connections that were never given a process: the queue was full, or they stayed silent.
        bytes_sent: bytes of frames, headers included.
        bytes_received: bytes of frames, headers included.
    """

    started: int = 0
    finished: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self) | {"failed": dict(self.failed)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Counters":
        """From what `as_dict` gave."""
        return cls(**(values | {"failed": Counter(values["failed"])}))

    def __str__(self) -> str:
        failed = ", ".join(f"{count} {name}" for name, count in self.failed.most_common()) or "none"
        return (
            f"{self.started} sessions started, {self.finished} finished, failed: {failed}; {self.refused} refused; "
            f"{self.bytes_sent:,} bytes sent, {self.bytes_received:,} received"
        )
