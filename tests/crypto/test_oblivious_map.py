"""A sealed map: opened at what is asked for and nowhere else, by an owner that cannot tell what that is."""

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto import Kind, MapKey, SealedMap, ask_points
from ppspeech.crypto.oblivious_map import _tag_and_pad
from ppspeech.errors import BadLengthError, FrameTooLargeError, NotInGroupError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together

NEUTRAL = bytes([1]) + bytes(31)
SMALL_ORDER = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
NOT_CANONICAL = bytes.fromhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")
NO_POINT = bytes(31) + bytes([0x42])
ENTRIES = [(b"one", b"first"), (b"two", b"secnd"), (b"one", b"third")]


def asked(key: MapKey, keys: list[bytes], count: int) -> tuple[list[bytes], Transcript]:
    """The points that an asker gets, and its transcript."""
    ends = memory_pair()
    record = Transcript(ends[0], keep_payloads=True)
    points, _ = run_together(lambda _: ask_points(record, keys, count), lambda c: key.help(c, count), ends)
    return points, record


def test_values_of_keys_are_found_and_of_no_others() -> None:
    key = MapKey.new()
    sealed = key.seal(ENTRIES, 5, 8)
    points, record = asked(key, [b"one", b"none", b"two"], 4)
    found = [sealed.values(name, point) for name, point in zip((b"one", b"none", b"two"), points, strict=True)]
    assert found == [[b"first", b"third"], [], [b"secnd"]]
    assert record.rounds == 1
    assert points[0] == key.point_of(b"one")
    again = SealedMap.read(sealed.dump(), 8, 5)
    assert again.values(b"one", points[0]) == [b"first", b"third"]


def test_another_key_opens_nothing() -> None:
    sealed = MapKey.new().seal(ENTRIES, 5, 4)
    points, _ = asked(MapKey.new(), [b"one"], 1)
    assert sealed.values(b"one", points[0]) == []
    assert sealed.values(b"two", points[0]) == []


def test_a_round_trip_is_of_the_same_size_whatever_is_asked() -> None:
    key = MapKey.new()
    key.seal(ENTRIES, 5, 64)
    shapes = {tuple(asked(key, keys, 6)[1].shape()) for keys in ([], [b"one"], [b"one"] * 6, [b"x" * 99])}
    assert len(shapes) == 1
    (one,) = shapes
    assert [(kind, size) for _, kind, size in one] == [(Kind.MAP_POINTS, 192), (Kind.MAP_HELP, 192)]


def test_what_the_owner_sees_of_a_key_is_never_the_same() -> None:
    """Uniform points: the lowest byte of a point's height by a chi-square test, at one false alarm in 10^8."""
    key, seen = MapKey.new(), b""
    for _ in range(8):
        seen += asked(key, [b"one"] * 64, 80)[1].entries[0].payload or b""
    rows = np.frombuffer(seen, np.uint8).reshape(-1, 32)
    assert len({row.tobytes() for row in rows}) == len(rows)
    counts = np.bincount(rows[:, 0] >> 3, minlength=32)
    assert stats.chisquare(counts).pvalue > 1e-8


def test_a_sealed_map_says_nothing_but_its_size() -> None:
    """Two maps of most different entries, byte by byte; and filled rows are like others."""
    maps = [
        [MapKey.new().seal(entries, 8, 256) for _ in range(4)]
        for entries in ([(b"a", bytes(8))] * 3, [(bytes([n]), bytes([255] * 8)) for n in range(200)])
    ]
    counts = [
        np.bincount(np.frombuffer(b"".join(each.dump() for each in own), np.uint8), minlength=256) for own in maps
    ]
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-8
    for own in counts:
        assert stats.chisquare(own).pvalue > 1e-8
    key, places = MapKey.new(), set()
    tag = _tag_and_pad(b"k", key.point_of(b"k"), 0, 8)[0]
    for _ in range(60):
        sealed = key.seal([(b"k", bytes(8))], 8, 64)
        places.add([row.tobytes() for row in sealed.tags].index(tag))
    assert len(places) > 10  # in random order: ten places of 64 alone happen by chance once in 10^35


@pytest.mark.parametrize("point", [NEUTRAL, SMALL_ORDER, NOT_CANONICAL, NO_POINT, bytes(32)])
def test_both_parties_refuse_what_is_no_point(point: bytes) -> None:
    def asks(channel: Channel) -> None:
        channel.send(Kind.MAP_POINTS, point)
        channel.receive(Kind.MAP_HELP, 32)

    with pytest.raises(NotInGroupError):
        run_together(asks, lambda channel: MapKey.new().help(channel, 1))

    def helps(channel: Channel) -> None:
        channel.receive(Kind.MAP_POINTS, 32)
        channel.send(Kind.MAP_HELP, point)

    with pytest.raises(NotInGroupError):
        run_together(lambda channel: ask_points(channel, [b"one"], 1), helps)


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_other_lengths_are_refused_before_they_are_read(size: int) -> None:
    with pytest.raises((BadLengthError, FrameTooLargeError)):
        run_together(
            lambda channel: channel.send(Kind.MAP_POINTS, bytes(size)), lambda channel: MapKey.new().help(channel, 1)
        )


def test_a_key_with_very_many_values_keeps_the_first() -> None:
    key = MapKey.new()
    sealed = key.seal([(b"k", number.to_bytes(2, "big")) for number in range(70)], 2, 70)
    assert sealed.values(b"k", key.point_of(b"k")) == [number.to_bytes(2, "big") for number in range(64)]


def test_what_cannot_be_is_refused() -> None:
    key, nobody = MapKey.new(), memory_pair()[0]
    for entries, width, size in (([(b"k", b"12")], 3, 4), (ENTRIES, 5, 2), ([], 5, 0), ([], 33, 4)):
        with pytest.raises(RangeError, match="a map of"):
            key.seal(entries, width, size)
    with pytest.raises(RangeError, match="2 keys are asked for at once, got 3"):
        ask_points(nobody, [b"a", b"b", b"c"], 2)
    for scalar in (bytes(32), bytes([255] * 32), b"short"):
        with pytest.raises(NotInGroupError, match="make the map again"):
            MapKey(scalar)
    with pytest.raises(BadLengthError, match="a map of 3 entries"):
        SealedMap.read(bytes(62), 3, 5)
    assert "…" in repr(key)
    assert key.scalar.hex() not in repr(key)
