"""A server that does what an attack wants, over TLS, for a client as it should be."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.evidence.attacks.target import Victim
from ppspeech.network import Address, Listener, StreamChannel, Transcript, own_tls
from ppspeech.network import fingerprint as fingerprint_of
from ppspeech.protocols import Kind, Meeting, meet_as_server
from ppspeech.service import DESCRIBE, Ask, Door, Request, describe, open_door, receive_request, send_ready

PATIENCE = 60.0  # seconds that it waits for a client

Answering = Callable[[Meeting, Request], None]
"""How one request is answered, inside the meeting's session."""
Seeing = Callable[[list[tuple[str, int, int]], str], None]
"""What is done with all that a server saw of a session: direction, kind and size of each message, and how it ended."""


@contextmanager
def pretending(victim: Victim, answer: Answering, seen: Seeing) -> Iterator[Door]:
    """A server that offers what `victim` does and answers as it likes."""
    over = threading.Event()
    with own_tls(None, None) as tls:
        assert tls is not None
        with Listener(Address("127.0.0.1", 0), tls=tls) as listener:
            thread = threading.Thread(target=_serve, args=(listener, victim, answer, seen, over), daemon=True)
            thread.start()
            try:
                yield open_door(str(listener.address), pin=fingerprint_of(tls.certificate))
            finally:
                over.set()
                with suppress(PpspeechError):  # wakes it
                    open_door(str(listener.address), pin=fingerprint_of(tls.certificate)).hear(DESCRIBE)
                thread.join(PATIENCE)


def _serve(
    listener: Listener,
    victim: Victim,
    answer: Answering,
    seen: Seeing,
    over: threading.Event,
) -> None:
    """Describe, then one session, and again: that is how a client comes."""
    offer = victim.offer
    with suppress(ProtocolError):
        while True:
            with listener.wait(DESCRIBE, {}, PATIENCE) as channel:
                channel.send(Kind.READY, describe([offer]))
            if over.is_set():
                return
            channel = listener.wait(offer.name, offer.agreement, PATIENCE)
            record = Transcript(channel)
            ended = "left"
            try:
                _answer_all(record, channel, answer)
            except PpspeechError as error:
                ended = type(error).__name__
            channel.close()
            seen(record.shape(), ended)


def _answer_all(record: Transcript, channel: StreamChannel, answer: Answering) -> None:
    met = meet_as_server(record)
    while (request := receive_request(record)).what != Ask.BYE:
        send_ready(record, True, None)
        if request.what != Ask.PING:
            meeting = replace(met, channel=record)
            with meeting.session():
                answer(meeting, request)
    channel.close()
