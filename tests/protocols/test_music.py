"""Songs, encrypted: the same names as in the clear, at every offset; landmarks in a sealed map as in a table."""

from typing import Any

import numpy as np
import pytest
from scipy import signal

from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto import MapKey
from ppspeech.errors import BadLengthError, PpspeechError, ProtocolError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import Kind, Party, meet_as_client, meet_as_server
from ppspeech.protocols.music import (
    METHODS,
    LandmarkMap,
    LandmarkShape,
    Method,
    MusicShape,
    Songs,
    find_song,
    look_up_landmarks,
    music_cost,
    seal_landmarks,
    serve_songs,
    votes,
)
from ppspeech.protocols.music import landmarks as by_landmarks
from ppspeech.protocols.music import matching as by_frames

MEETING = {Kind.LATTICE_KEY, CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME}


def made_frames(method: Method, frames: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if method == "fingerprints":
        return rng.choice(np.array([-1, 1], np.int8), size=(frames, 32))
    unit = rng.normal(size=(frames, 12))
    return np.rint(126 * unit / np.linalg.norm(unit, axis=1, keepdims=True)).astype(np.int8)


def made_songs(shape: MusicShape, lengths: tuple[int, ...], threshold: float, seed: int = 0) -> Songs:
    frames = [made_frames(shape.method, length, 100 * seed + number) for number, length in enumerate(lengths)]
    return Songs(shape, frames, tuple(f"söng {number}" for number in range(len(lengths))), threshold)


def asked(own: Songs, clip: Any) -> str | None:
    """By both whole programs."""
    params = own.shape.to_params()
    songs = [song.tolist() for song in own.frames]
    told, _ = run_together(
        lambda c: by_frames.client(Party("client", {"server": c}), np.asarray(clip).tolist(), shape=params),
        lambda c: by_frames.server(Party("server", {"client": c}), songs, list(own.names), own.threshold, shape=params),
    )
    return told


@pytest.mark.parametrize("method", METHODS)
def test_the_client_learns_the_song_as_in_the_clear(method: Method) -> None:
    shape = MusicShape(method, 90, 3, pattern=8, name_bytes=9)
    own = made_songs(shape, (30, 25, 20), threshold=4.0)
    rng = np.random.default_rng(1)
    noisy = own.frames[2][:8].copy()
    noisy[rng.random(noisy.shape) < 0.1] *= -1
    clips = {
        "first frame of all": own.frames[0][:8],
        "last frames of a song": own.frames[1][-8:],
        "last of all": own.frames[2][-8:],
        "noisy": noisy,
        "between two songs": np.concatenate((own.frames[0][-2:], own.frames[1][:6])),
        "a stranger": made_frames(method, 8, 999),
        "silence": np.zeros_like(noisy),
    }
    told = {name: asked(own, clip) for name, clip in clips.items()}
    assert told == {name: own.find(clip) for name, clip in clips.items()}
    assert told == {
        "first frame of all": "söng 0", "last frames of a song": "söng 1", "last of all": "söng 2", "noisy": "söng 2",
        "between two songs": "söng 1", "a stranger": None, "silence": None,
    }  # fmt: skip


@pytest.mark.parametrize(("method", "frames"), [("shapes", 300), ("fingerprints", 300), ("fingerprints", 4_200)])
def test_scores_at_all_offsets_are_those_of_scipy(method: Method, frames: int) -> None:
    """Block edges too: a stretch of the signal has some two thousand coefficients."""
    shape = MusicShape(method, frames, 1, pattern=40)
    own, clip = made_songs(shape, (frames - 7,), 1.0), made_frames(method, 40, 5)

    def client(channel: Channel) -> Any:
        met = meet_as_client(channel)
        with met.session():
            return met.correlate(shape.plan, shape.clip(clip))

    def server(channel: Channel) -> Any:
        met = meet_as_server(channel)
        with met.session():
            return met.correlate(shape.plan, own.encoded())

    scale = shape.scale
    found = scale.decode(scale.ring.to_signed(scale.ring.join(*run_together(client, server))))
    pattern = shape.clip(clip)
    exact = sum(signal.correlate(own.signal[c], pattern[c], "valid") for c in range(len(pattern)))
    assert np.abs(found - exact).max() <= shape.error
    assert np.abs(own.scores(clip) - exact).max() < 1e-9
    if method == "shapes":
        assert shape.error < 2.0**-5


@pytest.mark.parametrize("method", METHODS)
def test_scores_at_both_ends_of_the_range_are_told_apart(method: Method) -> None:
    """A clip and its opposite: they differ by all that the ring must hold."""
    shape = MusicShape(method, 60, 3, pattern=10, name_bytes=7)
    one = np.ones((20, 32), np.int8) if method == "fingerprints" else np.full((20, 12), 36, np.int8)
    for order in ((0, 1), (1, 0)):
        frames = [(-one, one)[at] for at in order]
        own = Songs(shape, frames, tuple(("far", "near")[at] for at in order), 9.0)
        assert asked(own, one[:10]) == "near"


@pytest.mark.parametrize("pattern", [1, 100, 400])
@pytest.mark.parametrize("method", METHODS)
def test_the_ring_holds_two_scores_that_are_furthest_apart(method: Method, pattern: int) -> None:
    shape = MusicShape(method, 1_000, 1, pattern=pattern)
    room = 2.0 ** (shape.bits - 1 - shape.numbers.shares)
    assert 2 * (pattern + shape.error) < room
    assert 2 * (pattern + shape.error) >= room / 2


def recorded(shape: MusicShape, seed: int) -> Transcript:
    """The client's transcript; songs, names and thresholds by the seed: found with 0, not with 1."""
    own = made_songs(shape, (20, 30) if seed else (33, 12, 8), 0.0 if seed == 0 else shape.pattern, seed)
    ends = memory_pair()
    record = Transcript(ends[0], keep_payloads=True)
    params, clip = shape.to_params(), made_frames(shape.method, shape.pattern, seed)
    songs = [song.tolist() for song in own.frames]
    run_together(
        lambda _: by_frames.client(Party("client", {"server": record}), clip.tolist(), shape=params),
        lambda c: by_frames.server(Party("server", {"client": c}), songs, own.names, own.threshold, shape=params),
        ends,
    )
    return record


@pytest.mark.parametrize("method", METHODS)
def test_lengths_depend_on_public_sizes_alone_and_are_those_of_the_record(method: Method) -> None:
    shape = MusicShape(method, 60, 3, pattern=6, name_bytes=9)
    shapes = [recorded(shape, seed).shape() for seed in (0, 1)]
    assert shapes[0] == shapes[1]
    total = sum(size for _, kind, size in shapes[0] if kind not in MEETING)
    assert total == shape.plan.total_bytes + music_cost(shape).total_bytes


def test_what_is_not_found_says_nothing_of_what_was_nearest() -> None:
    """The client's share of the place and what it opens: over many runs no song is told where none is named."""
    shape = MusicShape("fingerprints", 40, 3, pattern=4, name_bytes=7)
    own = made_songs(shape, (20, 20), 3.0)
    encoded, clip = own.encoded(), own.frames[1][3:7].copy()
    clip[:, :10] *= -1  # 1.5 of 4: the best there is, and not enough
    told = []

    def client(channel: Channel) -> None:
        met = meet_as_client(channel)
        with met.session():
            told.extend(find_song(met, shape, clip) for _ in range(8))
            told.append(find_song(met, shape, own.frames[1][3:7]))

    def server(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            for _ in range(9):
                serve_songs(met, own, encoded)

    run_together(client, server)
    assert told == [None] * 8 + ["söng 1"]


def test_a_client_with_a_pattern_beyond_the_limit_sends_nothing() -> None:
    shape, nobody = MusicShape("fingerprints", 40, 3, pattern=4), memory_pair()[0]
    record = Transcript(nobody)
    for clip, said in (
        (np.full((4, 32), 2), "within ±1"),
        (np.zeros((3, 32), int), "4 frames of 32 numbers"),
        (np.zeros((4, 32)), "whole numbers"),
    ):
        with pytest.raises(RangeError, match=said):
            by_frames.client(Party("client", {"server": record}), clip.tolist(), shape=shape.to_params())
    assert record.messages == 0
    with pytest.raises(RangeError, match="length of 1"):
        MusicShape("shapes", 40, 3, pattern=4).clip(np.full((4, 12), 127))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"method": "hum"}, "shapes or fingerprints"),
        ({"frames": 0}, "frames must lie in"),
        ({"frames": 2_000_000}, "frames must lie in"),
        ({"songs": True}, "songs must lie in"),
        ({"pattern": 50}, "too few"),
        ({"pattern": 401, "frames": 1_000}, "pattern must lie in"),
        ({"name_bytes": 300}, "name_bytes must lie in"),
        ({"more": 1}, "not the shape"),
    ],
    ids=str,
)
def test_shapes_that_are_not_agreed_to_are_refused(changed: dict[str, Any], said: str) -> None:
    sizes: dict[str, Any] = {"method": "shapes", "frames": 40, "songs": 3, "pattern": 4}
    assert MusicShape.from_params(MusicShape(**sizes).to_params()) == MusicShape(**sizes)
    with pytest.raises(RangeError, match=said):
        MusicShape.from_params(sizes | changed)


