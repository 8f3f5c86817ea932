"""An index of songs: what is found in it, from where on, and what is refused when it is read."""

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from safetensors import safe_open

from ppspeech.audio import write_audio
from ppspeech.audio.music import MUSIC_RATE
from ppspeech.errors import AudioError, BundleError, PpspeechError
from ppspeech.network import memory_pair, run_together
from ppspeech.protocols import Kind
from ppspeech.protocols.music import METHODS
from ppspeech.service import SongIndex, index_folder, index_songs, read_index, threshold_of
from ppspeech.service.offer import describe, read_offers
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server import ServedMusic
from ppspeech.service.server.book import Tally
from ppspeech.service.server.session import run_session
from ppspeech.service.server.stores import QueryBudget
from ppspeech.service.songs import WAYS
from tests.audio.test_music import tune

NAMES = ("aardvark", "zwei", "three/läng")


@pytest.fixture(scope="module")
def songs() -> list[np.ndarray]:
    return [tune(8.0, seed) for seed in range(3)]


@pytest.fixture(scope="module")
def index(songs: list[np.ndarray]) -> SongIndex:
    return index_songs(NAMES, songs, MUSIC_RATE)


@pytest.fixture(scope="module")
def written(index: SongIndex, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "songs.index"
    index.write(path)
    return path


@pytest.mark.parametrize("way", WAYS)
def test_songs_are_named_and_strangers_are_not(way: Any, index: SongIndex, songs: list[np.ndarray]) -> None:
    for name, song in zip(NAMES, songs, strict=True):
        noisy = song[9_000:] + 0.02 * np.random.default_rng(3).normal(size=len(song) - 9_000)
        assert index.find(noisy, MUSIC_RATE, way) == name
    assert index.find(tune(8.0, 77), MUSIC_RATE, way) is None


def test_what_is_read_is_what_was_written(index: SongIndex, written: Path, songs: list[np.ndarray]) -> None:
    again = read_index(written)
    assert stat.S_IMODE(written.stat().st_mode) == 0o600  # it holds a key, and somebody's music
    assert (again.names, again.thresholds, again.map_shape) == (index.names, index.thresholds, index.map_shape)
    assert again.fingerprint == index.fingerprint
    for method in METHODS:
        for one, other in zip(again.frames[method], index.frames[method], strict=True):
            assert (one == other).all()
    assert [again.find(songs[1], MUSIC_RATE, way) for way in WAYS] == ["zwei"] * 3


def test_a_folder_becomes_an_index(tmp_path: Path, songs: list[np.ndarray]) -> None:
    import torch

    (tmp_path / "more").mkdir()
    for name, song in zip(("b", "more/a"), songs, strict=False):
        write_audio(tmp_path / f"{name}.wav", torch.from_numpy(song).float().clamp(-1, 1), MUSIC_RATE)
    made = index_folder(tmp_path)
    assert made.names == ("b", "more/a")
    assert made.find(tmp_path / "more" / "a.wav") == "more/a"
    write_audio(tmp_path / "short.wav", torch.from_numpy(songs[0][:9_000]).float(), MUSIC_RATE)
    with pytest.raises(AudioError, match=r"short: 0.6 s are no song"):
        index_folder(tmp_path)


def test_thresholds_are_above_what_other_songs_score() -> None:
    whose, best = np.array([0, 0, 1, 2]), np.array([[99, 30, 10], [99, 5, 8], [41, 99, 2], [7, 2, 99.0]])
    assert threshold_of((whose, best), NAMES, "fingerprints") == (pytest.approx(1.15 * 41), ())
    threshold, alike = threshold_of(
        (whose, best + np.array([0, 0, 80])), NAMES, "fingerprints"
    )  # two songs that are the same
    assert [(each.song, each.other) for each in alike] == [("aardvark", "three/läng"), ("zwei", "three/läng")]
    assert threshold == pytest.approx(1.15 * 41)
    assert threshold_of((whose, best / 10), NAMES, "fingerprints")[0] == 20.0
    assert threshold_of((whose, best / 10), NAMES, "shapes")[0] == 40.0


def test_the_same_song_twice_is_told(songs: list[np.ndarray]) -> None:
    made = index_songs(("a", "b"), [songs[0], songs[0]], MUSIC_RATE)
    assert [(each.song, each.other) for each in made.alike] == [("a", "b")]
    assert made.find(songs[0], MUSIC_RATE) in {"a", "b"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "names of their own"),
        (("a", "a"), "names of their own"),
        (("a" * 64,), "up to 63 bytes"),
        (("\n",), "printable"),
    ],
)
def test_names_that_cannot_be_are_refused(names: tuple[str, ...], said: str, songs: list[np.ndarray]) -> None:
    with pytest.raises(PpspeechError, match=said):
        index_songs(names, songs[: len(names)], MUSIC_RATE)


def changed(path: Path, out: Path, facts: dict[str, Any], tensors: dict[str, Any], sign: bool = True) -> Path:
    """The file with other facts or tensors; with its digest made right, where `sign` says so."""
    from ppspeech.service.songs import _digest

    with safe_open(path, framework="numpy") as opened:
        told = json.loads(opened.metadata()["index"])
    held = safetensors.numpy.load_file(path) | tensors
    held = {name: each for name, each in held.items() if each is not None}
    told |= ({"digest": _digest(held)} if sign else {}) | facts
    safetensors.numpy.save_file(held, out, {"index": json.dumps(told)})
    return out


