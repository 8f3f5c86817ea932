"""The second stage for Home Assistant, over its Wyoming protocol (`wyoming` on PyPI): describe, sound in, `detection`
or `not-detected` out.

An event is a line of JSON, then as many bytes of further JSON and of payload as the line announces. Whoever connects
may send anything: lengths are looked at before anything is kept, and what is too large, or no event, ends that
connection with an `error` event, and no other. Wyoming has no encryption: it is for this machine alone.
"""

import asyncio
import json
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from ppspeech import __version__
from ppspeech.audio import Samples
from ppspeech.errors import MissingPackageError, PpspeechError
from ppspeech.network import Address
from ppspeech.service.client.wake import WAKE_RATE, Checked, Wake

if TYPE_CHECKING:
    from ppspeech.service.client.connect import Client

LARGEST_LINE, LARGEST_DATA, LARGEST_PAYLOAD = 1 << 14, 1 << 16, 1 << 19
"""Bytes of an event's parts; a payload of 16 s of sound."""
MOST_CONNECTIONS = 8
READ = 1 << 16
FORMAT = {"rate": WAKE_RATE, "width": 2, "channels": 1}
"""Sound as Home Assistant sends it."""


class BadEventError(PpspeechError):
    """A Wyoming event that is none, or too large."""


class EventReader:
    """Events from bytes as they come, `(type, data, payload)` each."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> Iterator[tuple[str, dict[str, Any], bytes]]:
        """The events that are whole now. Raises BadEventError as soon as one cannot be."""
        self._kept += data
        while (found := self._next()) is not None:
            yield found

    def _next(self) -> tuple[str, dict[str, Any], bytes] | None:
        line, newline, rest = self._kept.partition(b"\n")
        if len(line) > LARGEST_LINE:
            raise BadEventError(f"the line of an event has at most {LARGEST_LINE:,} bytes")
        if not newline:
            return None
        header = _object(line)
        name, more, payload = header.get("type"), _length(header, "data"), _length(header, "payload")
        if not isinstance(name, str):
            raise BadEventError("an event has a type")
        if len(rest) < more + payload:
            return None
        told = header.get("data") or {}
        if not isinstance(told, dict):
            raise BadEventError("data of an event are an object")
        self._kept = rest[more + payload :]
        return name, told | (_object(rest[:more]) if more else {}), rest[more : more + payload]


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadEventError("an event is a line of JSON, an object")
    return found


def _length(header: dict[str, Any], what: str) -> int:
    most = LARGEST_DATA if what == "data" else LARGEST_PAYLOAD
    given = header.get(f"{what}_length")
    if given is None:
        return 0
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= most:
        raise BadEventError(f"{what} of an event have 0 to {most:,} bytes, got {given!r:.40}")
    return given


def samples_of(data: dict[str, Any], payload: bytes) -> Samples:
    """Samples of an `audio-chunk`, `(samples,)`. Raises BadEventError for sound in another form than is taken."""
    given = {name: data.get(name) for name in FORMAT}
    if given != FORMAT or len(payload) % 2:
        raise BadEventError(f"sound comes as 16-bit numbers of one channel at {WAKE_RATE} Hz, got {given!s:.80}")
    return np.frombuffer(payload, "<i2").astype(np.float32) / np.float32(32_768)


def make_usual(client: "Client", who: "Client | None") -> Wake:
    """Speech is the first stage."""
    return Wake(client, who=who)


class Bridge:
    """A Wyoming server whose connections each have a client of their own.

    `open_who`: opens a client of enrolled voices; a `detection` then names its speaker.

    Raises MissingPackageError without `wyoming`; PpspeechError for an address that others could reach, unless `anyone`
    may, and where the server alone learns the words.
    """

    def __init__(
        self,
        uri: str,
        open_client: "Callable[[], Client]",
        make_wake: "Callable[[Client, Client | None], Wake]" = make_usual,
        *,
        open_who: "Callable[[], Client] | None" = None,
        anyone: bool = False,
    ) -> None:
        self.library = _library()
        parts = urlsplit(uri)
        if parts.scheme != "tcp" or parts.path or "@" in parts.netloc:
            raise PpspeechError(f"a Wyoming address is such as tcp://127.0.0.1:10400, got {uri!r:.80}")
        self.address = Address.parse(parts.netloc)
        if not (self.address.is_loopback or anyone):
            raise PpspeechError(
                f"Wyoming is not encrypted, and others may reach {self.address}: listen at 127.0.0.1, or say --anyone "
                "where the network is yours"
            )
        self.open_client, self.make_wake, self.open_who = open_client, make_wake, open_who
        with open_client() as client:  # is it there, and who learns what?
            if client.outcome != "client":
                raise PpspeechError("the server alone learns the words: there is nothing to tell over Wyoming")
            self.offer = client.offer
        self._connections: dict[asyncio.Task[None], asyncio.Task[None]] = {}  # of each, its talk

    async def run(self, is_ready: Callable[[Address], object]) -> None:
        """Answer until cancelled; `is_ready` is told the address. Raises PpspeechError if it cannot be listened at.

        Every connection, and its client, is closed when this ends.
        """
        try:
            server = await asyncio.start_server(self._meet, self.address.host, self.address.port)
        except OSError as error:
            raise PpspeechError(f"cannot listen at {self.address}: {error.strerror}") from None
        is_ready(Address(*server.sockets[0].getsockname()[:2]))
        async with server:
            try:
                await server.serve_forever()
            finally:
                server.close()
                for talk in self._connections.values():
                    talk.cancel()
                await asyncio.gather(*self._connections)

    def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: what is said may be cut short, and never the end of it, which closes what was opened."""
        conversation = Conversation(self)
        talk = asyncio.create_task(self._talk(conversation, reader, writer))
        attended = asyncio.create_task(self._attend(conversation, talk, writer))
        self._connections[attended] = talk

    async def _attend(
        self, conversation: "Conversation", talk: "asyncio.Task[None]", writer: asyncio.StreamWriter
    ) -> None:
        """Wait for a talk to end, however it does; then close its client and its connection."""
        own = asyncio.current_task()
        assert own is not None
        await asyncio.wait([talk])
        try:
            await asyncio.to_thread(conversation.close)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            del self._connections[own]
        if not talk.cancelled():
            talk.result()  # what nobody expected is told

    async def _talk(
        self, conversation: "Conversation", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """From the first byte to the last."""
        try:
            if len(self._connections) > MOST_CONNECTIONS:
                raise PpspeechError(f"{MOST_CONNECTIONS} are connected, and no more are answered at a time")
            while data := await reader.read(READ):
                for event in conversation.events.feed(data):
                    for said in await asyncio.to_thread(conversation.answer, *event):
                        await self._say(writer, said)
        except PpspeechError as refused:
            with suppress(OSError):
                await self._say(writer, self.library.Error(text=str(refused), code=type(refused).__name__))
        except OSError:
            pass  # it is gone

    async def _say(self, writer: asyncio.StreamWriter, said: Any) -> None:
        await self.library.async_write_event(said.event(), writer)


class Conversation:
    """One connection's events, and what is answered; a client is opened with the first sound."""

    def __init__(self, bridge: Bridge) -> None:
        self.events = EventReader()
        self._bridge = bridge
        self._client: Client | None = None
        self._who: Client | None = None
        self._wake: Wake | None = None
        self._words = 0
        self._alone = threading.Lock()  # an answer that nobody waits for any longer is finished before all is closed

    def answer(self, name: str, told: dict[str, Any], payload: bytes) -> list[Any]:
        """What is said to an event; nothing to those that are not for us. Raises PpspeechError for one that cannot be,
        or where the server does not answer.
        """
        with self._alone:
            return self._answer(name, told, payload)

    def close(self) -> None:
        """It has gone."""
        with self._alone:
            for client in (self._client, self._who):
                if client is not None:
                    client.close()

    def _answer(self, name: str, told: dict[str, Any], payload: bytes) -> list[Any]:
        if name == "describe":
            return [self._info()]
        if name == "ping":
            return [self._bridge.library.Pong(text=f"{told.get('text') or ''!s:.200}")]
        if name == "audio-start":
            self._begin()
        if name == "audio-chunk":
            sound = samples_of(told, payload)
            return self._said((self._wake or self._begin()).feed(sound))
        if name == "audio-stop":
            found = [] if self._wake is None else self._said(self._wake.end())
            self._wake = None
            return found if self._words else [self._bridge.library.NotDetected()]
        return []

    def _begin(self) -> Wake:
        if self._client is None:
            self._client = self._bridge.open_client()
        if self._who is None and self._bridge.open_who is not None:
            self._who = self._bridge.open_who()
        self._wake, self._words = self._bridge.make_wake(self._client, self._who), 0
        return self._wake

    def _said(self, found: list[Checked]) -> list[Any]:
        kind, name = self._bridge.library.Detection, self._bridge.offer.name
        heard = [each for each in found if each.word is not None]
        self._words += len(heard)
        return [
            kind(name=name, timestamp=round(1e3 * each.at), speaker=each.speaker, context={"word": each.word})
            for each in heard
        ]

    def _info(self) -> Any:
        """One model, under the name of the offer: its words are the server's secret."""
        kind, offer = self._bridge.library, self._bridge.offer
        own = {"attribution": kind.Attribution("ppspeech", ""), "installed": True, "version": __version__}
        model = kind.WakeModel(name=offer.name, description=offer.task, languages=[], phrase=None, **own)
        says = "A second opinion on wake words, by a server that does not hear"
        return kind.Info(wake=[kind.WakeProgram(name="ppspeech", description=says, models=[model], **own)])


def _library() -> Any:
    """What is used of `wyoming`, in one namespace."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it imports audioop, which goes with Python 3.13
            from wyoming.error import Error
            from wyoming.event import async_write_event
            from wyoming.info import Attribution, Info, WakeModel, WakeProgram
            from wyoming.ping import Pong
            from wyoming.wake import Detection, NotDetected
    except ModuleNotFoundError as missing:
        needed = "the bridge to Home Assistant", missing.name or "wyoming", "pip install 'ppspeech[wyoming]'"
        raise MissingPackageError(*needed) from None
    own = (Error, async_write_event, Attribution, Info, WakeModel, WakeProgram, Pong, Detection, NotDetected)
    return SimpleNamespace(**{each.__name__: each for each in own})