def test_songs_that_are_not_of_the_shape_are_refused() -> None:
    shape, song = MusicShape("fingerprints", 40, 2, pattern=4, name_bytes=7), made_frames("fingerprints", 20, 0)
    for frames, names, threshold, said in (
        ([song], ("a", "b"), 1.0, "a name each"),
        ([song] * 3, ("a", "b", "c"), 1.0, "up to 2 songs"),
        ([song, song, song][:2], ("a", "b" * 8), 1.0, "1 to 7 bytes"),
        ([np.zeros((50, 32), int)], ("a",), 1.0, "agree on more"),
        ([song], ("a",), 5.0, "threshold lies in"),
        ([song], ("a",), float("nan"), "threshold lies in"),
    ):
        with pytest.raises(PpspeechError, match=said):
            Songs(shape, frames, names, threshold)
    with pytest.raises(RangeError, match="within ±1"):
        Songs(shape, [3 * song], ("a",), 1.0).signal  # noqa: B018


def test_the_other_partys_part_is_refused() -> None:
    shape = MusicShape("fingerprints", 40, 2, pattern=4)
    own = made_songs(shape, (20,), 1.0)

    def client(channel: Channel) -> None:
        with pytest.raises(PpspeechError, match="that is the other's"):
            meet_as_client(channel).correlate(shape.plan, own.encoded())

    def server(channel: Channel) -> None:
        with pytest.raises(PpspeechError, match="that is the other's"):
            meet_as_server(channel).correlate(shape.plan, shape.clip(own.frames[0][:4]))

    run_together(client, server)


