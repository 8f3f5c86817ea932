"""Crowds behind a service: names and claims as in the clear, from who was there and who came later; chosen by size."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppspeech.audio import Mfcc
from ppspeech.bundle import Bundle
from ppspeech.crypto.lattice import KeyHolder, LatticeParameters, client_finish
from ppspeech.errors import BundleError, PpspeechError, WrongSessionError
from ppspeech.network.server import server as server_module
from ppspeech.protocols.speakers.crowd_gallery import EMPTY, CrowdTerms
from ppspeech.protocols.speakers.crowd_shards import CrowdShard, cut
from ppspeech.service import SpeakerDeployment, connect_through
from ppspeech.service.client import speakers as client_module
from ppspeech.service.plan import plan_speakers
from ppspeech.service.server import linear_scoring, stores
from ppspeech.service.server.cohort import Rule
from ppspeech.service.server.linear_scoring import CrowdScoring
from ppspeech.service.server.speakers import ServedSpeakers, SpeakerFiles
from ppspeech.service.server.stores import Enrolled, Gallery
from tests.service.conftest import Running
from tests.service.voices import RATE, SPEAKERS, released, voice

Serve = Callable[..., AbstractContextManager[Running]]

THRESHOLD = 0.93
ENROLLED = {"ann": 0, "bob": 1, "größe": 2}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("voices") / "voices", SPEAKERS)


def direction(bundle: Bundle, seed: int) -> np.ndarray:
    return bundle.verifier.direction([Mfcc(bundle.mfcc)(voice(seed)).features[0]])


def test_names_and_claims_are_those_of_plain_cosines(serve: Serve, bundle: Bundle) -> None:
    deployment = SpeakerDeployment(places=3000, scoring="crowd", threshold=THRESHOLD, enrolls=True)
    with (
        serve({"voices": bundle}, speakers=deployment, limit=100) as running,
        connect_through(running.door(), bundle=bundle, keep_payloads=True) as client,
    ):
        assert client.identify([voice(0)], RATE).value is None  # nobody is enrolled yet
        places = [client.enroll(name, [voice(seed)], RATE) for name, seed in ENROLLED.items()]
        for trial in (1, 5):
            cosines = {
                name: float(direction(bundle, seed) @ direction(bundle, trial)) for name, seed in ENROLLED.items()
            }
            best = max(cosines, key=lambda name: cosines[name])
            answer = client.identify([voice(trial)], RATE)
            assert answer.value == (best if cosines[best] >= THRESHOLD else None)
            assert answer.offline_seconds > 0
            assert "größe".encode() not in b"".join(entry.payload or b"" for entry in answer.transcript.entries)
        assert client.verify(places[1], [voice(1)], RATE).value is True
        assert client.verify(min(set(range(5)) - set(places)), [voice(1)], RATE).value is False
        later = client.enroll("late", [voice(7)], RATE)
        assert client.identify([voice(7)], RATE).value == "late"
        assert client.verify(later, [voice(7)], RATE).value is True


def test_a_name_may_be_the_servers(serve: Serve, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """And then the client's key is used for no more questions than it can lose bits."""
    deployment = SpeakerDeployment(places=9, scoring="crowd", threshold=THRESHOLD, enrolls=True, names="server")
    with (
        serve({"voices": bundle}, speakers=deployment, limit=100) as running,
        connect_through(running.door(), bundle=bundle) as client,
    ):
        client.enroll("ann", [voice(0)], RATE)
        monkeypatch.setattr(LatticeParameters, "leakable_bits", 2 * (9).bit_length())
        keys = []
        for _ in range(3):
            assert client.identify([voice(0)], RATE).value is None
            assert client._session is not None
            keys.append(client._session.met.lattice.public_key)
        assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("scoring", ["linear", "crowd"])
def test_a_decision_may_be_the_servers(
    scoring: str, serve: Serve, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One bit a claim, which may be of the client's key."""
    chosen: Any = {"scoring": scoring, "threshold": THRESHOLD, "decision": "server"}
    with (
        serve({"voices": bundle}, speakers=SpeakerDeployment(places=9, **chosen), limit=100) as running,
        connect_through(running.door(), bundle=bundle) as client,
    ):
        monkeypatch.setattr(LatticeParameters, "leakable_bits", 2)
        keys = []
        for _ in range(3):
            assert client.verify(0, [voice(0)], RATE).value is None
            assert client._session is not None
            keys.append(client._session.met.lattice.public_key)
        assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("places", "decision", "how"),
    [(10_000, "client", "linear"), (10_001, "client", "crowd"), (10_001, "server", "hardened")],
)
def test_size_chooses_and_never_weakens_what_is_the_servers(places: int, decision: str, how: str) -> None:
    assert SpeakerDeployment(places=places, decision=decision).how == how  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"places": 1 << 20}, "cannot be used"),
        ({"places": 1 << 19, "features": 1024}, "a crowd has up to"),
        ({"stores": True}, "keeps no galleries"),
        ({"normed": True}, "has no norm"),
        ({"places": 20_000, "scoring": "linear"}, "cannot be used"),
    ],
)
def test_offers_that_cannot_be_are_refused(bundle: Bundle, changed: dict[str, object], words: str) -> None:
    terms = SpeakerDeployment(scoring="crowd", places=9).terms(bundle, 0)
    with pytest.raises(BundleError, match=words):
        replace(terms, **changed)  # type: ignore[arg-type]


