"""A client's session with one model: met once, then any number of requests, each with its own transcript."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

from ppspeech.crypto.lattice import FrameSender
from ppspeech.errors import ProtocolError
from ppspeech.network import StreamChannel, Transcript
from ppspeech.protocols import Kind, MetClient, meet_as_client
from ppspeech.protocols.scores import WordShape
from ppspeech.protocols.words import take_models
from ppspeech.service.requests import Ask, BudgetSpentError, Request, send_request

PINGS = 3
STALE_SECONDS = 10.0
"""After so long a silence the server is asked whether it is still there before more is said."""


class ClientSession:
    """One connection over which client and server have met.

    Args:
        channel: the session, begun.
        keep_payloads: keep the bytes of every message in the transcripts.

    Attributes:
        round_trip: the shortest of a few pings, in seconds.
        queries_left: as the server said last; None where it does not count.
    """

    def __init__(self, channel: StreamChannel, keep_payloads: bool = False) -> None:
        self._channel = channel
        self._keep = keep_payloads
        self._model: FrameSender | None = None
        self._ended = False
        self.queries_left: int | None = None
        try:
            self._met = meet_as_client(channel)
            self.round_trip = min(self._ping() for _ in range(PINGS))
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
    def asking(self, request: Request, *, with_transfers: bool = True) -> Iterator[tuple[MetClient, Transcript]]:
        """Ask, and be inside the protocol if the server agrees; an error there ends the session.

        Args:
            request: what is asked.
            with_transfers: take the meeting's transfers up; False for programs that do so themselves.

        Raises:
            BudgetSpentError: if the server answers no more; the session goes on.
        """
        try:
            self.queries_left = send_request(self._channel, request)
            record = Transcript(self._channel, keep_payloads=self._keep)
            met = replace(self._met, channel=record)
            with met.session() if with_transfers else nullcontext():
                yield met, record
        except BudgetSpentError:
            raise
        except BaseException as error:
            self._ended = True
            self._channel.fail(error)
            raise
        self._used = time.monotonic()

    def streaming_model(self, met: MetClient, shape: WordShape) -> FrameSender:
        """The server's encrypted models, which it sends with the first stream of a session."""
        if self._model is None:
            self._model = take_models(met, shape)
        return self._model

    def close(self) -> None:
        """Say goodbye."""
        with suppress(ProtocolError):
            self._channel.send(Kind.REQUEST, Request(Ask.BYE).encode())
        self._channel.close()

    def _ping(self) -> float:
        started = time.perf_counter()
        self.queries_left = send_request(self._channel, Request(Ask.PING))
        return time.perf_counter() - started
