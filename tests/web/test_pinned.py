"""Words asked by a page that pins: a real browser checks the certificate, and nothing is said to another server."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ppspeech import serve
from ppspeech.network import ShortLivedCertificates
from ppspeech.service import Deployment
from tests.network.test_server import children, counted, wait_until
from tests.network.test_webtransport import at, hello, transport_server
from tests.service.voices import RATE, released, voice
from tests.web.browser import browser, needs_browser, new_page, write_wave
from tests.web.conftest import PAGE

pytestmark = [needs_browser, pytest.mark.timeout(600)]

ASK = """async ([where, sounds, rate]) => {
    const { connect } = await import("/client.js");
    const answers = [];
    try {
        const client = await connect(where);
        for (const sound of sounds) {
            await client.prepare();
            answers.push({ ...(await client.recognize(Float32Array.from(sound), rate)), left: client.queriesLeft });
        }
        client.close();
    } catch (error) {
        answers.push({ error: `${error.name}: ${error.message}` });
    }
    return answers;
}"""

OPEN = """async ([url, pin, said]) => {
    const value = Uint8Array.from(pin.match(/../g), (pair) => parseInt(pair, 16));
    window.transport = new WebTransport(url, { serverCertificateHashes: [{ algorithm: "sha-256", value }] });
    try {
        await window.transport.ready;
        const { readable, writable } = await window.transport.createBidirectionalStream();
        await writable.getWriter().write(Uint8Array.from(said));
        return (await readable.getReader().read()).value.length;
    } catch {
        return "refused";
    }
}"""
"""Say something on a stream, as no client of ours does; how many bytes came back."""


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A page of another host, which has our client."""

    def do_GET(self) -> None:
        is_script = self.path == "/client.js"
        body = (PAGE / "client.js").read_bytes() if is_script else b"<!doctype html><title>A page</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if is_script else "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("sound") / "said.wav"
    write_wave(path, [0.0], RATE)
    with browser(path) as found:
        yield found


@contextmanager
def page_at(opened: Any, origin: str) -> Iterator[Any]:
    page = new_page(opened)
    page.goto(origin)
    yield page
    page.close()


def sounds(*which: int) -> list[list[float]]:
    return [[float(sample) for sample in voice(each)] for each in which]


def test_words_are_those_of_the_clear_and_of_the_other_door(opened: Any, origin: str, tmp_path: Path) -> None:
    """By the certificate that is shown, also among others; and what passes is what passes over a WebSocket."""
    bundle = released(tmp_path / "words")
    doors: dict[str, Any] = {"web": "127.0.0.1:0", "webtransport": "127.0.0.1:0", "web_origins": [origin]}
    with (
        serve(bundle, insecure=True, words=Deployment(frames=40), budget=100, **doors) as server,
        page_at(opened, origin) as page,
    ):
        assert server.web is not None
        assert server.webtransport is not None
        assert server.webtransport.startswith("https://127.0.0.1:")
        url, (pin, following) = server.webtransport, server.webtransport_pins
        spelled = ":".join(pin[i : i + 2] for i in range(0, 64, 2)).upper()
        ways = (
            {"url": url, "pin": pin},
            {"url": url, "pin": [following, spelled]},
            server.web.replace("http", "ws") + "ws",
        )
        found = [page.evaluate(ASK, [where, sounds(1, 0), RATE]) for where in ways]
    heard = [bundle.recognize(voice(each), RATE).value for each in (1, 0)]
    for answers in found:
        assert [answer.get("value", answer) for answer in answers] == heard
    seen = [[(each["bytesUp"], each["bytesDown"], each["rounds"]) for each in answers] for answers in found]
    assert seen[0] == seen[1] == seen[2]
    assert [each["left"] for answers in found for each in answers] == [
        99,
        98,
        97,
        96,
        95,
        94,
    ]  # one budget for both doors


def test_a_server_that_shows_another_certificate_is_told_nothing(opened: Any, origin: str, tmp_path: Path) -> None:
    """Neither a frame nor what is asked for, though it lets the page in: the browser leaves in the handshake."""
    right, wrong = (ShortLivedCertificates(tmp_path / name) for name in ("right", "wrong"))
    with transport_server(wrong, origins=(origin,)) as other, page_at(opened, origin) as page:
        url = f"https://{at(other)}/wt"
        for pin in (*right.pins, "00" * 32, wrong.pins[1]):
            (answer,) = page.evaluate(ASK, [{"url": url, "pin": pin}, sounds(1), RATE])
            assert answer["error"].startswith("ProtocolError: the connection failed")
            assert page.evaluate(OPEN, [url, pin, list(hello())]) == "refused"
        wait_until(lambda: not children(other))
        assert page.evaluate(OPEN, [url, wrong.pins[0], list(hello())]) > 28
    counts = counted(other)
    assert counts.bytes_received == len(hello())  # of the last, which pins the right one
    assert counts.started == 9
    assert sum(counts.failed.values()) == 9


def test_a_page_of_another_host_is_not_let_in(opened: Any, origin: str, tmp_path: Path) -> None:
    certificates = ShortLivedCertificates(tmp_path)
    with transport_server(certificates, origins=("https://pages.example",)) as server, page_at(opened, origin) as page:
        assert page.evaluate(OPEN, [f"https://{at(server)}/wt", certificates.pins[0], list(hello())]) == "refused"
        wait_until(lambda: not children(server))
    assert dict(counted(server).failed) == {"WrongSessionError": 1}
    assert counted(server).bytes_received == 0


def test_a_page_that_is_closed_leaves_nothing_behind(opened: Any, origin: str, tmp_path: Path) -> None:
    certificates = ShortLivedCertificates(tmp_path)
    with transport_server(certificates, origins=(origin,)) as server:
        with page_at(opened, origin) as page:
            asked = [f"https://{at(server)}/wt", certificates.pins[0], list(hello("compare", {"steps": 9}))]
            assert page.evaluate(OPEN, asked) > 28
            assert len(children(server)) == 1
        wait_until(lambda: not children(server))
    assert dict(counted(server).failed) == {"PeerGoneError": 1}
