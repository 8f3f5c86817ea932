"""What a client asks of a running session, and what it is told before the protocol begins: a few public bytes each.

    client → server   REQUEST   what, in which order of computation, how many utterances, how long
    server → client   READY     whether it will be answered, and how many queries are left

After a READY that says yes, both run the protocol that was asked for; then the next request may come.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from ppspeech.channel import Channel
from ppspeech.errors import BadTypeError, PpspeechError, RangeError
from ppspeech.protocols import Kind

_REQUEST = struct.Struct(">BBHH")
_READY = struct.Struct(">BI")

LONGEST_NAME = 21  # bytes of a speaker's name: three residues of the share engine
UNLIMITED = 2**32 - 1  # stands for "no budget" in a READY
NOT_NOW = 2**32 - 2  # in a READY that says no: the server cannot count at the moment

Way = Literal["frames", "garbled", "average", "ahead"]
"""How things are computed: a step a frame on shares, a garbled circuit for links where a round trip is dear, or several
passes on shares for a best average.
"""
ORDERS: tuple[Way, ...] = get_args(Way)


class Ask(IntEnum):
    """What a request is for."""

    PING = 0
    WORDS = 1
    STREAM = 2
    BYE = 3
    VERIFY = 4
    IDENTIFY = 5
    ENROLL = 6
    PUBLISH = 7
    FETCH = 8
    SENTENCE = 9
    SEARCH = 10
    SPOT = 11
    SPOT_EXAMPLE = 12
    SPOT_PATCHES = 13
    WATCH = 14
    FINGERPRINTS = 20
    SHAPES = 21
    LANDMARKS = 22
    MAP = 23
    LOGIN = 30


MEASURED = {Ask.SENTENCE, Ask.SPOT, Ask.SPOT_EXAMPLE, Ask.SPOT_PATCHES}
"""Requests that have a size."""


class BudgetSpentError(PpspeechError):
    """The server answers no more queries of this client: a defense of the model, not a fault of the voice."""


class NotNowError(PpspeechError):
    """The server cannot count questions at the moment, and so answers none: nothing was asked, and nothing spent."""

    def __init__(self) -> None:
        super().__init__(
            "the server cannot reach where it counts questions, and answers none that it cannot count: this one was "
            "not asked; try again in a while, or another server"
        )


@dataclass(frozen=True, slots=True)
class Request:
    """One request: of so many utterances in lock step, 1 where there is nothing to count; the order is for words,
    sentences and searches of recordings.
    `steps`: what a sentence or recording is padded to, in steps of its terms, or how long a keyword is, as its terms
    write it; 0 for everything else.
    """

    what: Ask
    order: Way = "frames"
    utterances: int = 1
    steps: int = 0

    def encode(self) -> bytes:
        """As bytes."""
        return _REQUEST.pack(self.what, ORDERS.index(self.order), self.utterances, self.steps)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """From a peer's bytes. Raises BadTypeError for anything that `encode` does not write."""
        what, order, utterances, steps = _REQUEST.unpack(data)
        if what not in set(Ask) or order >= len(ORDERS) or not utterances:
            raise BadTypeError(f"a request of kind {what}, order {order}, {utterances} utterances is not known")
        if (what in MEASURED and not steps) or (steps and what not in {*MEASURED, Ask.STREAM}):
            raise BadTypeError(f"sentences and searches have a size, others none, got {what} of {steps}")
        return cls(Ask(what), ORDERS[order], utterances, steps)


def send_request(channel: Channel, request: Request) -> int | None:
    """Client: ask, and wait for the word to begin: queries left after this one, None where they are not counted.

    Raises BudgetSpentError if the server answers no more; NotNowError if it cannot count at the moment.
    """
    channel.send(Kind.REQUEST, request.encode())
    ready, left = receive_ready(channel)
    if not ready and left == NOT_NOW:
        raise NotNowError
    if not ready:
        raise BudgetSpentError(
            f"the server answers no more: {request.utterances} queries asked, {left} left of this client's budget; "
            "ask whoever runs it for more"
        )
    return left


def receive_ready(channel: Channel) -> tuple[bool, int | None]:
    """Client: yes or no, and a number, or None where there is none. Raises BadTypeError for anything else."""
    ready, number = _READY.unpack(channel.receive(Kind.READY, _READY.size))
    if ready not in (0, 1):
        raise BadTypeError(f"READY says yes (1) or no (0), got {ready}")
    return bool(ready), None if number == UNLIMITED else int(number)


def receive_request(channel: Channel) -> Request:
    """Server: the next request. Raises BadTypeError for one that is not known."""
    return Request.decode(channel.receive(Kind.REQUEST, _REQUEST.size))


def send_ready(channel: Channel, will_answer: bool, left: int | None) -> None:
    """Server: whether the request will be answered, and the queries left."""
    channel.send(Kind.READY, _READY.pack(will_answer, UNLIMITED if left is None else left))


def send_template(channel: Channel, name: str, template: NDArray[np.floating]) -> None:
    """Client: a speaker's name and template `(features,)`. Raises RangeError, nothing sent, for a long name."""
    channel.send(Kind.GALLERY, _spelled(name) + template.astype("<f4").tobytes())


def receive_template(channel: Channel, features: int) -> tuple[str, NDArray[np.floating]]:
    """Server: what `send_template` sent, checked by the gallery. Raises BadTypeError for a name that is no text."""
    data = channel.receive(Kind.GALLERY, LONGEST_NAME + 4 * features)
    from ppspeech.crypto import unpack_floats  # here: what it is compiled with takes long to import

    return _read(data[:LONGEST_NAME]), unpack_floats(data[LONGEST_NAME:])


def send_name(channel: Channel, name: str) -> None:
    """Client: the name of an encrypted gallery. Raises RangeError for a name that is too long; nothing is sent then."""
    channel.send(Kind.REQUEST, _spelled(name))


def receive_name(channel: Channel) -> str:
    """Server: what `send_name` sent. Raises BadTypeError for a name that is no text."""
    return _read(channel.receive(Kind.REQUEST, LONGEST_NAME))


def _spelled(name: str) -> bytes:
    spelled = name.encode()
    if not 0 < len(spelled) <= LONGEST_NAME:
        raise RangeError(f"a name has 1 to {LONGEST_NAME} bytes, got {len(spelled)}")
    return spelled.ljust(LONGEST_NAME, b"\0")


def _read(spelled: bytes) -> str:
    try:
        return spelled.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        raise BadTypeError("a name is no text") from None
