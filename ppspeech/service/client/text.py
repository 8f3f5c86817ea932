"""The client of a text: where its pattern is. The pattern stays here."""

from typing import Any

from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import RangeError, WrongSessionError
from ppspeech.protocols.text import Sought, Tells, Way, prepare, read_found, search, search_costs
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Answer, Clock
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.requests import Ask, Request
from ppspeech.service.tasks.text import Texts, send_wanted

SLOW = 0.005
"""Seconds of a round trip from which an automaton is garbled, where that is not too much: one round instead of one a
symbol.
"""


@QUESTIONS.register("text")
class AskText:
    """What may be asked of a text."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: Texts = client.offer.terms

    def search(self, pattern: str, tells: Tells | None = None, way: Way | None = None) -> Answer[Any]:
        """By default all that the server tells, in the way that is sooner over this link."""
        terms = self._terms
        wanted = tells or terms.tells
        if wanted not in terms.offered:
            raise RangeError(f"{self._client.offer.name} tells {', '.join(terms.offered)}, not {wanted}")
        sought = Sought.of(pattern, terms.letters, wanted, way)
        session = self._client.session(lambda channel: PairSetup.agree(channel, Side.FIRST))
        chosen = way or self._way(sought, session.round_trip)
        shape = terms.shape(chosen, sought.size, wanted)
        size = shape.garbled_bytes if chosen == "garbled" else sum(cost.total_bytes for cost in search_costs(shape))
        if size > MOST_BYTES:
            raise WrongSessionError(
                f"this search would exchange {size:,} bytes: ask for a shorter pattern, or a series of classes"
            )
        setup: PairSetup = session.met
        with session.asking(Request(Ask.SEARCH)) as record:
            send_wanted(record, shape)
            with setup.session(record):
                clock = Clock()
                engine = prepare(record, setup, shape)
                clock.is_prepared()
                told = search(record, setup, shape, sought, engine)
                assert told is not None
                (answer,) = clock.answers([read_found(shape, told)], record, chosen)
        return answer

    def _way(self, sought: Sought, round_trip: float) -> Way:
        if sought.way != "automaton" or round_trip < SLOW:
            return sought.way
        cells = self._terms.lines * self._terms.width * sought.size << self._terms.letters.bits
        return "garbled" if 16 * cells <= MOST_BYTES // 4 else "automaton"