@pytest.mark.parametrize(
    ("facts", "tensors", "said"),
    [
        ({"format": 2}, {}, "format is 2"),
        ({"digest": "0" * 64}, {}, "not those that were written"),
        ({"songs": ["one"]}, {}, "do not go with songs"),
        ({"songs": ["one", "one", "two"]}, {}, "do not go with songs"),
        ({"more": 1}, {}, "unknown more"),
        ({"votes": 0}, {}, "votes must lie in"),
        ({"fingerprints": 101.0}, {}, "threshold lies in"),
        ({"fingerprints": "high"}, {}, "of type float"),
        ({}, {"key": np.zeros(32, np.uint8)}, "make the map again"),
        ({}, {"key": None}, "no index of songs"),
        ({}, {"key": np.zeros(32, np.float32)}, "no index of songs"),
        ({}, {"extra": np.zeros(3, np.uint8)}, "no index of songs"),
        ({}, {"map": np.zeros((5, 40), np.uint8)}, "blocks must lie in"),
        ({}, {"names": np.zeros((3, 9), np.uint8)}, "cannot be"),
        ({}, {"lengths": np.full((2, 3), -1)}, "are not"),
        ({}, {"lengths": np.full((2, 3), 2**62)}, "are not"),
        ({}, {"lengths": np.full((1, 3), 100)}, "do not go with songs"),
    ],
    ids=str,
)
def test_files_that_say_anything_else_are_refused(
    facts: dict[str, Any], tensors: dict[str, Any], said: str, written: Path, tmp_path: Path
) -> None:
    assert read_index(changed(written, tmp_path / "same", {}, {})).names == NAMES
    with pytest.raises(BundleError, match=said):
        read_index(changed(written, tmp_path / "other", facts, tensors))


def test_numbers_that_no_song_has_are_refused(written: Path, tmp_path: Path) -> None:
    held = safetensors.numpy.load_file(written)
    for method, value in (("fingerprints", 2), ("shapes", 127)):
        frames = held[method].copy()
        frames[7] = value
        with pytest.raises(BundleError, match="damaged, make it again"):
            read_index(changed(written, tmp_path / "other", {}, {method: frames}))
        with pytest.raises(BundleError, match="not those that were written"):
            read_index(changed(written, tmp_path / "other", {}, {method: frames}, sign=False))


def test_what_is_no_file_of_ours_is_refused(written: Path, tmp_path: Path) -> None:
    data = written.read_bytes()
    for number, bad in enumerate((b"", b"text", data[:-1], data + b"x", b"\xff" * 64, data[:100])):
        path = tmp_path / str(number)
        path.write_bytes(bad)
        with pytest.raises(BundleError, match=str(path)):
            read_index(path)
    with pytest.raises(BundleError, match="music index FOLDER"):
        read_index(tmp_path / "nothing")


# Served.


@pytest.fixture(scope="module")
def served(index: SongIndex) -> ServedMusic:
    return ServedMusic.of("music", index)


def test_an_offer_tells_sizes_and_no_name(served: ServedMusic, index: SongIndex) -> None:
    said = describe([served.offer])
    (offer,) = read_offers(said, "music")
    assert offer == served.offer
    for name in NAMES:
        assert name.encode() not in said
    lengths = {str(len(song)).encode() for method in METHODS for song in index.frames[method]}
    assert not any(b":" + length + b"," in said for length in lengths)
    assert offer.terms.fingerprints.frames % 1_024 == 0
    assert offer.terms.agreement("f" * 64) != offer.terms.agreement("e" * 64)


def test_ways_that_are_not_served_are_not_answered(index: SongIndex, tmp_path: Path) -> None:
    few = ServedMusic.of("music", index, ("landmarks",))
    assert few.offer.terms.fingerprints is few.offer.terms.shapes is None
    assert not few.encoded
    ends = memory_pair()

    def client(channel: Any) -> None:
        from ppspeech.protocols import meet_as_client

        meet_as_client(channel)
        channel.send(Kind.REQUEST, Request(Ask.FINGERPRINTS).encode())
        channel.receive(Kind.READY, 5)

    with pytest.raises(PpspeechError, match="is not served here"):
        run_together(client, lambda c: run_session(few, c, Tally(), QueryBudget(tmp_path / "b.sqlite", None)), ends)
    for ways in ((), ("hum",)):
        with pytest.raises(PpspeechError, match="songs are found by"):
            ServedMusic.of("music", index, ways)  # type: ignore[arg-type]


def test_landmarks_cost_a_query_and_their_map_none(served: ServedMusic) -> None:
    def handlers(channel: Any) -> Any:
        from ppspeech.service.server.book import Visitor

        return served.meet(channel, Visitor())

    def client(channel: Any) -> None:
        from ppspeech.protocols import meet_as_client

        meet_as_client(channel)

    found, _ = run_together(handlers, client)
    assert {ask: handler.is_query for ask, handler in found.items()} == {
        Ask.FINGERPRINTS: True, Ask.SHAPES: True, Ask.LANDMARKS: True, Ask.MAP: False,
    }  # fmt: skip
    assert served.usual_budget >= 100
