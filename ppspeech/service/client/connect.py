"""The client people call: `with connect("host:port", pin=…) as client: client.recognize(waveform, rate).word`.

The voice is turned into features here, encrypted here, and the word is opened here. The server sees ciphertexts,
blinded transfers and uniformly masked numbers, all of lengths that depend on public sizes alone.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ppspeech.arrays import Reals
from ppspeech.audio import Sound, waits_for_the_end
from ppspeech.errors import PpspeechError, WrongSessionError
from ppspeech.network import Address, ClientTls, Limits, StreamChannel
from ppspeech.network import connect as connect_channel
from ppspeech.protocols import Kind
from ppspeech.protocols.words import Order, recognize
from ppspeech.service.client.answer import Answer, Clock
from ppspeech.service.client.front_end import FrontEnd
from ppspeech.service.client.listening import BufferedListening, Listening, LiveListening
from ppspeech.service.client.session import ClientSession
from ppspeech.service.description import LONGEST, WordOffer, read_description
from ppspeech.service.estimate import choose_order, estimate, planned_job
from ppspeech.service.names import DESCRIBE, HEALTH
from ppspeech.service.requests import Ask, Request
from ppspeech.service.speaker_offer import SpeakerOffer

MOST_BYTES = 256 * 2**20
"""What a client is ready to exchange for one utterance: an offer that asks for more is refused."""


@dataclass(frozen=True, slots=True)
class Door:
    """How to reach a server, and whom to trust.

    Attributes:
        address: where it listens.
        tls: whom to trust; None for plain TCP on a loopback address, which `insecure` must ask for.
        insecure: plain TCP is meant.
        limits: how long and large anything may be.
    """

    address: Address
    tls: ClientTls | None
    insecure: bool = False
    limits: Limits | None = None

    def open(self, service: str, params: dict[str, Any]) -> StreamChannel:
        """Begin a session of a service."""
        return connect_channel(self.address, service, params, tls=self.tls, insecure=self.insecure, limits=self.limits)

    def hear(self, service: str) -> bytes:
        """What a service that only speaks has to say."""
        with self.open(service, {}) as channel:
            return channel.receive(Kind.READY, at_most=LONGEST)


def open_door(
    address: str,
    *,
    pin: str | None = None,
    ca: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    insecure: bool = False,
    limits: Limits | None = None,
) -> Door:
    """A door from what people write.

    Args:
        address: `host:port`.
        pin: SHA-256 fingerprint of the server's certificate, which `ppspeech serve` prints.
        ca: certificates of authorities instead, PEM.
        certificate: our own, PEM, where the server asks for one.
        key: its private key.
        insecure: plain TCP, on a loopback address, to try out.
        limits: how long and large anything may be.

    Raises:
        PpspeechError: for what does not fit together.
    """
    try:
        paths = [None if path is None else Path(path) for path in (ca, certificate, key)]
        tls = None if insecure else ClientTls(pin, *paths)
        where = Address.parse(address)
        where.check_security(tls is not None, insecure)
    except ValueError as error:
        raise PpspeechError(str(error)) from None
    return Door(where, tls, insecure, limits)


def connect(
    address: str,
    *,
    pin: str | None = None,
    ca: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
    insecure: bool = False,
    model: str | None = None,
    fingerprint: str | None = None,
    limits: Limits | None = None,
    keep_payloads: bool = False,
) -> "Client":
    """Ask a server what it offers, and be ready to use one of its models.

    Args:
        address: `host:port`.
        pin: SHA-256 fingerprint of the server's certificate, which `ppspeech serve` prints.
        ca: certificates of authorities instead, PEM.
        certificate: our own, PEM, where the server asks for one.
        key: its private key.
        insecure: plain TCP, on a loopback address, to try out.
        model: which of its models; may be left out where it has one.
        fingerprint: the bundle's, where only that very model will do.
        limits: how long and large anything may be.
        keep_payloads: keep the bytes of every message in the answers' transcripts.

    Raises:
        ProtocolError: if there is nobody, or not the one we trust, or its description cannot be used.
        PpspeechError: if it does not offer what is asked for.
    """
    door = open_door(address, pin=pin, ca=ca, certificate=certificate, key=key, insecure=insecure, limits=limits)
    return connect_through(door, model=model, fingerprint=fingerprint, keep_payloads=keep_payloads)


def connect_through(
    door: Door, *, model: str | None = None, fingerprint: str | None = None, keep_payloads: bool = False
) -> "Client":
    """As `connect`, through a door."""
    words = read_description(door.hear(DESCRIBE)).words
    if not words:
        raise PpspeechError("the server recognizes no words: it serves speakers only")
    offer = choose_offer(words, model)
    if fingerprint is not None and offer.fingerprint != fingerprint:
        raise WrongSessionError(f"{offer.name} is the bundle {offer.fingerprint}, not the one asked for")
    job = planned_job(offer.shape)
    size = job.plan.total_bytes
    if size <= MOST_BYTES:  # otherwise the shares would be too many to record what they cost
        cost = estimate(job)
        size = cost.bytes_up + cost.bytes_down
    if size > MOST_BYTES:
        raise WrongSessionError(f"{offer.name} would exchange {size:,} bytes an utterance")
    return Client(door, offer, keep_payloads)


def server_health(door: Door) -> dict[str, Any]:
    """What the health service says: status, version, and sums over all sessions.

    Raises:
        ProtocolError: if the server is not there, or says something else.
    """
    try:
        said = json.loads(door.hear(HEALTH))
    except ValueError:
        raise WrongSessionError("the server's health cannot be read") from None
    if not isinstance(said, dict):
        raise WrongSessionError("the server's health cannot be read")
    return said


class Client:
    """One model of one server. Use it as a context manager; it meets the server at the first question.

    Args:
        door: to the server.
        offer: the model, as the server described it.
        keep_payloads: keep the bytes of every message in the answers' transcripts.

    Attributes:
        offer: the model.
    """

    def __init__(self, door: Door, offer: WordOffer, keep_payloads: bool = False) -> None:
        self.offer = offer
        self._keep = keep_payloads
        self._front_end = FrontEnd(offer)
        self._open: Callable[[], StreamChannel] = partial(door.open, offer.name, offer.agreement)
        self._session: ClientSession | None = None

    def recognize(self, sound: Sound, rate: int | None = None) -> Answer:
        """The word of one utterance: a waveform `(samples,)` with its rate in Hz, or a sound file.

        Raises:
            AudioError: for sound that cannot be used; nothing is sent then.
            RangeError: for an utterance that is too short or too long; nothing is sent then.
            BudgetSpentError: if the server answers no more.
            ProtocolError: if the server is gone or does not keep to the protocol.
        """
        return self.recognize_all([sound], rate)[0]

    def recognize_all(
        self, sounds: Sequence[Sound], rate: int | None = None, order: Order | None = None
    ) -> list[Answer]:
        """The words of many utterances, in batches that share their round trips.

        Args:
            sounds: waveforms with one rate, or sound files.
            rate: of the waveforms.
            order: of the recursion; by default whichever answers sooner at the measured round-trip time.
        """
        frames = [self._front_end.frames(sound, rate) for sound in sounds]
        for each in frames:
            self.offer.shape.padded_monomials(each)  # refuse all before any is sent
        answers: list[Answer] = []
        while len(answers) < len(frames):
            rest = frames[len(answers) :]
            size = max(batch for batch in self.offer.batches if batch <= len(rest))
            answers += self._recognize(rest[:size], order)
        return answers

    @contextmanager
    def stream(self, rate: int | None = None) -> Iterator[Listening]:
        """Recognize while the user speaks: `feed` sound as it comes, `finish` for the word.

        `is_live` says whether frames are scored as they come. They are where the model's features do not wait for the
        end of the utterance and the server offers it; otherwise the sound is kept here until it ends.

        Args:
            rate: of the samples, in Hz; the model's own by default.
        """
        hears_at = rate or self.offer.mfcc.sample_rate
        session = self._met()
        if "stream" in self.offer.modes and waits_for_the_end(self.offer.mfcc) is None:
            with session.asking(Request(Ask.STREAM)) as (met, record):
                yield LiveListening(session, met, record, self.offer.shape, self._front_end, hears_at)
        else:
            order = choose_order(self.offer.shape, 1, session.round_trip)
            with session.asking(Request(Ask.WORDS, order)) as (met, record):
                yield BufferedListening(met, record, planned_job(self.offer.shape, 1, order), self._front_end, hears_at)

    @property
    def queries_left(self) -> int | None:
        """Of this client's budget, as the server said last; None where it does not count."""
        return self.offer.queries_left if self._session is None else self._session.queries_left

    def close(self) -> None:
        """Leave the server."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _recognize(self, frames: list[Reals], order: Order | None) -> list[Answer]:
        session = self._met()
        shape, count = self.offer.shape, len(frames)
        chosen = order or choose_order(shape, count, session.round_trip)
        job = planned_job(shape, count, chosen)
        with session.asking(Request(Ask.WORDS, chosen, count)) as (met, record):
            clock = Clock(time.perf_counter())
            engine = job.prepare(met)
            clock.prepared = clock.asked = time.perf_counter()
            words = recognize(met, job, frames, engine)
            now = time.perf_counter()
        return [clock.answer(word, chosen, now, record, count) for word in words]

    def _met(self) -> ClientSession:
        """The session with the server; a new one where the last has ended."""
        if self._session is None or not self._session.is_alive:
            self._session = ClientSession(self._open(), self._keep)
        return self._session


Offer = TypeVar("Offer", WordOffer, SpeakerOffer)


def choose_offer(offers: Sequence[Offer], model: str | None) -> Offer:
    """The offer of this name, or the only one.

    Raises:
        PpspeechError: if there is none, or there are several and no name.
    """
    names = ", ".join(offer.name for offer in offers)
    if model is None and len(offers) > 1:
        raise PpspeechError(f"the server offers several models, choose one of {names}")
    for offer in offers:
        if model in (None, offer.name):
            return offer
    raise PpspeechError(f"the server does not offer {model!r}, only {names}")
