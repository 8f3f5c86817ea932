"""A client and a server that have met, on one setup and one lattice key for the whole run of the tests."""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ppspeech.crypto.lattice import Evaluator, KeyHolder
from ppspeech.crypto.transfer.setup import Side
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols.meeting import Meeting
from tests.crypto.pairs import lasting_setup

One = TypeVar("One")
Other = TypeVar("Other")


@cache
def lasting_key() -> tuple[KeyHolder, Evaluator]:
    key = KeyHolder()
    return key, Evaluator(key.public_key, key.coins)


def ask(
    client: Callable[[Meeting], One],
    server: Callable[[Meeting], Other],
    wrap: Callable[[Meeting], Meeting] = lambda met: met,
) -> tuple[One, Other, Transcript, Transcript]:
    """Run both programs on one meeting: what they returned, and the transcripts of client and server."""
    setups, (key, evaluator) = lasting_setup(), lasting_key()
    here, there = memory_pair()
    ours, theirs = Transcript(here, keep_payloads=True), Transcript(there, keep_payloads=True)
    met_client = wrap(Meeting(ours, setups[Side.SECOND], key))
    met_server = Meeting(theirs, setups[Side.FIRST], evaluator)
    one, other = run_together(lambda _: client(met_client), lambda _: server(met_server), (here, there))
    return one, other, ours, theirs


def unit(vectors: NDArray[np.floating], axis: int = 0) -> NDArray[np.floating]:
    return vectors / np.linalg.norm(vectors, axis=axis, keepdims=True)


def received(record: Transcript, *kinds: int) -> NDArray[np.uint8]:
    """All bytes of some kinds that a party received."""
    payloads = [e.payload or b"" for e in record.entries if e.direction == "received" and e.kind in kinds]
    return np.frombuffer(b"".join(payloads), np.uint8)


def histogram(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.bincount(data, minlength=256)
