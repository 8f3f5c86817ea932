"""Speaker services: decisions and names are those of plain cosines, claims and numbers of speakers stay hidden."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.audio import Mfcc
from ppspeech.bundle import Bundle
from ppspeech.errors import (
    BadTypeError,
    BundleError,
    ModelError,
    PeerGoneError,
    PpspeechError,
    RangeError,
    WrongSessionError,
)
from ppspeech.network import memory_pair
from ppspeech.protocols.meeting import meet_as_client
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.scores.mixture import MixturePlan
from ppspeech.service import BudgetSpentError, Client, SpeakerDeployment, connect_through
from ppspeech.service.offer import Offer, describe, read_offers
from ppspeech.service.requests import (
    Ask,
    Request,
    receive_name,
    receive_template,
    send_name,
    send_request,
    send_template,
)
from ppspeech.service.server.stores import Gallery
from ppspeech.service.tasks.speakers import Speakers
from tests.service.conftest import Running
from tests.service.voices import RATE, SPEAKERS, released, voice

Serve = Callable[..., AbstractContextManager[Running]]

THRESHOLD = 0.93
# Long enough not to stand among random bytes by chance.
ENROLLED = {"annabelle": 0, "bob": 1, "größe": 2}
"""Names, and the seeds of what they say."""


def plain_cosine(bundle: Bundle, one: int, other: int) -> float:
    mfcc = Mfcc(bundle.mfcc)
    vectors = [bundle.verifier.direction([mfcc(voice(seed)).features[0]]) for seed in (one, other)]
    return float(vectors[0] @ vectors[1])


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("voices") / "voices", SPEAKERS)


@pytest.fixture
def served(serve: Serve, bundle: Bundle) -> Iterator[Running]:
    deployment = SpeakerDeployment(places=5, threshold=THRESHOLD, enrolls=True)
    with serve({"voices": bundle}, speakers=deployment, limit=100) as running:
        yield running


def ask(running: Running, bundle: Bundle, **options: bool) -> Client:
    return connect_through(running.door(), bundle=bundle, **options)  # type: ignore[arg-type]


def test_decisions_and_names_are_those_of_plain_cosines(served: Running, bundle: Bundle) -> None:
    decisions = set()
    shapes = []
    with ask(served, bundle, keep_payloads=True) as client:
        assert client.identify([voice(0)], RATE).value is None  # nobody is enrolled yet
        places = [client.enroll(name, [voice(seed)], RATE) for name, seed in ENROLLED.items()]
        for trial in (1, 5):
            cosines = {name: plain_cosine(bundle, seed, trial) for name, seed in ENROLLED.items()}
            for place, cosine in zip(places, cosines.values(), strict=True):
                answer = client.verify(place, [voice(trial)], RATE)
                shapes.append(answer.transcript.shape())
                decisions.add(answer.value)
                assert answer.value == (cosine >= THRESHOLD) or abs(cosine - THRESHOLD) < 0.01
            best = max(cosines, key=lambda name: cosines[name])
            answer = client.identify([voice(trial)], RATE)
            expected = best if cosines[best] >= THRESHOLD else None
            assert answer.value == expected or abs(cosines[best] - THRESHOLD) < 0.01
            wire = b"".join(entry.payload or b"" for entry in answer.transcript.entries)
            assert b"annabelle" not in wire
        empty = min(set(range(5)) - set(places))
        assert client.verify(empty, [voice(0)], RATE).value is False
    assert decisions == {True, False}
    assert all(shape == shapes[0] for shape in shapes)  # whichever place is claimed
    time.sleep(0.3)
    for name in ENROLLED:
        assert name not in served.log.read_text()


def test_enrollment_has_its_limits(served: Running, bundle: Bundle) -> None:
    with ask(served, bundle) as client:
        for number in range(5):
            client.enroll(f"s{number}", [voice(number)], RATE)
        for name in ("s0", "s9"):  # taken; no room
            with pytest.raises(PpspeechError, match="not enrolled"):
                client.enroll(name, [voice(0)], RATE)
        with pytest.raises(RangeError, match="1 to 21 bytes"):
            client.enroll("x" * 22, [voice(0)], RATE)
        with pytest.raises(RangeError, match="0 to 4"):
            client.verify(5, [voice(0)], RATE)
        assert client.identify([voice(3)], RATE).value is not None
        channel = served.door().open(client.offer.name, client.offer.agreement)
        meet_as_client(channel)
        send_request(channel, Request(Ask.ENROLL))
        send_template(channel, "liar", np.full(client.offer.terms.features, 7.0))  # not of unit length
        with pytest.raises(PeerGoneError):
            channel.receive(Kind.READY, at_most=10)
        assert client.identify([voice(3)], RATE).value is not None


@pytest.mark.parametrize("scoring", [None, "linear"])
def test_the_server_may_keep_the_decision(serve: Serve, bundle: Bundle, scoring: str | None) -> None:
    chosen = {"decision": "server", "scoring": scoring}
    deployment = SpeakerDeployment(places=2, threshold=THRESHOLD, enrolls=True, **chosen)  # type: ignore[arg-type]
    with serve({"voices": bundle}, speakers=deployment, limit=2) as running, ask(running, bundle) as client:
        place = client.enroll("ann", [voice(0)], RATE)
        assert client.verify(place, [voice(0)], RATE).value is None
        assert client.verify(1 - place, [voice(0)], RATE).value is None
        with pytest.raises(BudgetSpentError):
            client.verify(place, [voice(0)], RATE)
    lines = [json.loads(line) for line in running.log.read_text().splitlines()]
    assert [line["accepted"] for line in lines if line["event"] == "claim decided"] == [True, False]


def test_another_bundle_or_no_enrollment(
    serve: Serve, bundle: Bundle, bundles: dict[str, Bundle], tmp_path: Path
) -> None:
    with serve({"voices": bundle, "whole": bundles["whole"]}) as running:
        with pytest.raises(ModelError, match="enrolls nobody"), ask(running, bundle) as client:
            client.enroll("ann", [voice(0)], RATE)
        with pytest.raises(WrongSessionError, match="ours is"):
            ask(running, released(tmp_path / "other", SPEAKERS, seed=7))
        assert running.connect("whole").offer.name == "whole"
        with pytest.raises(PpspeechError, match="does not offer 'voices', only whole"):
            running.connect("voices")
    with pytest.raises(ModelError, match="speaker_ubm is needed"):
        assert bundles["whole"].verifier


def test_galleries(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path / "g.sqlite", "m", places=2, features=3)
    unit = np.array([0.6, 0.8, 0.0])
    place = gallery.enroll("ann", unit)
    assert gallery.enroll("ann", unit) is None
    assert gallery.enroll("bob", unit[::-1]) == 1 - (place or 0)
    assert gallery.enroll("eve", unit) is None
    known = Gallery(tmp_path / "g.sqlite", "m", 2, 3).load()
    turn = 1 if place == 0 else -1
    assert (known.names, known.places.tolist()) == (["ann", "bob"][::turn], [0, 1])
    np.testing.assert_allclose(known.templates, [unit, unit[::-1]][::turn], atol=1e-6)
    assert not Gallery(tmp_path / "g.sqlite", "other", 2, 3).load()
    with pytest.raises(PpspeechError, match="at place 1, and there are 1 places: serve places=2 or more"):
        Gallery(tmp_path / "g.sqlite", "m", 1, 3).load()
    for name, vector in (
        ("", unit),
        ("a\nb", unit),
        ("x" * 22, unit),
        ("a", 2 * unit),
        ("a", unit[:2]),
        ("a", np.full(3, np.nan)),
    ):
        with pytest.raises(RangeError):
            gallery.enroll(name, vector)
    with pytest.raises(PpspeechError):
        Gallery(tmp_path / "g.sqlite", "m", 0, 3)
    (tmp_path / "no.sqlite").write_bytes(b"no database " * 100)
    with pytest.raises(PpspeechError, match="cannot hold"):
        Gallery(tmp_path / "no.sqlite", "m", 2, 3)
    means = Gallery(tmp_path / "g.sqlite", "m", 2, 3, "means")
    assert not means.load()  # a kind has speakers of its own
    assert means.enroll("ann", 5 * unit) in {0, 1}
    np.testing.assert_allclose(means.load().templates, [5 * unit], atol=1e-6)
    for wrong in (np.full(3, np.inf), np.full(3, 1e4)):
        with pytest.raises(RangeError, match="means"):
            means.enroll("bob", wrong)


def test_places_do_not_tell_how_many_are_enrolled(tmp_path: Path) -> None:
    """Chi-square at 1e-4 over 8 places: of the first, and of the fourth who is enrolled."""
    unit = np.array([0.6, 0.8, 0.0])
    counts = np.zeros((2, 8), np.int64)
    for model in range(80):
        gallery = Gallery(tmp_path / "g.sqlite", str(model), places=8, features=3)
        first, *_, fourth = (gallery.enroll(name, unit) for name in "abcd")
        assert gallery.load().places.tolist() == sorted(set(gallery.load().places.tolist()))
        counts[0, first] += 1
        counts[1, fourth] += 1
    assert all(stats.chisquare(each).pvalue > 1e-4 for each in counts)


FINE = {
    "features": 10, "places": 5, "scoring": "linear", "normed": False, "cohort": 0, "mixture": None, "frames": 0,
    "decision": "client", "names": "client", "enrolls": False, "stores": False,
}  # fmt: skip
MIXTURE = MixturePlan(30, 5, 2, models=5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"features": 0},
        {"features": 10**6},
        {"places": 0},
        {"places": 5000, "stores": True},
        {"cohort": 4},
        {"normed": True, "cohort": 65},
        {"mixture": MIXTURE},
        {"frames": 5000},
        {"scoring": "gmm"},
        {"scoring": "gmm", "mixture": replace(MIXTURE, models=6)},
        {"scoring": "gmm", "mixture": replace(MIXTURE, components=3)},
        {"scoring": "gmm", "mixture": replace(MIXTURE, frames=10**5)},
        {"scoring": "gmm", "mixture": replace(MIXTURE, cohort=3)},
        {"scoring": "hardened"},
        {"scoring": "hardened", "decision": "server", "normed": True},
    ],
    ids=str,
)
def test_offers_are_read_literally(wrong: dict[str, Any]) -> None:
    with pytest.raises(BundleError):
        Speakers(**(FINE | wrong))


def test_offers_say_what_both_parties_need() -> None:
    linear = Speakers(**FINE)
    assert linear.plan.columns == 5
    assert linear.identifies
    gmm = Speakers(**(FINE | {"scoring": "gmm", "mixture": MIXTURE}))
    assert gmm.verification.plan is MIXTURE
    normed = Speakers(**(FINE | {"scoring": "gmm", "mixture": MIXTURE, "normed": True}))
    hard = Speakers(**(FINE | {"scoring": "hardened", "decision": "server"}))
    assert (gmm.identifies, normed.identifies, hard.identifies) == (True, False, False)
    assert len({str(terms.agreement("0" * 64)) for terms in (linear, gmm, normed, hard)}) == 4
    assert linear.agreement("0" * 64) != linear.agreement("1" * 64)
    offer = Offer("voices", "a task", "0" * 64, "none", linear)
    assert read_offers(describe([offer.left(3)]), "speakers") == (offer.left(3),)
    assert replace(offer, queries_left=3, task="another").agreement == offer.agreement


def test_names_on_the_wire_are_text() -> None:
    here, there = memory_pair()
    here.send(Kind.GALLERY, b"\xff" * 21 + bytes(8))
    with pytest.raises(BadTypeError):
        receive_template(there, 2)
    here.send(Kind.REQUEST, b"\xff" * 21)
    with pytest.raises(BadTypeError):
        receive_name(there)
    with pytest.raises(RangeError):
        send_name(here, "")
    send_name(here, "größe")
    assert receive_name(there) == "größe"
