"""The five pages in a real browser: they work, for everybody, and what is said stays in them."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.bundle import Spoken, load_bundle
from ppspeech.studio import Places, Studio, entrance_file
from tests.service.voices import RATE, below_best, voice
from tests.studio.running import TOKEN, running
from tests.web.browser import ASK, browser, needs_browser, new_page, write_wave
from tests.web.test_page import LIVE, OUTLINED, watch

pytestmark = [needs_browser, pytest.mark.timeout(600)]

NAMES = ("speak", "models", "train", "filters", "together")

UNNAMED = """() => [
    ...document.querySelectorAll("input, select, button, a, canvas, progress, [tabindex='0'], svg[role=img]")]
    .filter((each) => !(each.labels?.length || each.getAttribute("aria-label") || each.textContent.trim()))
    .map((each) => each.outerHTML.slice(0, 120))"""

FAINT = """() => {
    const light = (color) => {
        const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
        const part = (value) => ((value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        return { lightness: 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b), a };
    };
    const behind = (element) => {
        for (let each = element; each; each = each.parentElement) {
            const found = light(getComputedStyle(each).backgroundColor);
            if (found.a > 0.99) return found.lightness;
        }
        return 1;
    };
    const wrong = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
        if (!own || !element.checkVisibility() || element.disabled || element.closest("option")) continue;
        const style = getComputedStyle(element);
        const [one, other] = [light(element.closest("svg") ? style.fill : style.color).lightness, behind(element)];
        const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        if (contrast < 4.5) wrong.push(`${contrast.toFixed(2)} ${element.outerHTML.slice(0, 100)}`);
    }
    return wrong;
}"""
"""Texts whose contrast with what is behind them is less than WCAG 2.2 asks for."""


CUT = """() => [...document.querySelectorAll(".card .chart text")].filter((each) => {
    const [own, card] = [each, each.closest(".card")].map((one) => one.getBoundingClientRect());
    return own.width && (own.left < card.left || own.right > card.right);
}).map((each) => each.textContent)"""
"""Texts of charts that stick out of what they are in."""

SMALL = """() => [...document.querySelectorAll("button")].filter((each) => {
    const { fontSize, fontWeight } = getComputedStyle(each);
    return parseFloat(fontSize) < 14 || fontWeight !== "600";
}).map((each) => each.outerHTML.slice(0, 100))"""
"""Buttons that are not written as the style says."""

MET = """() => [...document.querySelectorAll(".chart svg")].flatMap((svg) => {
    const texts = [...svg.querySelectorAll("text")].map((each) => [each.textContent, each.getBoundingClientRect()]);
    const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    return texts.flatMap(([one, own], at) =>
        texts.slice(at + 1).filter(([, other]) => meet(own, other)).map(([other]) => [one, other]));
})"""
"""Texts of charts that lie on one another."""

SOCKET = """(url) => new Promise((done) => {
    document.addEventListener("securitypolicyviolation", () => done("refused"));
    try { new WebSocket(url).onopen = () => done("open"); } catch { done("refused"); }
})"""
"""Whether the policy lets the page speak to this address."""


@pytest.fixture(scope="module")
def studio(bundles: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running(Places(tmp_path_factory.mktemp("work"), (bundles,))) as found:
        yield found


@pytest.fixture(scope="module")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "said.wav"
    write_wave(path, voice(1), RATE)
    return path


@pytest.fixture(scope="module")
def opened(microphone: Path) -> Iterator[Any]:
    with browser(microphone) as found:
        yield found


@pytest.fixture
def page(opened: Any, studio: Studio, tmp_path: Path) -> Iterator[Any]:
    page = new_page(opened)
    page.goto(entrance_file(studio, tmp_path).as_uri())
    page.wait_for_url(f"http://{studio.address}/speak")
    page.wait_for_selector("#bundle option", state="attached")
    yield page
    page.context.close()


def at(page: Any, studio: Studio, name: str) -> None:
    page.goto(f"http://{studio.address}/{name}")
    first = {"speak": "#bundle", "models": "#left", "train": "#recipe", "filters": "#recipe", "together": "#table"}
    page.wait_for_selector(f"{first[name]} option", state="attached")


@pytest.mark.parametrize("name", NAMES)
def test_pages_are_for_everybody(page: Any, studio: Studio, name: str) -> None:
    """Light and dark, wide and narrow: nothing sticks out, all is named and can be read, nothing is from elsewhere."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    complaints = watch(page)
    at(page, studio, name)
    page.wait_for_load_state("networkidle")
    assert all(url.startswith(f"http://{studio.address}/") for url in asked)
    assert not complaints
    assert page.locator("h1").count() == 1
    assert page.locator("nav [aria-current=page]").inner_text() == name.capitalize()
    assert page.locator("[role=status][aria-live=polite]").count() == 1
    assert page.locator("#error[role=alert]").count() == 1
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(SMALL) == []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (320, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(100)  # charts are drawn for it
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (scheme, width)
            assert page.evaluate(FAINT) == [], (scheme, width)
            assert page.evaluate(CUT) == [], (scheme, width)
            assert page.evaluate(MET) == [], (scheme, width)
    page.emulate_media(forced_colors="active")
    assert page.evaluate(OUTLINED) == []
    page.set_viewport_size({"width": 320, "height": 900})
    page.evaluate("document.getElementById('status').textContent = 'a_long_name'.repeat(20)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_keys_are_enough(page: Any, studio: Studio) -> None:
    at(page, studio, "train")
    focused = "document.activeElement.id || document.activeElement.textContent"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Skip to the page"
    page.keyboard.press("Enter")
    assert page.evaluate(focused) == "main"
    seen = []
    for _ in range(7):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(focused))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert seen == ["recipe", "corpus", "unit", "epsilon", "epochs", "plain", "start"]
    page.focus("#epsilon")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#shown") == "2.83"
    assert page.get_attribute("#epsilon", "aria-valuetext") == "epsilon 2.83"
    page.focus("nav a[href='/models']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/models")


def test_two_bundles_side_by_side(page: Any, studio: Studio, bundles: Path) -> None:
    at(page, studio, "models")
    page.select_option("#right", "margins")
    assert page.locator("#sides section h2").all_inner_texts() == ["animals", "margins"]
    from ppspeech.privacy.accounting import trade_off_curve

    curve = trade_off_curve(load_bundle(bundles / "animals").account)
    drawn = page.get_attribute("#curve polyline.a", "points").split()
    assert len(drawn) == len(curve)
    places = np.array([[float(value) for value in point.split(",")] for point in drawn])
    rates = (
        1
        - (places[:, 1] - places[:, 1].min()) / np.ptp(places[:, 1]) * (curve[0][1] - curve[-1][1])
        - (1 - curve[0][1])
    )
    assert np.abs(rates - [value for _, value in curve]).max() < 0.01
    assert f"at least {round(100 * curve[10][1])} % false negatives" in page.get_attribute("#curve svg", "aria-label")
    page.select_option("#left", "broken")
    assert page.inner_text("#sides .error").startswith("It is refused: ")


def test_a_word_is_said_and_the_studio_learns_nothing_of_it(
    page: Any, studio: Studio, bundles: Path, microphone: Path
) -> None:
    at(page, studio, "speak")
    page.select_option("#bundle", "animals")
    assert page.evaluate(LIVE)
    page.focus("#serve")
    page.keyboard.press("Enter")
    page.wait_for_selector("#record:enabled")
    assert page.evaluate("document.activeElement.id") == "record"  # the page was loaded again
    complaints = watch(page)
    assert "-DP for one speaker" in page.inner_text("#status")
    asked: list[Any] = []
    page.on("request", lambda request: asked.append(request))
    bundle = load_bundle(bundles / "animals")
    passed = []
    for seed in (1, 2, 3):
        write_wave(microphone, voice(seed), RATE)
        page.wait_for_selector("#record:enabled")
        said = page.evaluate(ASK)
        assert "error" not in said, said
        clear = bundle.recognize(np.asarray(said["samples"], np.float32), RATE)
        assert said["value"] == clear.value or clear.margin < 0.5
        assert page.inner_text("#word") == said["value"]
        traffic = said["traffic"]
        passed.append({(each["direction"], each["kind"]): (each["messages"], each["bytes"]) for each in traffic})
    assert passed[1] == passed[2]  # the server sees the same of every word
    own = [request for request in asked if request.url.startswith(f"http://{studio.address}")]
    assert [request.url for request in own if request.method != "GET" or request.post_data] == []
    assert {request.url.rpartition("/")[2] for request in own} <= {"recorder.js"}
    assert page.evaluate("localStorage.length + document.cookie.length") == 0
    assert page.evaluate("sessionStorage.length") == 1  # the token
    assert "bits of surprise a byte" in page.inner_text("#surprise")
    assert not complaints
    assert page.evaluate(SOCKET, "ws://127.0.0.1:9/ws") == "refused"


def test_a_sentence_is_said(page: Any, studio: Studio, bundles: Path, microphone: Path) -> None:
    at(page, studio, "speak")
    page.select_option("#bundle", "sentences")
    page.click("#serve:enabled")
    page.wait_for_selector("#record:enabled:has-text('Record a sentence')")
    assert page.inner_text("#title").startswith("Say a sentence.")
    write_wave(microphone, voice(3, 1.5), RATE)
    said = page.evaluate(ASK)
    assert "error" not in said, said
    heard = [Spoken(each["word"], each["start"], each["end"]) for each in said["value"]]
    samples = torch.tensor(said["samples"])
    assert below_best(load_bundle(bundles / "sentences"), samples, heard) < 1.0
    assert [line.split()[0] for line in page.locator("#word span").all_inner_texts()] == [each.value for each in heard]


def test_parties_are_watched(page: Any, studio: Studio) -> None:
    at(page, studio, "together")
    page.select_option("#protocol", "eigen")
    page.fill("#parties", "2")
    page.click("#start")
    page.wait_for_selector("#start:enabled")
    page.wait_for_selector("#result:visible")
    assert page.inner_text("#status") == "Done."
    assert page.locator("#seen tr").count() >= 2
    assert "parties;" in page.get_attribute("#graph svg", "aria-label")
    assert "-DP for one" in page.inner_text("#figures")


def test_what_fails_is_said_in_words(page: Any, studio: Studio) -> None:
    at(page, studio, "together")
    page.fill("#epsilon", "900")
    page.evaluate("document.getElementById('parties').min = document.getElementById('parties').value = '1'")
    page.click("#start")
    page.wait_for_selector("#error:visible")
    assert page.inner_text("#error") == "parties must be between 2 and 12, got 1"
    page.evaluate("sessionStorage.clear()")
    page.reload()
    page.get_by_text("open the studio by the address").wait_for()


def test_whoever_has_another_port_is_not_sent_the_token(opened: Any, studio: Studio) -> None:
    """A server of somebody else on this machine, which the same tab visits; and the studio knows the tab again."""
    told: list[str] = []

    class Curious(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append(f"{self.path} {self.headers}")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    page = new_page(opened)
    page.goto(studio.entrance)
    page.wait_for_url("**/speak")
    page.wait_for_selector("#bundle option", state="attached")
    assert TOKEN not in page.url
    with ThreadingHTTPServer(("127.0.0.1", 0), Curious) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        assert page.evaluate("sessionStorage.length") == 0
        other.shutdown()
        thread.join()
    assert told
    assert not any(TOKEN in each for each in told)
    at(page, studio, "models")
    page.evaluate("sessionStorage.clear()")
    page.goto(studio.entrance.replace("/speak", "/models"))  # no page is loaded for what is behind a #
    page.wait_for_function("sessionStorage.length === 1 && !location.hash")
    page.wait_for_selector("#left option", state="attached")
    page.context.close()
