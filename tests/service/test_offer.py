"""What a server says of itself is read to the last field, and nothing else is believed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from ppspeech.bundle import Bundle
from ppspeech.errors import BundleError, PpspeechError, WrongSessionError
from ppspeech.service import Client, Deployment, connect_through, open_door, server_health
from ppspeech.service.offer import Offer, describe, read_offers
from ppspeech.service.server.words import ServedWords
from ppspeech.service.tasks.words import Words
from tests.service.voices import CLASSES, released


@pytest.fixture(scope="module")
def offer(bundles: dict[str, Bundle]) -> Offer[Words]:
    return ServedWords.of("whole", bundles["whole"], Deployment(frames=40)).offer


def test_it_comes_back_as_it_was_and_tells_no_label(offer: Offer[Words], tmp_path: Any) -> None:
    classes = ServedWords.of("classes", released(tmp_path / "c", CLASSES), Deployment()).offer
    assert classes.terms.statistics is not None
    assert classes.terms.modes == ("frames", "garbled")
    data = describe((offer, classes))
    assert read_offers(data, "words") == (offer, classes)
    assert read_offers(data, "speakers") == ()
    assert offer.terms.modes == ("frames", "ahead", "stream")  # sums over all paths are no circuit's
    for label in ("aardvark", "bumblebee", "caterpillar"):
        assert label not in data.decode()


CHANGES: list[tuple[str, Any]] = [
    ("name", "Not A Name"),
    ("name", 7),
    ("privacy", ""),
    ("task", ""),
    ("task", "x\ny"),
    ("fingerprint", "12"),
    ("fingerprint", "G" * 64),
    ("modes", []),
    ("modes", ["stream"]),
    ("modes", ["frames", "garbled"]),
    ("modes", ["frames", "frames"]),
    ("modes", ["frames", "telepathy"]),
    ("modes", "frames"),
    ("batches", []),
    ("batches", [2]),
    ("batches", [1, 1]),
    ("batches", [1, 10_000]),
    ("batches", [1, "2"]),
    ("queries_left", -1),
    ("queries_left", True),
    ("queries_left", 10**9),
    ("statistics", {"mean": [0.0], "std": [1.0], "radius": None}),
    ("statistics", {"mean": [0.0], "std": [0.0], "radius": None}),
    ("statistics", 3),
    ("shape.words", 0),
    ("shape.words", 2.0),
    ("shape.dimensions", 5),
    ("shape.frames", 10**6),
    ("shape.more", 1),
    ("shape.operation", "guess"),
    ("mfcc.sample_rate", 0),
    ("mfcc.window_s", 1e6),
    ("mfcc.cmvn", "public"),
    ("mfcc.more", 1),
    ("more", 1),
]


@pytest.mark.parametrize(("field", "value"), CHANGES, ids=str)
def test_a_description_that_is_not_right_is_refused(offer: Offer[Words], field: str, value: Any) -> None:
    plain = json.loads(describe((offer,)))
    at = plain["words"][0]
    *path, last = field.split(".")
    for name in path:
        at = at[name]
    at[last] = value
    with pytest.raises(WrongSessionError, match="cannot be used"):
        read_offers(json.dumps(plain).encode(), "words")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"format": 1}',
        b'{"format": 2, "words": []}',
        b'{"format": 1, "words": [], "speakers": []}',
        b'{"format": 1, "words": {}}',
        b'{"format": 1, "words": [3]}',
        b'{"format": 1, "format": 1, "words": []}',
        b'{"format": 1, "words": [NaN]}',
        b"\xff",
        b"[" * 100_000,
    ],
    ids=lambda data: str(data[:40]),
)
def test_what_is_no_description_is_refused(data: bytes) -> None:
    with pytest.raises(WrongSessionError):
        read_offers(data, "words")


def test_two_of_one_name_or_too_many_are_refused(offer: Offer[Words]) -> None:
    for offers in ((offer, offer), tuple(replace(offer, name=f"m{n}") for n in range(65))):
        with pytest.raises(BundleError, match="different names"):
            describe(offers)


class Says:
    """A door behind which someone says something."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def hear(self, service: str) -> bytes:
        return self.data

    def open(self, service: str, params: dict[str, Any]) -> None:
        raise AssertionError("nothing is asked yet")


def test_a_client_takes_no_offer_that_it_cannot_bear(offer: Offer[Words]) -> None:
    vast = replace(
        offer,
        terms=replace(
            offer.terms, shape=replace(offer.terms.shape, words=1_000, states=100, ends=(99,), frames=3_000, bits=32)
        ),
    )
    with pytest.raises(WrongSessionError, match="bytes an utterance"):
        connect_through(Says(describe((vast,))))  # type: ignore[arg-type]
    assert isinstance(connect_through(Says(describe((offer,)))), Client)  # type: ignore[arg-type]


def test_health_is_an_object_or_an_error() -> None:
    assert server_health(Says(b'{"status": "ok"}')) == {"status": "ok"}  # type: ignore[arg-type]
    for data in (b"", b"3", b"[" * 100_000):
        with pytest.raises(WrongSessionError):
            server_health(Says(data))  # type: ignore[arg-type]


def test_doors_that_cannot_be() -> None:
    for options in ({}, {"pin": "12"}, {"pin": "0" * 64, "ca": "x.pem"}, {"pin": "0" * 64, "key": "k.pem"}):
        with pytest.raises(PpspeechError):
            open_door("127.0.0.1:1", **options)  # type: ignore[arg-type]
    with pytest.raises(PpspeechError, match="loopback"):
        open_door("10.0.0.1:1", insecure=True)
