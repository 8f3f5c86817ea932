"""A client's session with one model: met once, then any number of requests, each with its own transcript and answer."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ppspeech.channel import Channel
from ppspeech.errors import ProtocolError
from ppspeech.network import StreamChannel, Transcript
from ppspeech.protocols import Kind
from ppspeech.service.requests import Ask, BudgetSpentError, NotNowError, Request, send_request

PINGS = 3
STALE_SECONDS = 10.0  # after so long a silence the server is asked whether it is still there before more is said

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """What a client gets back, and what it took.

    Utterances that ran in lock step share their cost: seconds, bytes, rounds and transcript are those of all of them.

    Attributes:
        value: the word, None where the server's garbage model won and none of its words was said; whether a claim
            holds, None where the decision is not ours; the speaker's name, None where nobody was accepted, or where
            the name is not ours.
        seconds: from the features to the answer; in a stream, from the end of the utterance.
        bytes_up: payload to the server.
        rounds: round trips, offline ones too.
        transcript: every message, as the client saw it.
        offline_seconds: of what was prepared before, which a client can do while its user speaks; 0 where all work is
            in `seconds`.
        how: the way it ran, where there are several.
        together: utterances in lock step.
    """

    value: Value
    seconds: float
    bytes_up: int
    bytes_down: int
    rounds: int
    transcript: Transcript = field(repr=False, compare=False)
    offline_seconds: float = 0.0
    how: str = ""
    together: int = 1


@dataclass(slots=True)
class Clock:
    """When a question began, was prepared, and was asked."""

    began: float = field(default_factory=time.perf_counter)
    prepared: float | None = None
    asked: float | None = None

    def is_prepared(self) -> None:
        """The offline work is done."""
        self.prepared = self.asked = time.perf_counter()

    def is_asked(self) -> None:
        """The utterance is over."""
        self.asked = time.perf_counter()

    def answers(self, values: Sequence[Value], record: Transcript, how: str = "") -> list[Answer[Value]]:
        """The answers that have just come, all at once."""
        seconds = time.perf_counter() - (self.began if self.asked is None else self.asked)
        cost = (seconds, record.bytes_up, record.bytes_down, record.rounds, record)
        offline = 0.0 if self.prepared is None else self.prepared - self.began
        return [Answer(value, *cost, offline_seconds=offline, how=how, together=len(values)) for value in values]


class ClientSession:
    """One connection over which client and server have met, as `meet` does it.

    `round_trip` is the shortest of a few pings, in seconds; `queries_left` what the server said last, if it counts;
    `told` the bits that the server has been told, under the key of this session (`Client.session`).
    """

    def __init__(
        self, channel: StreamChannel, meet: Callable[[Channel], Any], pings: int = PINGS, keep_payloads: bool = False
    ) -> None:
        self._channel = channel
        self._keep = keep_payloads
        self._ended = False
        self.told = 0
        self.queries_left: int | None = None
        try:
            self.met = meet(channel)
            self.round_trip = min((self._ping() for _ in range(pings)), default=0.0)
        except BaseException as error:
            channel.fail(error)
            raise
        self._used = time.monotonic()

    @property
    def is_alive(self) -> bool:
        """Whether the server is still there."""
        if self._ended:
            return False
        if time.monotonic() - self._used < STALE_SECONDS:
            return True
        try:
            self._ping()
        except ProtocolError:
            return False
        self._used = time.monotonic()
        return True

    @contextmanager
    def asking(self, request: Request) -> Iterator[Transcript]:
        """Ask, and be inside the protocol if the server agrees; an error ends the session, a spent budget, or one that
        cannot be counted, does not.
        """
        try:
            self.queries_left = send_request(self._channel, request)
            yield Transcript(self._channel, keep_payloads=self._keep)
        except (BudgetSpentError, NotNowError):
            raise
        except BaseException as error:
            self._ended = True
            self._channel.fail(error)
            raise
        self._used = time.monotonic()

    def close(self) -> None:
        """Say goodbye."""
        with suppress(ProtocolError):
            self._channel.send(Kind.REQUEST, Request(Ask.BYE).encode())
        self._channel.close()

    def _ping(self) -> float:
        started = time.perf_counter()
        self.queries_left = send_request(self._channel, Request(Ask.PING))
        return time.perf_counter() - started
