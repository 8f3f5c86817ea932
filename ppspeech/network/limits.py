"""How long and how large anything in a session may be."""

from dataclasses import dataclass, fields

LONGEST_SECONDS = 10**6  # about eleven days: the system's clocks for waiting end soon after


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds one party sets for its own protection; the peer is not told them.

    Attributes:
        handshake_seconds: from the connection to the end of TLS and HELLO.
        message_seconds: for one whole message, so that a peer who sends a byte now and then is not waited for.
        session_seconds: for the session from HELLO to the last message.
        message_bytes: the largest payload of one message. It also bounds what is kept of a peer's bytes that arrive
            while we are still sending ours.
    """

    handshake_seconds: float = 10.0
    message_seconds: float = 60.0
    session_seconds: float = 3600.0
    message_bytes: int = 64 * 2**20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{field.name} must be > 0, got {value}")
            if field.name.endswith("_seconds") and value > LONGEST_SECONDS:
                raise ValueError(f"{field.name} must be at most {LONGEST_SECONDS}, got {value}")
        if self.message_bytes >= 2**32:
            raise ValueError(f"message_bytes must fit the frame's 32-bit length, got {self.message_bytes}")