# Landmarks.

LANDMARKS = LandmarkShape(1, 3, asked=12, votes=3, name_bytes=9)


def made_marks(seed: int, songs: int = 2, count: int = 40) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [(rng.integers(0, 1 << 12, count), np.sort(rng.integers(0, 90, count))) for _ in range(songs)]


def table_answer(shape: LandmarkShape, marks: Any, names: list[str], hashes: Any, times: Any) -> str | None:
    """The slow loop: every pair of landmarks that are the same, by song and offset."""
    counts: dict[tuple[int, int], int] = {}
    for mark, time in list(zip(hashes, times, strict=True))[: shape.asked]:
        for song, (others, at) in enumerate(marks):
            for other, begin in zip(others, at, strict=True):
                if other == mark:
                    counts[song, begin - time] = counts.get((song, begin - time), 0) + 1
    near = {key: count + counts.get((key[0], key[1] + 1), 0) for key, count in counts.items()}
    best = max(near, key=lambda key: near[key], default=(-1, 0))
    return names[best[0]] if near.get(best, 0) >= shape.votes else None


def asked_landmarks(marks: Any, names: list[str], clip: Any, shape: LandmarkShape = LANDMARKS) -> Any:
    params = shape.to_params()
    songs = [np.stack(each, axis=1).tolist() for each in marks]
    ends = memory_pair()
    record = Transcript(ends[0], keep_payloads=True)
    told, _ = run_together(
        lambda _: by_landmarks.client(Party("client", {"server": record}), clip, shape=params),
        lambda c: by_landmarks.server(Party("server", {"client": c}), songs, names, shape=params),
        ends,
    )
    return told, record


def test_landmarks_name_the_song_of_the_table() -> None:
    marks, names = made_marks(0), ["üno", "two"]
    clips = {
        "two": [marks[1][0][5:17], marks[1][1][5:17] - int(marks[1][1][5])],
        "a frame late": [marks[1][0][5:17], marks[1][1][5:17] - 7 - np.arange(12) % 2],
        "mixed": [
            np.concatenate((marks[0][0][:9], marks[1][0][:3])),
            np.concatenate((marks[0][1][:9], marks[1][1][:3])),
        ],
        "too few": [marks[0][0][:2], marks[0][1][:2]],
        "a stranger": [np.arange(5_000, 5_012), np.arange(12)],
        "nothing": [np.zeros(0, np.int64), np.zeros(0, np.int64)],
        "more than are asked": [np.tile(marks[0][0], 2), np.tile(marks[0][1], 2)],
    }
    told = {name: asked_landmarks(marks, names, np.stack(clip, axis=1).tolist())[0] for name, clip in clips.items()}
    assert told == {name: table_answer(LANDMARKS, marks, names, *clip) for name, clip in clips.items()}
    assert told["two"] == "two"
    assert told["mixed"] == "üno"
    assert told["too few"] is told["a stranger"] is told["nothing"] is None
    key = MapKey.new()
    held = seal_landmarks(key, LANDMARKS, marks, names)
    assert {name: look_up_landmarks(key, LANDMARKS, held, *clip) for name, clip in clips.items()} == told


