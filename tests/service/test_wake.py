"""The second stage: when it is asked says nothing of what it answered; Home Assistant's own client hears it."""

import asyncio
import contextlib
import json
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from ppspeech.audio import Samples
from ppspeech.bundle import Bundle
from ppspeech.cli.app import app
from ppspeech.errors import AudioError, ModelError, PeerGoneError, PpspeechError
from ppspeech.network import Address
from ppspeech.service import Bridge, HeadStage, SpeakerDeployment, SpeechStage, Wake, connect_through
from ppspeech.service.client import wyoming_bridge
from ppspeech.service.client.wake import CHECKED_S, REST_S, SETTLE_S, STEP
from ppspeech.service.client.wyoming_bridge import (
    LARGEST_DATA,
    LARGEST_LINE,
    LARGEST_PAYLOAD,
    BadEventError,
    EventReader,
    samples_of,
)
from tests.bundle.test_voices import bundle, others
from tests.service.conftest import Running, serving
from tests.service.heads import RATE, WINDOW, WORDS, released, said, scene

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # audioop, which goes with Python 3.13
    from wyoming.audio import AudioChunk, AudioStart, AudioStop
    from wyoming.client import AsyncTcpClient
    from wyoming.error import Error
    from wyoming.event import Event
    from wyoming.info import Describe, Info
    from wyoming.ping import Ping, Pong
    from wyoming.wake import Detect, Detection, NotDetected


__all__ = ["bundle", "others"]  # fixtures


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, heads: dict[str, Bundle]) -> Iterator[Running]:
    every = {name: heads[name] for name in ("words", "live")}
    with serving(tmp_path_factory.mktemp("server"), every, frames=None) as found:
        yield found


# When it is asked.


@dataclass
class Says:
    """A client that is asked, and answers as it was told to."""

    words: Sequence[str | None]
    asked: list[Samples] = field(default_factory=list)

    def recognize(self, sound: Samples, rate: int) -> Any:
        assert rate == RATE
        self.asked.append(sound)
        word = self.words[(len(self.asked) - 1) % len(self.words)]
        return type("Told", (), {"value": word, "seconds": 0.0, "offline_seconds": 0.0, "bytes_up": 1, "bytes_down": 1})


@dataclass
class Knows:
    """A client of voices that is asked who spoke."""

    name: str | None = "ann"
    names: str = "client"
    asked: list[Samples] = field(default_factory=list)

    @property
    def offer(self) -> Any:
        return SimpleNamespace(name="voices", terms=SimpleNamespace(identifies=True, names=self.names))

    def identify(self, sounds: Sequence[Samples], rate: int) -> Any:
        assert rate == RATE
        if self.name is None:
            raise AudioError("too little")
        self.asked += sounds
        return SimpleNamespace(value=self.name)


class At:
    """A first stage that fires at fixed steps."""

    def __init__(self, *steps: int) -> None:
        self.steps, self.now = steps, 0

    def hears(self, samples: Samples) -> bool:
        assert len(samples) == STEP
        self.now += 1
        return self.now in self.steps

    def ends(self) -> bool:
        return False

    def forget(self) -> None:
        self.now = 0


NOISE = np.random.default_rng(0).standard_normal(4 * RATE).astype(np.float32)


def test_each_firing_is_one_question_about_the_last_two_seconds() -> None:
    client: Any = Says(["yes"])
    (found,) = Wake(client, At(80)).feed(NOISE)
    asked_at = (80 * STEP + round(SETTLE_S * RATE) + STEP - 1) // STEP * STEP
    assert found.at == pytest.approx(asked_at / RATE, abs=1e-3)
    assert found.word == "yes"
    assert (client.asked[0] == NOISE[asked_at - round(CHECKED_S * RATE) : asked_at]).all()


@pytest.mark.parametrize("word", ["yes", None])
def test_who_spoke_is_asked_whatever_the_word_was(word: str | None) -> None:
    client, who = Says([word]), Knows()
    found = Wake(client, At(*range(10_000)), who).feed(NOISE)  # type: ignore[arg-type]
    assert [each.speaker for each in found] == ["ann"] * len(client.asked)
    assert len(found) > 1
    assert all((one == other).all() for one, other in zip(client.asked, who.asked, strict=True))
    (short,) = Wake(Says(["yes"]), At(80), Knows(None)).feed(NOISE)  # type: ignore[arg-type]
    assert (short.word, short.speaker) == ("yes", None)
    with pytest.raises(ModelError, match="names=client"):
        Wake(client, At(), Knows(names="server"))  # type: ignore[arg-type]


