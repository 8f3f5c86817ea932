"""Enrollment where the server sees no template: store, keeper and prober are three processes that meet over TLS."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ppspeech.audio import Mfcc
from ppspeech.bundle import Bundle
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import (
    BadCiphertextError,
    ModelError,
    PeerGoneError,
    PpspeechError,
    ProtocolError,
    RangeError,
    WrongSessionError,
)
from ppspeech.network import Address, Capacity, Server, ServerTls, in_background, make_certificate
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.speakers.gallery import EncryptedGallery, GalleryPlan, Keeper, Prober
from ppspeech.service import BudgetSpentError, Client, Door, ServiceFiles, SpeakerDeployment, connect_through, open_door
from ppspeech.service.offer import Offer, describe, read_offers
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server.cohort import Rule
from ppspeech.service.server.keeper import KEEPER, PublishedGallery, own_gallery
from ppspeech.service.server.serve import services_of
from ppspeech.service.server.stores import SealedGalleries
from ppspeech.service.tasks.speakers import Galleries
from tests.service.conftest import QUICK, Running, serving
from tests.service.voices import RATE, SPEAKERS, released, voice

Serve = Callable[..., AbstractContextManager[Running]]

THRESHOLD = 0.93
# Long enough not to stand among random bytes by chance.
FAMILY = {"annabelle": 0, "bob": 1}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("voices") / "voices", SPEAKERS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, bundle: Bundle) -> Iterator[Running]:
    deployment = SpeakerDeployment(places=4, stores=True)
    with serving(tmp_path_factory.mktemp("store"), {"voices": bundle}, speakers=deployment) as running:
        yield running


@contextmanager
def keeping(
    store: Running,
    bundle: Bundle,
    folder: Path,
    *,
    decision: Literal["keeper", "prober"] = "prober",
    limit: int | None = None,
    name: str = "family",
) -> Iterator[Door]:
    """A keeper in a process of its own; gives the door to it."""
    with connect_through(store.door(), bundle=bundle) as client:
        own = own_gallery(client, folder)
        for speaker, seed in FAMILY.items():
            own.enroll(speaker, bundle.verifier.direction(bundle.verifier.features([voice(seed)], RATE)))
        published = PublishedGallery.of(client, name, own, Rule(THRESHOLD), decision)
    pin = make_certificate(folder / "certificate.pem", folder / "key.pem")
    files = ServiceFiles.at(folder, limit)
    server = Server(
        Address("127.0.0.1", 0),
        services_of([published], files),
        tls=ServerTls(folder / "certificate.pem", folder / "key.pem"),
        limits=QUICK,
        capacity=Capacity(grace_seconds=0.2),
    )
    with in_background(server) as process:
        yield open_door(str(process.address), pin=pin, limits=QUICK)


def places_of(store: Client, folder: Path) -> list[int]:
    """Those of the family."""
    known = own_gallery(store, folder).load()
    return [int(known.places[known.names.index(name)]) for name in FAMILY]


def cosine(bundle: Bundle, one: int, other: int) -> float:
    mfcc = Mfcc(bundle.mfcc)
    vectors = [bundle.verifier.direction([mfcc(voice(seed)).features[0]]) for seed in (one, other)]
    return float(vectors[0] @ vectors[1])


def test_claims_against_a_gallery_that_its_server_cannot_read(store: Running, bundle: Bundle, tmp_path: Path) -> None:
    with keeping(store, bundle, tmp_path / "keeper") as door, connect_through(store.door(), bundle=bundle) as client:
        shapes, decided, places = [], set(), places_of(client, tmp_path / "keeper")
        with client.probing(door) as prober:
            for trial in (1, 5):
                for place, seed in zip(places, FAMILY.values(), strict=True):
                    answer = prober.verify(place, [voice(trial)], RATE)
                    wanted = cosine(bundle, seed, trial)
                    assert answer.value == (wanted >= THRESHOLD) or abs(wanted - THRESHOLD) < 0.01
                    decided.add(answer.value)
                    shapes.append(answer.transcript.shape())
            empty = min(set(range(4)) - set(places))
            assert prober.verify(empty, [voice(0)], RATE).value is False
            with pytest.raises(RangeError, match="0 to 3"):
                prober.verify(4, [voice(0)], RATE)
        assert decided == {True, False}
        assert all(shape == shapes[0] for shape in shapes)  # whichever place is claimed
        # What the store has is nothing like a template: it has no gallery in the clear, and no name.
        folder = store.log.parent
        with closing(sqlite3.connect(folder / "gallery.sqlite")) as database:
            assert database.execute("SELECT COUNT(*) FROM speakers").fetchone() == (0,)
        template = bundle.verifier.direction([Mfcc(bundle.mfcc)(voice(0)).features[0]])
        kept = (folder / "sealed.sqlite").read_bytes()
        assert b"annabelle" not in kept
        assert all(part.tobytes() not in kept for part in (template.astype("<f4")[:2], template[:1]))


def test_the_keeper_may_have_the_decision_and_counts_probes(store: Running, bundle: Bundle, tmp_path: Path) -> None:
    with (
        keeping(store, bundle, tmp_path / "keeper", decision="keeper", limit=2) as door,
        connect_through(store.door(), bundle=bundle) as client,
        client.probing(door) as prober,
    ):
        place = places_of(client, tmp_path / "keeper")[0]
        for trial in (0, 5):
            assert prober.verify(place, [voice(trial)], RATE).value is None
        with pytest.raises(BudgetSpentError):
            prober.verify(place, [voice(0)], RATE)
    lines = [json.loads(line) for line in store.log.read_text().splitlines()]
    assert [line["accepted"] for line in lines if line["event"] == "claim decided"] == [True, False]
    assert "annabelle" not in store.log.read_text()


def test_a_keeper_that_started_again_has_another_key(store: Running, bundle: Bundle, tmp_path: Path) -> None:
    with connect_through(store.door(), bundle=bundle) as client:
        with keeping(store, bundle, tmp_path / "keeper"):
            old = client.fetch("family")
        with keeping(store, bundle, tmp_path / "again") as door:
            new = client.fetch("family")
            assert old.public_key != new.public_key
            stale = client.probing(door)
            stale._questions.prober = Prober(EncryptedGallery(stale.offer.terms.plan, old.public_key, old.templates))
            with pytest.raises(PeerGoneError):
                stale.verify(0, [voice(0)], RATE)
            with client.probing(door) as prober:  # others are not hurt
                place = places_of(client, tmp_path / "again")[0]
                assert prober.verify(place, [voice(0)], RATE).value is True


def test_a_gallery_that_is_not_what_the_keeper_published_is_refused(
    store: Running, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with keeping(store, bundle, tmp_path / "keeper") as door, connect_through(store.door(), bundle=bundle) as client:
        given = client.fetch("family")
        swapped = replace(given, templates=given.templates[:-1] + bytes([given.templates[-1] ^ 1]))
        monkeypatch.setattr(client._questions, "fetch", lambda name: swapped)
        with pytest.raises(WrongSessionError, match="not what the keeper has published"):
            client.probing(door)


def test_what_does_not_fit_is_refused(store: Running, bundle: Bundle, tmp_path: Path) -> None:
    with connect_through(store.door(), bundle=bundle) as client:
        with pytest.raises(PpspeechError, match="no gallery 'nobody'"):
            client.fetch("nobody")
        with pytest.raises(PpspeechError, match="nobody is enrolled"):
            PublishedGallery.of(client, "family", own_gallery(client, tmp_path / "empty"), Rule(0.5))
        with keeping(store, bundle, tmp_path / "keeper") as door:
            (offer,) = read_offers(door.hear("describe"), "gallery")
            for request in (Request(Ask.IDENTIFY), Request(Ask.VERIFY, utterances=2)):
                channel = door.open(KEEPER, offer.agreement)
                PairSetup.agree(channel, Side.SECOND)
                channel.send(Kind.REQUEST, request.encode())
                with pytest.raises(ProtocolError):
                    channel.receive(Kind.READY, 5)
            with pytest.raises(ProtocolError):
                door.open(KEEPER, offer.agreement | {"places": 5})
        plan = client.offer.terms.gallery
        keys = (
            Keeper(plan, np.eye(plan.features)[:1], 0.5).publish(),
            Keeper(plan, np.eye(plan.features)[:1], 0.5).publish(),
        )
        with pytest.raises(ProtocolError):  # bytes that are no gallery are not kept
            client.publish("bad", EncryptedGallery(plan, keys[0].public_key, keys[1].templates))
    with connect_through(store.door(), bundle=bundle) as client, pytest.raises(PpspeechError, match="no gallery 'bad'"):
        client.fetch("bad")


def test_a_server_without_a_store(serve: Serve, bundle: Bundle) -> None:
    with (
        serve({"voices": bundle}, speakers=SpeakerDeployment(places=4)) as running,
        connect_through(running.door(), bundle=bundle) as client,
    ):
        with pytest.raises(ModelError, match="--galleries"):
            client.fetch("family")
        channel = running.door().open(client.offer.name, client.offer.agreement)
        from ppspeech.protocols.meeting import meet_as_client

        meet_as_client(channel)
        channel.send(Kind.REQUEST, Request(Ask.FETCH).encode())
        with pytest.raises(ProtocolError):
            channel.receive(Kind.READY, 5)


def test_sealed_galleries_belong_to_who_brought_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = GalleryPlan(6, 2)
    unit = np.eye(6)[:1]
    one, other = Keeper(plan, unit, 0.5).publish(), Keeper(plan, unit, 0.5).publish()
    sealed = SealedGalleries(tmp_path / "s.sqlite", "m", plan)
    assert sealed.put("family", "certificate:a", one)
    assert not sealed.put("family", "certificate:b", other)
    assert sealed.put("family", "certificate:a", other)
    found = sealed.get("family")
    assert found is not None
    assert (found.public_key, found.templates) == (other.public_key, other.templates)
    assert sealed.get("nobody") is None
    assert SealedGalleries(tmp_path / "s.sqlite", "m", GalleryPlan(6, 3)).get("family") is None
    assert SealedGalleries(tmp_path / "s.sqlite", "other", plan).get("family") is None
    with pytest.raises(RangeError):
        sealed.put("x" * 22, "certificate:a", one)
    with pytest.raises(ProtocolError):
        sealed.put("mixed", "certificate:a", EncryptedGallery(plan, one.public_key, other.templates))
    with pytest.raises(BadCiphertextError):
        sealed.put("short", "certificate:a", EncryptedGallery(plan, one.public_key, one.templates[:-1]))
    monkeypatch.setattr("ppspeech.service.server.stores.MOST_GALLERIES", 1)
    assert not sealed.put("another", "certificate:a", one)
    assert sealed.put("family", "certificate:a", one)
    (tmp_path / "no.sqlite").write_bytes(b"no database " * 100)
    with pytest.raises(PpspeechError, match="cannot hold"):
        SealedGalleries(tmp_path / "no.sqlite", "m", plan)


def test_keepers_descriptions_are_read_literally() -> None:
    offer = Offer(KEEPER, "a task", "0" * 64, "none", Galleries("family", 24, 4, "prober", "0" * 64, 0))
    assert read_offers(describe([offer]), "gallery") == (offer,)
    plain = json.loads(describe([offer]))
    for change in (
        {"places": 0},
        {"places": 10**5},
        {"features": "24"},
        {"decision": "store"},
        {"digest": "0" * 63},
        {"gallery": "x" * 22},
        {"more": 1},
    ):
        with pytest.raises(WrongSessionError, match="cannot be used"):
            read_offers(json.dumps(plain | {"gallery": [plain["gallery"][0] | change]}).encode(), "gallery")
