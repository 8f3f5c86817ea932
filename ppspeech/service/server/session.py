"""One client's session with what is served: meet, then answer requests until it leaves."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ppspeech.channel import Channel
from ppspeech.errors import BadSequenceError, BadTypeError, RangeError
from ppspeech.network import Transcript
from ppspeech.service.offer import Offer
from ppspeech.service.requests import NOT_NOW, ORDERS, Ask, Request, Way, receive_request, send_ready
from ppspeech.service.server.book import Tally, Visitor
from ppspeech.service.server.stores import QueryBudget
from ppspeech.service.store import StoreLostError

MOST_PINGS = 16  # before a request; a client measures the way with three


@dataclass(frozen=True, slots=True)
class Handler:
    """How one kind of request is answered: numbers of utterances that may be asked together, their orders, and their
    lengths in steps, where they have any.

    What `is_query` tells something about a model and its speakers, and is paid for; enrolling and keeping tell nothing.
    """

    answer: Callable[[Channel, Request], None]
    at_once: tuple[int, ...] = (1,)
    orders: tuple[Way, ...] = ORDERS
    steps: Container[int] = (0,)
    is_query: bool = True


class Served(Protocol):
    """One model, ready for clients; made before the server forks, and shared by all sessions."""

    @property
    def offer(self) -> Offer[Any]:
        """What clients are told."""
        ...

    @property
    def usual_budget(self) -> int:
        """Queries of one client that are answered, unless whoever serves says otherwise."""
        ...

    def meet(self, channel: Channel, visitor: Visitor) -> Mapping[Ask, Handler]:
        """Meet one client; the requests that will be answered, and how."""
        ...


@runtime_checkable
class Refreshed(Protocol):
    """What is served that grows while the server runs."""

    def refresh(self) -> None:
        """Take in what is new, in the server's process, so that sessions inherit it."""


def run_session(served: Served, channel: Channel, tally: Tally, budget: QueryBudget) -> None:
    """Meet one client and answer its requests until it leaves; each query is paid for before it is answered.

    One that cannot be counted, since the store is lost, is not answered, and the client is told so.

    Raises ProtocolError for a client that does not keep to the protocol; this session ends, and no other.
    """
    visitor, model = Visitor.of(channel), served.offer.fingerprint
    record = Transcript(channel)
    with tally.timing("meeting"):
        handlers = served.meet(record, visitor)
    tally.rounds += record.rounds
    pings, is_known = 0, False
    left: int | None = None
    while (request := receive_request(channel)).what != Ask.BYE:
        pings = pings + 1 if request.what == Ask.PING else 0
        if pings > MOST_PINGS:
            raise BadSequenceError(f"{pings} pings and no request: a session is not kept open by them")
        handler = None if pings else _handler(handlers, request)
        spent = request.utterances if handler is not None and handler.is_query else 0
        try:
            if handler is not None:
                will_answer, left = budget.spend(model, visitor.client, spent)
            elif not is_known:  # once: pings measure the way to us, and not ours to the store
                left = budget.left(model, visitor.client)
            is_known = True
        except StoreLostError:
            tally.unable += request.utterances
            send_ready(channel, False, NOT_NOW)
            continue
        send_ready(channel, handler is None or will_answer, left)
        if handler is None:
            continue
        if not will_answer:
            tally.refused += request.utterances
            continue
        record = Transcript(channel)
        with tally.timing("answering"):
            handler.answer(record, request)
        tally.rounds += record.rounds
        tally.queries += spent


def _handler(handlers: Mapping[Ask, Handler], request: Request) -> Handler:
    handler = handlers.get(request.what)
    if handler is None or request.order not in handler.orders:
        raise BadTypeError(f"a request to {request.what.name} in order {request.order} is not served here")
    if request.utterances not in handler.at_once:
        raise RangeError(f"{handler.at_once} utterances are answered at once, got {request.utterances}")
    if request.steps not in handler.steps:
        raise RangeError(f"utterances have {handler.steps} steps here, got {request.steps}")
    return handler