def test_nothing_is_asked_where_nothing_fires() -> None:
    client: Any = Says(["yes"])
    wake = Wake(client, At())
    assert wake.feed(NOISE) == []
    assert wake.end() == []
    assert client.asked == []


@pytest.mark.parametrize("words", [["yes"], [None], ["no", None], [None, None, "yes"]])
def test_when_it_asks_does_not_depend_on_what_was_answered(words: list[str | None]) -> None:
    """Firing all the time: questions come at one pace, whatever the answers are."""
    client: Any = Says(words)
    wake = Wake(client, At(*range(10_000)))
    times = [each.at for each in wake.over(np.array_split(NOISE, 13))]
    assert np.diff(times) == pytest.approx(REST_S + SETTLE_S, abs=2 * STEP / RATE)
    assert times == [each.at for each in Wake(Says([None]), At(*range(10_000))).feed(NOISE)]  # type: ignore[arg-type]
    assert len(times) == 3


def test_a_session_that_has_ended_is_begun_again_once() -> None:
    class Gone(Says):
        def recognize(self, sound: Samples, rate: int) -> Any:
            told = super().recognize(sound, rate)
            if len(self.asked) % 3:
                raise PeerGoneError("the session was over")
            return told

    client: Any = Gone(["yes"], [NOISE])
    assert [each.word for each in Wake(client, At(80)).feed(NOISE)] == ["yes"]
    with pytest.raises(PeerGoneError):
        Wake(client, At(80)).feed(NOISE)


def test_digital_silence_is_not_asked_about() -> None:
    client: Any = Says(["yes"])
    wake = Wake(client, At(*range(10_000)))
    assert wake.feed(np.zeros(2 * RATE, np.float32)) == []
    assert wake.end() == []