def test_a_client_refuses_to_exchange_too_much(serve: Serve, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = SpeakerDeployment(places=2000, scoring="crowd", threshold=THRESHOLD)
    with serve({"voices": bundle}, speakers=deployment) as running:
        monkeypatch.setattr(client_module, "MOST_BYTES", 10_000)
        with pytest.raises(WrongSessionError, match="would exchange"):
            connect_through(running.door(), bundle=bundle)


def test_thresholds_are_cosines_and_shared_by_all_places(bundle: Bundle) -> None:
    terms = SpeakerDeployment(scoring="crowd", places=50).terms(bundle, 0)
    with pytest.raises(PpspeechError, match=r"0 to 1, got -0\.5"):
        CrowdScoring(terms, Rule(-0.5))
    asked = []

    def own(templates: np.ndarray, rate: float) -> np.ndarray:
        asked.append(rate)
        return np.array([-0.3, 0.5, 7.0])[: len(templates)] if rate < 0.01 else np.full(len(templates), 0.25)

    scoring = CrowdScoring(terms, Rule(0.0, 0.01, own))
    templates = np.eye(3, terms.features)
    enrolled = Enrolled(["a", "b", "c"], templates, np.array([4, 9, 30]))
    scoring.warm(enrolled)
    made = scoring._names
    assert asked == [pytest.approx(0.01 / 50), 0.01]
    assert (-made.offsets[[5, 10, 31]].astype(np.int32) / 2**24).tolist() == pytest.approx([0.0, 0.5, 1.25])
    assert set((made.offsets.astype(np.int32) / 2**24)[[0, 1, 50]]) == {EMPTY}
    claims = scoring._claims.offsets.astype(np.int32) / 2**24  # nobody shares a claim's rate
    assert claims[[5, 10, 31, 0]].tolist() == [-0.25, -0.25, -0.25, EMPTY]


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"scoring": "linear", "ray": "local"}, BundleError, "held by shards on a Ray cluster"),
        ({"ray": "nowhere"}, PpspeechError, "local or at HOST:PORT"),
        ({"ray": "local", "shards": 0}, PpspeechError, "1 to 3 shards, got 0"),
        ({"ray": "local", "shards": 4}, PpspeechError, "1 to 3 shards, got 4"),
    ],
)
def test_clusters_that_cannot_be_are_refused(
    bundle: Bundle, tmp_path: Path, changed: dict[str, object], error: type[Exception], words: str
) -> None:
    chosen = replace(SpeakerDeployment(places=5000, scoring="crowd", threshold=THRESHOLD), **changed)  # type: ignore[arg-type]
    with pytest.raises(error, match=words):
        ServedSpeakers.of("voices", bundle, chosen, SpeakerFiles.at(tmp_path))


def test_a_gallery_tells_of_newcomers_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "AT_A_TIME", 3)
    monkeypatch.setattr(stores, "STRETCH", 5)
    nobody = np.zeros(20, np.uint8)
    gallery = Gallery(tmp_path / "gallery.sqlite", "model", 20, 4)
    places = {f"p{each}": gallery.enroll(f"p{each}", np.eye(4)[each % 4]) for each in range(8)}
    parts = list(gallery.newcomers(nobody))
    assert [len(part) for part in parts] == [3, 3, 2]
    told = {name: int(place) for part in parts for name, place in zip(part.names, part.places, strict=True)}
    assert told == places
    templates = [
        part.templates[at] @ np.eye(4)[int(name[1]) % 4] for part in parts for at, name in enumerate(part.names)
    ]
    assert templates == [1.0] * 8
    known = nobody.copy()
    known[list(told.values())] = 1
    assert list(gallery.newcomers(known)) == []
    late = gallery.enroll("late", np.eye(4)[0])
    (part,) = gallery.newcomers(known)
    assert (part.names, part.places.tolist()) == (["late"], [late])
    with pytest.raises(PpspeechError, match="somebody is enrolled at place"):
        list(Gallery(tmp_path / "gallery.sqlite", "model", 1, 4).newcomers(nobody[:1]))


def encoded_by(monkeypatch: pytest.MonkeyPatch, file: Path) -> Callable[[], list[int]]:
    """Which processes have encoded a block, one after the other."""
    encode = CrowdShard._encoded

    def noted(*given: Any) -> Any:
        with file.open("a") as notes:
            notes.write(f"{os.getpid()}\n")
        return encode(*given)

    monkeypatch.setattr(CrowdShard, "_encoded", noted)
    return lambda: [int(line) for line in file.read_text().split()] if file.exists() else []


