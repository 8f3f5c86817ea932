"""How much a server takes on, and what it has done so far."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a server takes on at a time.

    Attributes:
        sessions: processes at a time.
        handshakes: of these, how many may still be at TLS and HELLO, so that clients who stall there cannot take all
            the places.
        waiting: connections that wait for a process, silent ones included.
        waiting_seconds: how long a connection that has something to say may wait for a process.
        session_bytes: memory one session may take beyond what the server held when the session began. All sessions
            together may take `sessions` times as much: a machine that must stand that needs that much.
        grace_seconds: what running sessions get to finish when the server is asked to stop.
    """

    sessions: int = 256
    handshakes: int = 64
    waiting: int = 512
    waiting_seconds: float = 30.0
    session_bytes: int = 2**30
    grace_seconds: float = 10.0

    def __post_init__(self) -> None:
        for name in ("sessions", "handshakes", "waiting", "session_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)}")
        for name in ("waiting_seconds", "grace_seconds"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be >= 0, got {getattr(self, name)}")


@dataclass
class Counters:
    """Counts since the server started.

    `started`: connections that were given a process. `finished`: sessions whose party program returned. `failed`: the
    others of those, by the name of the error; `Killed` for a process that died or was ended. `refused`: connections
    that were never given a process: the queue was full, or they stayed silent. Bytes are those of frames, headers
    included.
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