def test_speech_fires_where_it_ends_and_quiet_does_not() -> None:
    client: Any = Says([None])
    sound = scene("yes", "paper")
    found = Wake(client).feed(sound)
    first = 2.1 + len(said()["yes", 3]) / RATE
    assert 1 <= len(found) <= 3
    assert found[0].at == pytest.approx(first + SETTLE_S, abs=0.4)
    quiet: Any = Says(["yes"])
    assert Wake(quiet).feed(scene()) == []
    cut = Wake(client)
    cut.feed(np.concatenate([scene(), said()["yes", 3][: RATE // 2]]))
    assert len(cut.end()) <= 1


def test_a_head_fires_by_its_own_words(heads: dict[str, Bundle]) -> None:
    recognizer: Any = heads["live"].recognizer
    client: Any = Says([None])
    assert Wake(client, HeadStage(recognizer, 0.0)).feed(scene("yes"))
    few = len(client.asked)
    assert Wake(client, HeadStage(recognizer, 0.0)).feed(scene("paper")) == []
    assert len(Wake(client, HeadStage(recognizer, 1e3)).feed(scene("paper"))) > few
    for name, why in (("words", "over: window"), ("sure", "knows a background")):
        with pytest.raises(ModelError, match=why):
            HeadStage(heads[name].recognizer)  # type: ignore[arg-type]


# With a server.


@pytest.mark.parametrize("model", ["words", "live"])
def test_the_server_tells_what_the_last_two_seconds_are(asked: Running, heads: dict[str, Bundle], model: str) -> None:
    sound = scene("yes", "paper", "stop")
    with asked.connect(model) as client:
        found = Wake(client, SpeechStage()).feed(sound)
    ends = [round(each.at * RATE / STEP) * STEP for each in found]
    clear = [heads[model].recognizer.recognize_all([sound[end - 2 * RATE : end]], RATE)[0] for end in ends]
    assert all(one.value == other.word for one, other in zip(clear, found, strict=True) if one.margin > 0.05)
    assert {"yes", None} <= {each.word for each in found}
    assert all(0 < each.bytes < 200_000 for each in found)


def test_the_command_prints_a_line_for_every_question(asked: Running, tmp_path: Path, heads: dict[str, Bundle]) -> None:
    clip = tmp_path / "evening.wav"
    soundfile.write(clip, scene("yes", "paper"), RATE)
    where = [str(clip), "--server", asked.address, "--pin", asked.pin, "--model", "live", "--json"]
    released(tmp_path / "small", heads["live"].model, WINDOW)  # type: ignore[arg-type]
    for extra in ([], ["--first", str(tmp_path / "small"), "--slack", "0.5"]):
        done = CliRunner().invoke(app, ["wake", *where, *extra])
        assert done.exit_code == 0, done.output
        rows = [json.loads(line) for line in done.output.splitlines()]
        assert "yes" in [row["word"] for row in rows]
        assert all(row["clip"] == str(clip) and row["at"] > 0 and row["bytes"] > 0 for row in rows)


def test_a_command_listens_window_by_window(asked: Running, tmp_path: Path) -> None:
    clip = tmp_path / "evening.wav"
    soundfile.write(clip, scene("yes")[: 4 * RATE], RATE)
    where = [asked.address, str(clip), "--pin", asked.pin, "--model", "live"]
    done = CliRunner().invoke(app, ["recognize", *where, "--listen", "--json"])
    assert done.exit_code == 0, done.output
    assert "yes" in [json.loads(line)["word"] for line in done.output.splitlines()]
    done = CliRunner().invoke(app, ["recognize", *where, "--outcome", "server"])
    assert done.exit_code == 2
    assert "to you alone" in done.output


def test_commands_listen_to_the_microphone(asked: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = np.array_split(scene("yes")[: 4 * RATE], 40)
    monkeypatch.setattr("ppspeech.audio.find_recorder", lambda: "arecord")
    monkeypatch.setattr("ppspeech.audio.record", lambda seconds, rate: iter(pieces))
    where = ["--pin", asked.pin, "--model", "live", "--json"]
    for words in (["wake", "--server", asked.address], ["recognize", asked.address, "--mic", "--listen"]):
        done = CliRunner().invoke(app, [*words, *where])
        assert done.exit_code == 0, done.output
        rows = [json.loads(line) for line in done.output.splitlines()]
        assert "yes" in [row["word"] for row in rows]
        assert {row["clip"] for row in rows} == {"the microphone"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["a.wav", "--wyoming", "tcp://127.0.0.1:0"], "give no sound files"),
        (["--wyoming", "http://127.0.0.1:0", "--server", "127.0.0.1:1", "--insecure"], "a Wyoming address"),
        (["--wyoming", "tcp://0.0.0.0:0", "--server", "127.0.0.1:1", "--insecure"], "is not encrypted"),
        (["a.wav"], "give the server"),
    ],
)
def test_commands_that_cannot_be_met_say_why(given: list[str], why: str) -> None:
    done = CliRunner().invoke(app, ["wake", *given])
    assert done.exit_code == 2
    assert why in " ".join(done.output.split())


# Home Assistant.


@pytest.fixture(scope="module")
def bridge(asked: Running) -> Iterator[Address]:
    """A bridge in a thread."""
    made = Bridge("tcp://127.0.0.1:0", lambda: asked.connect("live"))
    with running_bridge(made) as address:
        yield address


class running_bridge:
    def __init__(self, made: Bridge) -> None:
        self._made, self._loop = made, asyncio.new_event_loop()
        self._ready = threading.Event()

    def __enter__(self) -> Address:
        def is_ready(address: Address) -> None:
            self._address = address
            self._ready.set()

        def run() -> None:
            self._task = self._loop.create_task(self._made.run(is_ready))
            with pytest.raises(asyncio.CancelledError):
                self._loop.run_until_complete(self._task)
            self._left = asyncio.all_tasks(self._loop)
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

        self._thread = threading.Thread(target=run)
        self._thread.start()
        assert self._ready.wait(60)
        return self._address

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert not self._left


def sound_events(sound: Samples) -> list[Event]:
    shape: dict[str, Any] = {"rate": RATE, "width": 2, "channels": 1}
    pieces = [(32_000 * piece).astype("<i2").tobytes() for piece in np.array_split(sound, len(sound) // 1_024)]
    chunks = [AudioChunk(audio=piece, **shape).event() for piece in pieces]
    return [Detect(names=["live"]).event(), AudioStart(**shape).event(), *chunks, AudioStop().event()]


def converse(address: Address, events: Sequence[Event], until: Callable[[Event], bool]) -> list[Event]:
    """What Wyoming's own client hears, until an event that is waited for, or the end."""

    async def talk() -> list[Event]:
        heard: list[Event] = []
        async with AsyncTcpClient(address.host, address.port, connect_timeout=30, read_timeout=60) as client:
            with contextlib.suppress(ConnectionError):  # who is refused is not listened to any longer
                for event in events:
                    await client.write_event(event)
            while (event := await client.read_event()) is not None:
                heard.append(event)
                if until(event):
                    break
        return heard

    return asyncio.run(talk())


def test_wyoming_describes_and_detects(bridge: Address) -> None:
    (event,) = converse(bridge, [Describe().event()], lambda event: Info.is_type(event.type))
    info = Info.from_event(event)
    (program,) = info.wake
    assert [model.name for model in program.models] == ["live"]
    assert not any(word in json.dumps(event.data) for word in WORDS if len(word) > 2)
    heard = converse(bridge, sound_events(scene("yes")), lambda event: Detection.is_type(event.type))
    found = Detection.from_event(heard[-1])
    assert found.name == "live"
    assert found.context == {"word": "yes"}
    assert found.timestamp is not None
    assert 2_000 < found.timestamp < 4_000
    heard = converse(bridge, sound_events(scene("paper")), lambda event: NotDetected.is_type(event.type))
    assert [event.type for event in heard] == [NotDetected().event().type]
    (pong,) = converse(bridge, [Ping("hello").event()], lambda event: Pong.is_type(event.type))
    assert Pong.from_event(pong).text == "hello"


def test_wyoming_names_who_spoke(tmp_path: Path, heads: dict[str, Bundle], bundle: Bundle) -> None:
    deployment = SpeakerDeployment(places=2, threshold=-0.9, enrolls=True)
    with serving(tmp_path, {"live": heads["live"], "voices": bundle}, frames=None, speakers=deployment) as running:
        with connect_through(running.door(), bundle=bundle) as enrolling:
            enrolling.enroll("ann", [scene("yes")], RATE)
        made = Bridge(
            "tcp://127.0.0.1:0",
            lambda: running.connect("live"),
            open_who=lambda: connect_through(running.door(), bundle=bundle),
        )
        with running_bridge(made) as address:
            heard = converse(address, sound_events(scene("yes")), lambda event: Detection.is_type(event.type))
    found = Detection.from_event(heard[-1])
    assert (found.context, found.speaker) == ({"word": "yes"}, "ann")


BAD = [
    b'{"type": "audio-chunk", "payload_length": 1000000000}\n',
    b'{"type": "audio-chunk", "data_length": -1}\n',
    b"nonsense\n",
    b"{" * LARGEST_LINE + b"{",
    b"[" * 5_000 + b"\n",
    b'{"type": 7}\n',
    b'{"type": "x", "data": []}\n{"type": "x", "data": [1]}\n',
    b'{"type": "audio-chunk", "data": {"rate": 1, "width": 2, "channels": 1}}\n',
    b'{"type": "audio-chunk", "data": {"rate": 16000, "width": 2, "channels": 1}, "payload_length": 1}\nx',
]


def test_bad_events_end_their_connection_and_no_other(bridge: Address) -> None:
    """One that is in the middle of its sound is not hurt by them."""

    async def bad(data: bytes) -> Event | None:
        async with AsyncTcpClient(bridge.host, bridge.port, read_timeout=60) as client:
            assert client._writer is not None
            client._writer.write(data)
            await client._writer.drain()
            told = await client.read_event()
            assert await client.read_event() is None
            return told

    async def talk() -> list[Event]:
        good, heard = sound_events(scene("stop")), list[Event]()
        async with AsyncTcpClient(bridge.host, bridge.port, read_timeout=60) as client:
            for event in good[: len(good) // 3]:
                await client.write_event(event)
            heard += [told for told in [await bad(each) for each in BAD] if told]
            for event in good[len(good) // 3 :]:
                await client.write_event(event)
            while (event := await client.read_event()) is not None:  # type: ignore[assignment]
                heard.append(event)
                if Detection.is_type(event.type) or NotDetected.is_type(event.type):
                    break
        return heard

    *refused, last = asyncio.run(talk())
    assert len(refused) == len(BAD)
    assert all(Error.is_type(each.type) for each in refused)
    assert Detection.from_event(last).context == {"word": "stop"}


def test_no_more_than_so_many_are_answered_at_a_time(bridge: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wyoming_bridge, "MOST_CONNECTIONS", 0)
    (event,) = converse(bridge, [], lambda event: Error.is_type(event.type))
    assert "no more are answered" in Error.from_event(event).text
    monkeypatch.undo()
    assert converse(bridge, [Describe().event()], lambda event: Info.is_type(event.type))


def test_a_server_that_is_gone_is_told_of(asked: Running) -> None:
    calls = []

    def opened() -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise PpspeechError("there is nobody")
        return asked.connect("live")

    with running_bridge(Bridge("tcp://127.0.0.1:0", opened)) as address:
        (event,) = converse(address, sound_events(scene())[:2], lambda event: Error.is_type(event.type))
    assert Error.from_event(event).text == "there is nobody"


@pytest.mark.parametrize("when", ["it answers", "it closes"])
def test_a_bridge_that_ends_closes_what_it_opened(asked: Running, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is answering, or closing already, at that moment."""
    is_there, may_go_on, done = threading.Event(), threading.Event(), list[str]()
    held = "answer" if when == "it answers" else "close"
    real = getattr(wyoming_bridge.Conversation, f"_{held}" if held == "answer" else held)

    def slow(self: Any, *given: Any) -> Any:
        is_there.set()
        assert may_go_on.wait(60)
        told = real(self, *given)
        done.append(held)
        return told

    monkeypatch.setattr(wyoming_bridge.Conversation, real.__name__, slow)
    made = Bridge("tcp://127.0.0.1:0", lambda: asked.connect("live"))
    bridge = running_bridge(made)
    address = bridge.__enter__()
    with socket.create_connection((address.host, address.port), timeout=60) as line:
        line.sendall(b'{"type": "audio-start"}\n')
        if held == "close":
            line.shutdown(socket.SHUT_WR)
        assert is_there.wait(60)
        threading.Timer(0.2, may_go_on.set).start()
        bridge.__exit__()
        assert line.recv(1) == b""  # the other end is closed
    assert done == [held]
    assert not made._connections


def test_nothing_can_be_told_where_the_server_alone_knows(tmp_path: Path, heads: dict[str, Bundle]) -> None:
    only = {"live": heads["live"]}
    with (
        serving(tmp_path, only, frames=None, outcome="server") as running,
        pytest.raises(PpspeechError, match="the server alone learns"),
    ):
        Bridge("tcp://127.0.0.1:0", lambda: running.connect("live", outcome="server"))


def test_events_are_read_however_they_are_cut() -> None:
    data = 3 * b'{"type":"a","data":{"x":1},"data_length":7,"payload_length":3}\n{"y":2}abc'
    for size in (1, 7, 1_000):
        reader = EventReader()
        found = [each for at in range(0, len(data), size) for each in reader.feed(data[at : at + size])]
        assert found == [("a", {"x": 1, "y": 2}, b"abc")] * 3


@pytest.mark.parametrize("data", BAD[:7], ids=lambda data: data[:20])
def test_events_that_cannot_be_are_refused(data: bytes) -> None:
    with pytest.raises(BadEventError):
        list(EventReader().feed(data))
    for what, most in (("data", LARGEST_DATA), ("payload", LARGEST_PAYLOAD)):
        line = json.dumps({"type": "a", f"{what}_length": most}).encode() + b"\n"
        assert list(EventReader().feed(line)) == []
        with pytest.raises(BadEventError, match="0 to"):
            list(EventReader().feed(line.replace(str(most).encode(), str(most + 1).encode())))


def test_sound_comes_in_one_form() -> None:
    right = {"rate": RATE, "width": 2, "channels": 1}
    assert samples_of(right, b"\0\x40").tolist() == [0.5]
    for wrong in ({"rate": 8_000}, {"width": 4}, {"channels": 2}, {"rate": None}, {"rate": "16000"}):
        with pytest.raises(BadEventError, match="16-bit"):
            samples_of(right | wrong, b"\0\0")