@pytest.mark.parametrize("room", [0, 32])
def test_who_comes_is_encoded_once_and_not_by_every_session(
    room: int, serve: Serve, bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the server between sessions; one that is open takes in for itself who comes meanwhile, within its room."""
    monkeypatch.setattr(server_module, "REFRESH_SECONDS", 0.0)
    monkeypatch.setattr(server_module, "REST", 0)
    monkeypatch.setattr(linear_scoring, "KEPT_BLOCKS", room)
    encoders = encoded_by(monkeypatch, tmp_path / "encoders")
    deployment = SpeakerDeployment(places=3000, scoring="crowd", threshold=THRESHOLD, enrolls=True)
    with serve({"voices": bundle}, speakers=deployment, limit=100) as running:
        parent = running.process.pid
        with connect_through(running.door(), bundle=bundle) as early:
            assert early.identify([voice(0)], RATE).value is None
            for name, seed in ENROLLED.items():
                with connect_through(running.door(), bundle=bundle) as client:
                    client.enroll(name, [voice(seed)], RATE)
            before = len(encoders())
            assert early.identify([voice(1)], RATE).value == "bob"
            own = encoders()[before:]
            assert own
            assert parent not in own
            assert early.identify([voice(1)], RATE).value == "bob"
            assert len(encoders()) - before == len(own) * (1 if room else 2)
        with connect_through(running.door(), bundle=bundle) as client:
            before = len(encoders())
            assert client.identify([voice(2)], RATE).value == "größe"
            assert client.identify([voice(0)], RATE).value == "ann"
            assert len(encoders()) == before
        assert encoders().count(parent) >= 1


def test_servers_of_one_store_take_in_who_came_at_another(bundle: Bundle, tmp_path: Path) -> None:
    chosen = SpeakerDeployment(places=3000, scoring="crowd", threshold=THRESHOLD, enrolls=True)
    one, other = (ServedSpeakers.of("voices", bundle, chosen, SpeakerFiles.at(tmp_path)) for _ in range(2))
    places = {one.gallery.enroll(name, direction(bundle, seed)) for name, seed in ENROLLED.items()}
    assert isinstance(other.scoring, CrowdScoring)
    assert not other.scoring.known.any()
    other.refresh()
    assert set(np.flatnonzero(other.scoring.known)) == places
    made = other.scoring._names
    other.refresh()
    assert other.scoring._names is made, "nobody is new"


def test_a_store_that_is_not_there_is_not_waited_for(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = SpeakerDeployment(places=3000, scoring="crowd", threshold=THRESHOLD, enrolls=True)
    served = ServedSpeakers.of("voices", bundle, chosen, SpeakerFiles.at(tmp_path))
    served.gallery.enroll("ann", direction(bundle, 0))
    assert isinstance(served.scoring, CrowdScoring)
    with monkeypatch.context() as gone:
        gone.setattr(Gallery, "is_up", lambda _: False)
        served.refresh()
        assert not served.scoring.known.any()
    served.refresh()
    assert served.scoring.known.sum() == 1


@pytest.mark.parametrize("room", [0, 1])
def test_blocks_that_are_made_for_each_reply_are_the_same(room: int) -> None:
    plan = CrowdTerms(8, 5000)
    shards = [CrowdShard(plan.product, plan.blocks) for _ in range(2)]
    shards[1].room = room
    key = KeyHolder()
    drawn = np.random.default_rng(0)
    vector, polynomials = drawn.integers(0, 1 << 27, size=8), np.zeros((8, 2048), np.int64)
    polynomials[:, 0] = [int(each) * key.parameters.prime >> 27 for each in vector]
    query = key.query(plan.product.job, polynomials)
    slots, weights = np.array([1, 2000, 4099]), drawn.integers(-4096, 4096, size=(3, 8)).astype(np.int16)
    right = np.zeros(3 * 2048, np.int64)
    right[slots] = weights.astype(np.int64) @ vector
    found = []
    for shard in shards:
        shard.put(slots, weights)
        given = (key.public_key, key.coins, query)
        rows = shard.reply(*(np.frombuffer(each, np.uint8) for each in given))
        replies, shares, filled = cut(plan.product, rows)
        ours = np.concatenate([client_finish(key, plan.product, each.tobytes())[0] for each in replies])
        found.append((ours.astype(np.uint32) + shares, filled))
    assert [each.encoded is None for each in shards[1]._blocks] == [not room, False, True]
    assert shards[1].room == 0
    for shares, _ in found:  # 5 bits below a step of 2^-24, of which a reply adds less than 410
        off = (shares - (right << 5).astype(np.uint32)).astype(np.int32)
        assert np.abs(off.astype(np.int64)).max() < 410 << 5
    assert found[0][1].nonzero()[0].tolist() == slots.tolist()
    assert (found[0][1] == found[1][1]).all()


def test_a_plan_of_a_crowd_states_sizes(bundle: Bundle) -> None:
    plan = plan_speakers(bundle, SpeakerDeployment(places=20_000))
    assert [each.mode for each in plan.modes] == ["crowd verify", "crowd identify"]
    assert plan.details["gallery_bytes"] >= 20_000 * 10 * bundle.verifier.size
