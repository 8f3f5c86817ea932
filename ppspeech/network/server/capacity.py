"""How much a server takes on at a time."""

from dataclasses import dataclass


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
