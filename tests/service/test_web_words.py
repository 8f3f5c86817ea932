"""A word through the doors for pages: the answer and the transcript are those of TCP, and budgets are one."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ppspeech import network, serve
from ppspeech.errors import PpspeechError
from ppspeech.network import Address
from ppspeech.service import Client, Deployment
from ppspeech.service import connect as ask
from ppspeech.service.client import connect as connecting
from ppspeech.service.page import page_files
from tests.network.conftest import Identity, make_identity
from tests.network.transport_client import transport_connect
from tests.network.web_client import trusting, web_connect
from tests.service.conftest import QUICK
from tests.service.voices import RATE, released, voice


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return make_identity(tmp_path_factory.mktemp("tls"), "server")


@contextmanager
def web_client(
    monkeypatch: pytest.MonkeyPatch, address: str, identity: Identity, *, pins: bool = False
) -> Iterator[Client]:
    """The client people call, with a WebSocket under it, or with WebTransport."""

    def open_channel(where: Address, service: str, params: dict[str, Any], **_: Any) -> object:
        if pins:
            return transport_connect(where, service, params, QUICK)
        return web_connect(where, service, params, QUICK, tls=tls)

    tls = trusting(identity)
    with monkeypatch.context() as patched:
        patched.setattr(connecting, "connect_channel", open_channel)
        with ask(address, pin=identity.pin) as client:
            yield client


def test_a_word_is_the_same_by_all_doors(tmp_path: Path, identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = released(tmp_path / "words")
    own = {"certificate": identity.certificate, "key": identity.key, "words": Deployment(frames=40)}
    with serve(bundle, web="127.0.0.1:0", webtransport="127.0.0.1:0", budget=4, **own) as server:
        assert server.web is not None
        assert server.webtransport is not None
        assert server.web.startswith("https://127.0.0.1:")
        doors = server.web.removesuffix("/"), server.webtransport.removesuffix("/wt")
        heard = []
        for pins, door in enumerate(doors):
            with web_client(monkeypatch, door.removeprefix("https://"), identity, pins=bool(pins)) as by_web:
                heard.append(by_web.recognize_all([voice(1)], RATE, order="frames")[0])
        with ask(server.address, pin=server.pin) as by_tcp:
            expected = by_tcp.recognize_all([voice(1)], RATE, order="frames")[0]
            assert by_tcp.queries_left == 1  # all doors count for one client
        for answer in heard:
            assert answer.value == expected.value == bundle.recognize(voice(1), RATE).value
            assert answer.transcript.shape() == expected.transcript.shape()


def test_the_page_says_how_the_server_is_known() -> None:
    files = page_files("ab" * 32)
    assert files["/"] == files["/index.html"]
    assert files["/"].media_type == "text/html; charset=utf-8"
    assert b'"pin": "' + b"ab" * 32 in files["/server.json"].body
    assert not any(path.endswith((".py", ".pyc")) for path in files)
    assert {"/page.js", "/page.css", "/icon.svg"} <= set(files)


def test_where_pages_cannot_come_in(tmp_path: Path, identity: Identity) -> None:
    released(tmp_path / "words")
    own = {"certificate": identity.certificate, "key": identity.key}
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"web": "10.0.0.1:0", "insecure": True}, "plain TCP is for loopback"),
        ({"web": "nowhere"}, "an address is HOST:PORT"),
        ({"web": "127.0.0.1:0", "web_origins": ["http://pages.example"]}, "an origin is https"),
        ({"web_origins": ["https://pages.example"]}, "need a door to come in by"),
        ({"webtransport": "nowhere"}, "an address is HOST:PORT"),
        ({"webtransport": "127.0.0.1:0", "web_origins": ["*"]}, "an origin is https"),
        ({"webtransport": "192.0.2.1:0"}, "cannot listen at 127.0.0.1:0 and 192.0.2.1:0"),
        ({"webtransport": "127.0.0.1:0", "client_ca": identity.certificate, **own}, "pages show no certificate"),
    ]
    for given, words in refusals:
        with pytest.raises(PpspeechError, match=words), serve(tmp_path / "words", **given):
            pass


def test_pages_that_pin_need_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released(tmp_path / "words")
    monkeypatch.delattr(network, "TransportDoor", raising=False)
    for name in [*sys.modules]:
        if name.startswith("ppspeech.network.web."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "aioquic", None)
    for name in [*sys.modules]:
        if name.startswith("aioquic."):
            monkeypatch.setitem(sys.modules, name, None)
    words = r"WebTransport needs aioquic, which is not installed: pip install 'ppspeech\[webtransport\]'"
    with pytest.raises(PpspeechError, match=words), serve(tmp_path / "words", webtransport="127.0.0.1:0"):
        pass
    with serve(tmp_path / "words") as server:
        assert (server.webtransport, server.webtransport_pins) == (None, ())


def test_pins_outlive_a_server_that_keeps_its_state(tmp_path: Path) -> None:
    released(tmp_path / "words")
    pins = []
    for state in (tmp_path / "state", tmp_path / "state", None):
        with serve(tmp_path / "words", webtransport="127.0.0.1:0", state=state) as server:
            pins.append(server.webtransport_pins)
    assert len(set(pins[0])) == 2
    assert pins[0] == pins[1]
    assert not set(pins[0]) & set(pins[2])
    assert json.loads((tmp_path / "state" / "webtransport" / "pins.json").read_text()) == list(pins[0])