def test_landmarks_take_one_round_trip_of_one_size_however_many_songs_there_are() -> None:
    shapes = []
    for songs, blocks in ((1, 1), (2, 1), (30, 2)):
        shape = LandmarkShape(blocks, 31, asked=5, votes=2, name_bytes=9)
        marks, names = made_marks(3, songs), [f"song {number}" for number in range(songs)]
        _, record = asked_landmarks(marks, names, [[1, 2]] * (songs % 5), shape)
        said = [(direction, kind, size) for direction, kind, size in record.shape() if kind != CryptoKind.MAP]
        shapes.append(said)
        assert sum(size for _, kind, size in record.shape() if kind == CryptoKind.MAP) == shape.map_bytes
    assert shapes[0] == shapes[1] == shapes[2]
    assert len(shapes[0]) == 2


def test_a_name_opens_by_a_landmark_of_its_song_alone() -> None:
    marks, names = made_marks(1), ["kept", "hidden"]
    _, record = asked_landmarks(marks, names, np.stack((marks[0][0][:6], marks[0][1][:6]), axis=1).tolist())
    seen = b"".join(entry.payload or b"" for entry in record.entries)
    assert b"kept" not in seen
    assert b"hidden" not in seen
    held = LandmarkMap.read(LANDMARKS, b"".join(e.payload or b"" for e in record.entries if e.kind == CryptoKind.MAP))
    assert held.name(1, bytes(16)) not in names
    assert held.name(3, bytes(16)) is None


def test_votes_join_offsets_that_follow_each_other() -> None:
    assert votes(np.array([0, 0, 1, 1, 1]), np.array([4, 5, 1, 9, 17])) == (0, 2)
    assert votes(np.zeros(0, np.int64), np.zeros(0, np.int64)) == (-1, 0)


def test_landmarks_that_cannot_be_are_refused() -> None:
    nobody = memory_pair()[0]
    key, marks = MapKey.new(), made_marks(0)
    held = seal_landmarks(key, LANDMARKS, marks, ["a", "b"])
    for hashes, times, said in (
        (np.array([1 << 32]), np.array([0]), "32 bits"),
        (np.array([-1]), np.array([0]), "32 bits"),
        (np.array([1.5]), np.array([0]), "whole hashes"),
        (np.array([1, 2]), np.array([0]), "a time each"),
    ):
        with pytest.raises(RangeError, match=said):
            by_landmarks.ask_landmarks(nobody, LANDMARKS, held, hashes, times)
    for names, shape, said in (
        (["a"], LANDMARKS, "every song has a name"),
        (["a", "b" * 10], LANDMARKS, "1 to 9 bytes"),
        (["a", "b"], LandmarkShape(1, 1, name_bytes=9), "these are more"),
    ):
        with pytest.raises(PpspeechError, match=said):
            seal_landmarks(key, shape, marks, names)
    for changed in ({"blocks": 0}, {"asked": 5_000}, {"votes": True}, {"songs": 1.5}, {"none": 1}):
        with pytest.raises(RangeError):
            LandmarkShape.from_params({"blocks": 1, "songs": 1} | changed)
    with pytest.raises(RangeError, match="pairs of whole numbers"):
        by_landmarks.client(Party("client", {"server": nobody}), [[1, 2, 3]], shape=LANDMARKS.to_params())
    with pytest.raises(BadLengthError):
        LandmarkMap.read(LANDMARKS, bytes(10))


def test_a_server_that_makes_up_its_answers_makes_them_wrong_and_no_more() -> None:
    """Points of another key, and a map of nothing: the client says none, as it says of a stranger."""
    marks = made_marks(0)

    def liar(channel: Channel) -> None:
        channel.send(CryptoKind.MAP, bytes(LANDMARKS.map_bytes))
        MapKey.new().help(channel, LANDMARKS.asked)

    clip = np.stack((marks[0][0][:6], marks[0][1][:6]), axis=1).tolist()
    told, _ = run_together(
        lambda c: by_landmarks.client(Party("client", {"server": c}), clip, shape=LANDMARKS.to_params()), liar
    )
    assert told is None

    def short(channel: Channel) -> None:
        channel.send(CryptoKind.MAP, bytes(LANDMARKS.map_bytes - 1))

    with pytest.raises(ProtocolError):
        run_together(
            lambda c: by_landmarks.client(Party("client", {"server": c}), clip, shape=LANDMARKS.to_params()), short
        )
