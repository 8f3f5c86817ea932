"""Words in a real browser, encrypted by its own script: they are those of the bundle, and the server sees the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppspeech import connect, serve
from ppspeech.bundle import Bundle
from ppspeech.protocols import Kind
from ppspeech.service import Deployment, Serving
from tests.service.voices import RATE, released, voice
from tests.web.browser import ASK, browser, needs_browser, new_page, write_wave

pytestmark = [needs_browser, pytest.mark.timeout(600)]

MEETING = {Kind.LATTICE_KEY, Kind.REQUEST, Kind.READY, 0, 201, 202, 206}
"""What passes once a connection, and what only asks whether it may begin."""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("web") / "words")


@pytest.fixture(scope="module")
def server(bundle: Bundle) -> Iterator[Serving]:
    with serve(bundle, web="127.0.0.1:0", words=Deployment(frames=40), budget=100) as found:
        yield found


@pytest.fixture(scope="module")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sound") / "said.wav"


@pytest.fixture(scope="module")
def page(server: Serving, microphone: Path) -> Iterator[Any]:
    write_wave(microphone, voice(0), RATE)
    with browser(microphone) as opened:
        page = new_page(opened)
        page.goto(server.web)
        page.wait_for_selector("#record:enabled")
        yield page


def test_words_are_those_in_the_clear(page: Any, server: Serving, bundle: Bundle, microphone: Path) -> None:
    assert page.inner_text("#pin").replace(" ", "") == server.pin
    assert page.inner_text("#privacy")
    heard = []
    for seed in range(3):
        write_wave(microphone, voice(seed), RATE)
        page.wait_for_selector("#record:enabled")
        said = page.evaluate(ASK)
        assert "error" not in said, said
        clear = bundle.recognize(np.asarray(said["samples"], np.float32), RATE)
        assert said["value"] == clear.value or clear.margin < 0.5
        assert page.inner_text("#word") == said["value"]
        heard.append(said)
    assert page.inner_text("#left") == "97"
    # For the same public sizes the server sees the same, whoever asks: kinds, numbers and lengths.
    passed = [{(each["direction"], each["kind"]): each for each in said["traffic"]} for said in heard]
    assert passed[1] == passed[2]  # of one connection, for different words
    with connect(server.address, pin=server.pin) as client:
        transcript = client.recognize_all([voice(1)], RATE, order="frames")[0].transcript
    ours: dict[tuple[str, int], list[int]] = {}
    for direction, kind, size in transcript.shape():
        ours.setdefault((direction, kind), []).append(28 + size)
    theirs = {key: (each["messages"], each["bytes"]) for key, each in passed[1].items() if key[1] not in MEETING}
    assert theirs == {key: (len(sizes), sum(sizes)) for key, sizes in ours.items()}


def test_a_page_that_is_closed_while_it_asks_leaves_the_server_in_order(page: Any, server: Serving) -> None:
    other = page.context.new_page()
    other.set_default_timeout(200_000)
    other.goto(server.web)
    other.wait_for_selector("#record:enabled")
    other.click("#record")
    other.wait_for_selector("#record[aria-pressed=true]")
    other.close()
    page.wait_for_selector("#record:enabled")
    assert "error" not in page.evaluate(ASK)
