"""The client that runs in a page: its own tests under node, and words asked of a server of the package."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppspeech import serve
from ppspeech.audio.voices import Espeak, Prompt
from ppspeech.bundle import Bundle
from ppspeech.network import Address, Capacity, Server, in_background, make_certificate
from ppspeech.service import Deployment, ServiceFiles, build_services, connect
from ppspeech.service.client.words import FrontEnd
from ppspeech.service.server import Choices
from tests.service.conftest import QUICK
from tests.service.voices import CLASSES, FAR, FULL, HMM, LIVE, MIXTURES, WHOLE, released
from tests.web.conftest import PAGE, WEB, run_node
from tests.web.relay import relayed

ESPEAK_RATE, SURE = 22_050, 0.2

MODELS = {
    "whole": (HMM, WHOLE, {}),
    "far": (HMM, FAR, {"operation": "viterbi", "reject": True}),
    "live": (MIXTURES, LIVE, {"bits": 30}),
    "full": (FULL, WHOLE, {"operation": "viterbi", "frames": 70}),
    "classes": (CLASSES, WHOLE, {}),
}
"""Kinds of front ends and of shapes, small."""


@pytest.fixture(scope="module")
def clips() -> list[Any]:
    """Built-in voices, at eSpeak's own rate; they last up to half a second."""
    said = [("stop", "en+f2"), ("up", "en-us+m3"), ("yes", "en-us+f4"), ("go", "en+m7")]
    with Espeak() as espeak:
        spoken = [espeak.say(Prompt(text, voice, rate=260)) for text, voice in said]
    return [each[: round(0.4 * ESPEAK_RATE)] for each in spoken]


