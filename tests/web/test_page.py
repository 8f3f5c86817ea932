"""The page in a browser: what it shows before the first word, how it is asked, and what it says when that fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ppspeech.network import Address, Server, Service, WebDoor, WebFile, in_background
from ppspeech.protocols import Kind
from ppspeech.service.page import page_files
from tests.service.voices import RATE, voice
from tests.web.browser import browser, needs_browser, new_page, write_wave

pytestmark = [needs_browser, pytest.mark.timeout(300)]

STUB = Path(__file__).with_name("client_stub.js").read_bytes()
PIN = "0123456789abcdef" * 4
LOCAL = Address("127.0.0.1", 0)


LIVE = "document.querySelector('#word').closest('[aria-live=polite]').checkVisibility()"
"""Whether what says the answer is there before it: who listens to a page is told of changes in what is there."""

OUTLINED = """() => {
    const paper = getComputedStyle(document.body).backgroundColor;
    const isDrawn = (style) => style.borderTopStyle === "solid" && style.borderTopColor !== paper;
    const isDot = (style) => style.backgroundColor !== paper;
    return [...document.querySelectorAll("button, .dot")].filter((each) => each.checkVisibility() &&
        !(each.matches(".dot") ? isDot : isDrawn)(getComputedStyle(each))).map((each) => each.outerHTML.slice(0, 100));
}"""
"""Buttons without an edge, and dots that are not seen."""


@contextmanager
def page_server(client: bytes | None = STUB, lacks: str = "") -> Iterator[str]:
    """The page with another client, or none; or without another of its files."""
    files = page_files(PIN)
    files.pop("/client.js", None)
    files.pop(lacks, None)
    if client is not None:
        files["/client.js"] = WebFile(client, "text/javascript")
    says = Service(lambda channel, _: channel.send(Kind.READY, b"{}"), {})
    with in_background(Server(LOCAL, {"describe": says}, insecure=True, web=WebDoor(LOCAL, files))) as server:
        yield f"http://{server.web_address}/"


@pytest.fixture(scope="module")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "said.wav"
    write_wave(path, voice(1), RATE)
    return path


@pytest.fixture(scope="module")
def opened(microphone: Path) -> Iterator[Any]:
    with browser(microphone) as found:
        yield found


def watch(page: Any) -> list[str]:
    """Whatever the browser complains about, to be empty at the end."""
    complaints: list[str] = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"{request.url} failed"))
    return complaints


def test_it_says_who_it_is_before_the_first_word_and_then_hears_one(opened: Any) -> None:
    with page_server() as address:
        page = new_page(opened)
        complaints = watch(page)
        page.goto(address)
        page.wait_for_selector("#record:enabled")
        assert page.inner_text("#pin").replace(" ", "") == PIN
        assert "(0.5616, 1e-05)-DP for one speaker" in page.inner_text("#privacy")
        assert "animals: Says which of 3 words" in page.inner_text("#model")
        assert page.inner_text("#left") == "1,000"
        assert page.evaluate(LIVE)
        page.evaluate("document.addEventListener('answer', ({detail}) => (window.heard = detail))")
        page.focus("#record")
        page.keyboard.press("Enter")
        page.wait_for_selector("#answer:visible")
        assert page.inner_text("#word") == "bumblebee"
        assert [page.inner_text(f"#{name}") for name in ("work", "up", "down", "rounds")] == [
            "3 ms",
            "123 kB",
            "2.3 MB",
            "42",
        ]
        assert "→hello\t1\t" in page.inner_text("#kinds")
        seconds = page.evaluate("window.heard.samples.length / window.heard.rate")
        assert 0.05 < seconds <= 0.415  # what was said, and no longer than the model takes
        assert [worker.url for worker in page.workers] == [f"{address}worker.js"], (
            "what is asked does not wait for drawing"
        )
        assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
        assert not complaints
        page.close()


def test_a_button_is_seen_to_be_one_where_readers_choose_the_colors(opened: Any) -> None:
    with page_server() as address:
        page = new_page(opened)
        page.goto(address)
        page.emulate_media(forced_colors="active")
        assert page.evaluate(OUTLINED) == []
        page.close()


def test_nothing_comes_from_elsewhere_and_no_script_is_let_in(opened: Any) -> None:
    with page_server() as address:
        page = new_page(opened)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("#record:enabled")
        assert asked
        assert all(url.startswith(address) for url in asked)
        page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.bad = 1'}))")
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('img'), {src: 'https://192.0.2.1/a'}))"
        )
        assert page.evaluate("window.bad") is None
        assert page.evaluate("fetch('https://192.0.2.1/').then(() => 'came', () => 'refused')") == "refused"
        assert page.evaluate("crossOriginIsolated")
        page.close()


def test_it_complains_in_words(opened: Any) -> None:
    broken = b'export async function connect() { throw new Error("The server is not there."); }'
    missing = "did not come from the server"
    table = (
        (None, "", missing),
        (STUB, "/worker.js", missing),
        (STUB, "/server.json", "The server did not say who it is."),
        (broken, "", "The server is not there."),
    )
    for client, lacks, words in table:
        with page_server(client, lacks) as address:
            page = new_page(opened)
            page.goto(address)
            page.wait_for_selector("#error:visible")
            assert words in page.inner_text("#error")
            assert page.is_disabled("#record")
            assert not page.workers, "no secrets are kept where nothing can be asked"
            page.close()


@pytest.mark.parametrize(("name", "stays"), [("AudioError", 1), ("ProtocolError", 0)])
def test_a_connection_stays_where_something_was_wrong_with_the_sound(name: str, stays: int, opened: Any) -> None:
    """Its end would tell the server what was heard; one whose server does not keep to the protocol is left."""
    wrong = f'throw Object.assign(new Error("It is wrong."), {{ name: "{name}" }});'.encode()
    with page_server(STUB.replace(b'return { value: "bumblebee"', wrong + b'return { value: ""')) as address:
        page = new_page(opened)
        page.goto(address)
        page.click("#record:enabled")
        page.wait_for_selector("#error:visible")
        assert page.inner_text("#error") == "It is wrong."
        assert len(page.workers) == stays
        page.close()


def test_a_page_of_another_host_is_not_let_in(opened: Any) -> None:
    with page_server() as address, page_server() as other:
        page = new_page(opened)
        page.goto(address)
        ask = """(url) => new Promise((done) => {
            const socket = new WebSocket(url, "ppspeech.1");
            socket.onopen = () => done("open");
            socket.onerror = () => done("refused");
        })"""
        own, others = (each.replace("http", "ws") + "ws" for each in (address, other))
        assert page.evaluate(ask, own) == "open"
        assert page.evaluate(ask, others) == "refused"
        page.close()


def test_silence_is_said_to_be_silence(opened: Any, microphone: Path) -> None:
    before = microphone.read_bytes()
    write_wave(microphone, [0.0], RATE)
    with page_server() as address:
        page = new_page(opened)
        page.goto(address)
        page.click("#record:enabled")
        page.wait_for_selector("#record[aria-pressed=true]")
        page.click("#record")
        page.wait_for_selector("#error:visible")
        assert "Nothing was heard" in page.inner_text("#error")
        page.wait_for_selector("#record:enabled")
        assert len(page.workers) == 1, "what was prepared for a word, and may have cost a question, waits for it"
        page.close()
    microphone.write_bytes(before)
