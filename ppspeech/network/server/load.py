"""How much a server takes on, and what it has done so far."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

FEW = 4  # places of a kind that there always are
MANY = 1000  # neighborhoods after which those are forgotten of whom there is nothing to remember


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a server takes on at a time.

    Attributes:
        sessions: processes at a time.
        handshakes: of these, how many may be at TLS and HELLO, or have said nothing since, so that clients who stall
            there cannot take all the places; a quarter by default, and at least 4. When all are taken, one who has
            stalled gives way to one who waits.
        per_address: processes at a time for one IPv4 address or IPv6 network of 64 bits; a quarter by default, and at
            least 4. Who has that many waits while others go ahead, as does who has begun often and said nothing.
        waiting: connections that wait for a process, silent ones included. When all these places are taken, whoever has
            most of them gives one up.
        waiting_seconds: how long a connection that has something to say may wait for a process.
        opening_seconds: how long after HELLO the first message may take.
        session_bytes: memory one session may take beyond what the server held when the session began. All sessions
            together may take `sessions` times as much: a machine that must stand that needs that much.
        grace_seconds: what running sessions get to finish when the server is asked to stop.
    """

    sessions: int = 256
    handshakes: int | None = None
    per_address: int | None = None
    waiting: int = 512
    waiting_seconds: float = 30.0
    opening_seconds: float = 10.0
    session_bytes: int = 2**30
    grace_seconds: float = 10.0

    def __post_init__(self) -> None:
        for name in ("sessions", "handshakes", "per_address", "waiting", "session_bytes"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} must be >= 1, got {value}")
        for name in ("waiting_seconds", "opening_seconds", "grace_seconds"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be >= 0, got {getattr(self, name)}")

    @property
    def stalling(self) -> int:
        """Processes whose clients may not have begun."""
        return self.handshakes or max(FEW, self.sessions // 4)

    @property
    def kept_free(self) -> int:
        """Of these, those that none may have who has stalled often of late."""
        return self.stalling // 4

    @property
    def stalling_for_one(self) -> int:
        """Of these, those of one address."""
        return max(1, self.stalling // 2)

    @property
    def for_one(self) -> int:
        """Processes one address may have."""
        return self.per_address or max(FEW, self.sessions // 4)


@dataclass
class Tries:
    """How often a neighborhood may begin: `burst` times at once, then `rate` times a second.

    Whoever goes on to say something gets its try back, so that this slows down those alone who begin and begin again:
    each costs a process, which is more than it costs them.
    """

    burst: int
    rate: float = 2.0
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)  # how many, and when that was so

    def left(self, who: str, now: float) -> float:
        """How many there are now."""
        tries, since = self._left.get(who, (self.burst, now))
        return min(float(self.burst), tries + self.rate * (now - since))

    def are_many(self, who: str, now: float) -> bool:
        """Whether at least half are left: who it is either is new here or has made good use of most."""
        return 2 * self.left(who, now) >= self.burst

    def take(self, who: str, now: float) -> None:
        """Use one up. Who has all of theirs is forgotten, so that what is kept is no longer than who came lately."""
        self._left[who] = self.left(who, now) - 1, now
        if len(self._left) > MANY:
            self._left = {each: held for each, held in self._left.items() if self.left(each, now) < self.burst}

    def give_back(self, who: str, now: float) -> None:
        """It was well used."""
        self._left[who] = self.left(who, now) + 1, now


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
