"""What an aggregator keeps while personal filters are learned: filtered samples and labels, and whose turn it is.

One thread a contributor uses the board; nothing that one of them does or omits makes another wait for longer than the
channel's own limits.
"""

import hmac
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from ppspeech.crypto import uniform_bytes
from ppspeech.errors import ProtocolError, WrongKeyError
from ppspeech.filters import Filtered

TICKET_BYTES = 32
NO_TICKET = bytes(TICKET_BYTES)

Order = Literal["sequential", "asynchronous"]
Standing = Literal["expected", "present", "away", "expelled", "done"]
"""`away`: gone, its samples stay and it may return. `expelled`: sent rubbish, its samples are removed."""


class SupersededError(ProtocolError):
    """A session whose contributor has come back in another one."""


@dataclass
class Seat:
    """One contributor on the board. `shown`: what it shows; None before it has, and after it was expelled. `session`:
    how often it has come; only the last one counts. `ticket`: what it must show to come back.
    """

    standing: Standing = "expected"
    shown: Filtered | None = None
    turns: int = 0
    session: int = 0
    ticket: bytes = field(default=NO_TICKET, repr=False)


class Board:
    """Seats, and the order of turns: `sequential` lets one move at a time, as Algorithm 3 writes it; `asynchronous`
    lets everyone move on what is there. Those who came wait `gather_seconds` for those who have not.
    """

    def __init__(self, contributors: Sequence[str], rounds: int, order: Order, gather_seconds: float) -> None:
        self.seats = {name: Seat() for name in contributors}
        self.rounds, self.order = rounds, order
        self._gathered_by = time.monotonic() + gather_seconds
        self._changed = threading.Condition()

    def enter(self, name: str | None, ticket: bytes) -> tuple[str, int, bytes]:
        """Give a contributor its seat: who it is, the number of its session, and the ticket to come back with. A name
        is one that the channel has proved; without, a ticket is believed. Raises `WrongKeyError` for others, and the
        expelled.
        """
        with self._changed:
            if name is None:
                owners = [
                    n for n, seat in self.seats.items() if seat.session and hmac.compare_digest(seat.ticket, ticket)
                ]
                name = owners[0] if owners else None
            if name is None or name not in self.seats:
                raise WrongKeyError("someone without a seat or a ticket called")
            seat = self.seats[name]
            if seat.standing == "expelled":
                raise WrongKeyError(f"{name} was expelled and does not come back")
            seat.session += 1
            seat.ticket = uniform_bytes(TICKET_BYTES)
            return name, seat.session, seat.ticket

    def show(self, name: str, session: int, shown: Filtered, *, turn: bool) -> None:
        """Put up what a contributor shows, on coming or after a turn; `SupersededError` if it has come again since."""
        with self._changed:
            seat = self._seat(name, session)
            seat.shown = shown
            seat.turns += turn
            if not turn:  # who comes late or back joins the round that the others are in
                here = [other.turns for other in self.seats.values() if other.standing == "present"]
                seat.turns = max(seat.turns, min(here, default=0))
                seat.standing = "present"
            self._changed.notify_all()

    def others(self, name: str) -> Filtered | None:
        """What all others show, in their order; None if nobody does."""
        with self._changed:
            shown = [seat.shown for other, seat in self.seats.items() if other != name and seat.shown is not None]
        if not shown:
            return None
        return Filtered(torch.cat([each.features for each in shown]), torch.cat([each.labels for each in shown]))

    def wait_for_turn(self, name: str, session: int) -> bool:
        """Wait until this contributor may move; False if it has taken all its turns."""
        with self._changed:
            self._wait(self._gathered)
            if self._seat(name, session).turns < self.rounds:
                self._wait(lambda: self.seats[name].session != session or self._may_move(name))
                self._seat(name, session)
                return True
            self.seats[name].standing = "done"
            self._changed.notify_all()
            return False

    def leave(self, name: str, session: int, *, expelled: bool) -> None:
        """Take a contributor off: its samples stay, unless what it sent was rubbish. An old session changes nothing."""
        with self._changed:
            seat = self.seats[name]
            if seat.session == session:
                seat.standing = "expelled" if expelled else "away"
                if expelled:
                    seat.shown = None
                self._changed.notify_all()

    @property
    def over(self) -> bool:
        """Whether nobody is expected or present any more."""
        with self._changed:
            return self._gathered() and all(seat.standing != "present" for seat in self.seats.values())

    def _seat(self, name: str, session: int) -> Seat:
        seat = self.seats[name]
        if seat.session != session:
            raise SupersededError(f"{name} has come back in another session")
        return seat

    def _gathered(self) -> bool:
        if time.monotonic() >= self._gathered_by:
            for seat in self.seats.values():
                if seat.standing == "expected":
                    seat.standing = "away"
        return all(seat.standing != "expected" for seat in self.seats.values())

    def _may_move(self, name: str) -> bool:
        if self.order == "asynchronous":
            return True
        present = [other for other, seat in self.seats.items() if seat.standing == "present"]
        return name == min(present, key=lambda other: self.seats[other].turns)  # the first in order among equals

    def _wait(self, until: Callable[[], bool]) -> None:
        while not until():
            left = self._gathered_by - time.monotonic()
            self._changed.wait(left if left > 0 else 1.0)