@contextmanager
def serving(folder: Path, name: str) -> Iterator[tuple[Bundle, int]]:
    """A server of one model over plain TCP on loopback, its address's port."""
    settings, mfcc, choices = MODELS[name]
    bundle = released(folder / name, settings=settings, mfcc=mfcc, seed=3)
    words = Deployment(**({"frames": 40} | choices))  # type: ignore[arg-type]
    services = build_services({name: bundle}, ServiceFiles.at(folder, None, folder / "metrics"), Choices(words))
    server = Server(
        Address("127.0.0.1", 0), services, insecure=True, limits=QUICK, capacity=Capacity(grace_seconds=1.0)
    )
    with in_background(server) as running:
        yield bundle, running.address.port


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server for the tests that leave it as they found it."""
    with serving(tmp_path_factory.mktemp("whole"), "whole") as (_, port):
        yield port


def asked(node: str, port: int | str, sounds: list[Any], rate: int, **options: Any) -> list[dict[str, Any]]:
    """What the built client answers, asked over plain TCP, or over a WebSocket to an address."""
    spelled = [{"samples": base64.b64encode(np.float32(each).tobytes()).decode(), "rate": rate} for each in sounds]
    where = {"address": port} if isinstance(port, str) else {"port": port}
    given = {"client": str(PAGE / "client.js"), **where, "options": options, "clips": spelled}
    found: list[dict[str, Any]] = json.loads(run_node(node, str(WEB / "test" / "speak.mjs"), given=given))
    return found


@pytest.mark.parametrize("name", MODELS)
def test_words_are_those_of_python(name: str, node: str, clips: list[Any], tmp_path: Path) -> None:
    with serving(tmp_path, name) as (bundle, port):
        heard = [bundle.recognize(clip, ESPEAK_RATE) for clip in clips]
        with connect(f"127.0.0.1:{port}", insecure=True, limits=QUICK) as client:
            expected = [answer.value for answer in client.recognize_all(clips, ESPEAK_RATE, "frames")]
            front_end = FrontEnd(client.offer.terms)
        found = asked(node, port, clips, ESPEAK_RATE)
    for clip, mine, theirs, clear in zip(clips, found, expected, heard, strict=True):
        assert "error" not in mine, mine
        np.testing.assert_allclose(mine["features"], front_end.frames(clip, ESPEAK_RATE)[0], atol=1e-4)
        if theirs is not None and clear.margin > SURE:
            assert mine["value"] == theirs == clear.value
    assert sum(each.margin > SURE for each in heard) >= 2


@pytest.mark.parametrize("order", ["frames", "ahead"])
def test_the_server_sees_the_same_of_both_clients(order: Any, node: str, clips: list[Any], whole: int) -> None:
    """Kinds and lengths of all frames, both ways, from HELLO to the end, for two words in one session."""
    seen = []
    for is_python in (True, False):
        with relayed(whole) as relay:
            if is_python:
                with connect(f"127.0.0.1:{relay.port}", insecure=True, limits=QUICK) as client:
                    for clip in clips[:2]:
                        client.recognize_all([clip], ESPEAK_RATE, order)
            else:
                found = asked(node, relay.port, clips[1:3], ESPEAK_RATE, order=order)
                assert all("error" not in each for each in found)
        seen.append([(up.frames, down.frames) for up, down in relay.connections])
    assert len(seen[0]) == 2
    assert sum(len(up) for up, _ in seen[0]) > 50
    assert seen[0] == seen[1]


def test_nothing_is_sent_for_sound_that_cannot_be_used(node: str, clips: list[Any], whole: int) -> None:
    silent, long, broken = np.zeros(8_000), np.tile(clips[0], 10), np.full(8_000, np.nan)
    with relayed(whole) as relay:
        found = asked(node, relay.port, [silent, long, broken, clips[0][:100]], ESPEAK_RATE, prepares=False)
    reasons = ["silent", "3 to 40 frames", "NaN", "too short"]
    for answer, reason in zip(found, reasons, strict=True):
        assert answer["error"].startswith("AudioError")
        assert reason in answer["error"]
    assert len(relay.connections) == 1, "what is offered is asked, and nothing else"


def test_a_word_over_a_websocket(packages: str, clips: list[Any], tmp_path: Path) -> None:
    """The same client through the door for pages, over TLS."""
    bundle = released(tmp_path / "words", seed=3)
    make_certificate(tmp_path / "certificate.pem", tmp_path / "key.pem")
    own = {"certificate": tmp_path / "certificate.pem", "key": tmp_path / "key.pem", "words": Deployment(frames=40)}
    with serve(bundle, web="127.0.0.1:0", **own) as server:
        assert server.web is not None
        address = server.web.replace("https://", "wss://") + "ws"
        found = asked(packages, address, clips[:2], ESPEAK_RATE)
    heard = [bundle.recognize(clip, ESPEAK_RATE) for clip in clips[:2]]
    assert max(each.margin for each in heard) > SURE
    for mine, clear in zip(found, heard, strict=True):
        assert "error" not in mine, mine
        assert mine["value"] == clear.value or clear.margin < SURE


CHEATS = {
    "HELLO": (0, -1, "does not agree"),
    "READY": (7, 0, "yes \\(1\\) or no"),
    "BASE_REPLY": (202, 0, "no point of the group|closed the connection|ended the session"),
    "BASE_COLUMNS": (206, -1, "it cheats"),
    "RESUME": (203, -1, "different places"),
    "COLUMNS": (204, -1, "it cheats"),
    "REPLY": (3, 0, "not of this product and key"),
    "FLIGHT": (215, 0, "expected a message of kind"),
}
"""What a server may change in its first message of a kind, and what the client says of it."""


def test_a_server_that_cheats_is_refused(node: str, clips: list[Any], whole: int) -> None:
    """Each connection has one byte changed; the client ends it, says why, and begins anew for the next word."""
    alter = [None, *((kind, place) for kind, place, _ in CHEATS.values())]
    with relayed(whole, alter) as relay:
        *found, last = asked(node, relay.port, [clips[0]] * (len(CHEATS) + 1), ESPEAK_RATE)
    for answer, (what, (_, _, why)) in zip(found, CHEATS.items(), strict=True):
        assert re.search(why, answer.get("error", "no error")), (what, answer)
    assert "error" not in last
    assert len(relay.connections) == len(CHEATS) + 2
    aborts = [up.frames[-1] for up, _ in relay.connections[1 : len(CHEATS) + 1]]
    assert set(aborts) == {(255, 1)}, "a server that cheats sees one constant ABORT, whatever it did"


def test_its_own_tests_pass(packages: str, built: Path) -> None:
    """Vectors and refusals, in TypeScript."""
    said = run_node(packages, "--test", str(WEB / "build" / "test"))
    assert "# fail 0" in said


@pytest.mark.slow
def test_its_mutants_are_killed(packages: str, built: Path) -> None:
    """Without one of its checks a test of its own fails."""
    assert "SURVIVED" not in run_node(packages, "mutants.mjs")


def test_its_types_fit(packages: str) -> None:
    run_node(packages, "node_modules/typescript/bin/tsc", "-p", ".")


def test_what_is_packaged_is_what_the_build_makes(built: Path) -> None:
    assert built.read_bytes() == (PAGE / "client.js").read_bytes(), "run `make web`"


def test_the_client_is_small() -> None:
    import gzip

    assert len(gzip.compress((PAGE / "client.js").read_bytes())) < 100_000
