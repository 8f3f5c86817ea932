"""Which song is it, among very many? Landmarks are looked up in a sealed map, in one round trip however large it is.

    0. server → client   once: all landmarks of all songs, sealed (`crypto/oblivious_map`), and sealed names
    1. client → server   its landmarks as blinded points, always as many
    2. server → client   the points under its key
    3. client            opens the entries of its landmarks: song, time, and the key of the song's name; the song with
                         the most landmarks that agree on one offset, if they are enough, is it

The server learns nothing. The client learns more than a name: which songs have each landmark it asks for, and when; it
could ask for others than those of a clip, as many as the server answers. Theorem 2.27 in docs/theory/asking.md.
"""

import hashlib
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ppspeech.arrays import Bytes, Whole
from ppspeech.channel import Channel
from ppspeech.crypto import Kind, MapKey, SealedMap, ask_points, uniform_bytes
from ppspeech.crypto.shares import show_text
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.params import Params
from ppspeech.protocols.party import Party, register_protocol

MOST = {"blocks": 5_000, "songs": 100_000, "asked": 4_096, "name_bytes": 252, "votes": 4_096}
HASH_BYTES, NAME_KEY_BYTES = 4, 16
_VALUE = struct.Struct(f"<II{NAME_KEY_BYTES}s")
_NEAR = 1  # frames that offsets of one song may be apart
BLOCK = 1_024
"""Entries of a map are filled up to a multiple of this."""
AT_ONCE = 4 << 20  # bytes of a map in one message

protocol = register_protocol(
    "landmarks",
    functionality="the name of the server's song that most of the client's landmarks are of, or that it is none, to "
    "the client",
    leakage="sizes alone to the server; to the client, once, how many landmarks and songs there are, and songs and "
    "times of the landmarks that it asks for",
    assumptions="a server that cheats learns nothing, and makes the answer wrong; a client that cheats asks for "
    "landmarks of its choice, as many as are agreed on; one-more Diffie-Hellman on ed25519, SHA-2 and SHAKE oracles",
)


@dataclass(frozen=True, slots=True)
class LandmarkShape(Params):
    """Sizes.

    Attributes:
        blocks: landmarks of all songs, in blocks of 1,024.
        songs: sealed names.
        asked: points of a question.
        votes: landmarks that must agree for a song to be named.
        name_bytes: every name is padded to this.

    Raises RangeError for sizes that this party does not agree to.
    """

    WHAT: ClassVar[str] = "landmarks"

    blocks: int
    songs: int
    asked: int = 300
    votes: int = 10
    name_bytes: int = 63

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= most:
                raise RangeError(f"{name} must lie in 1..{most}, got {given!r}")

    @property
    def entries(self) -> int:
        """Of the map."""
        return self.blocks * BLOCK

    @property
    def map_bytes(self) -> int:
        """That a client takes once."""
        return SealedMap.size(self.entries, _VALUE.size) + self.songs * self.name_bytes


@dataclass(frozen=True, eq=False)
class LandmarkMap:
    """What a client holds: sealed landmarks, and sealed names `(songs, name_bytes)`."""

    landmarks: SealedMap
    names: Bytes

    @classmethod
    def read(cls, shape: LandmarkShape, data: bytes) -> "LandmarkMap":
        """From `dump`'s bytes. Raises BadLengthError for another length."""
        cut = len(data) - shape.songs * shape.name_bytes
        names = np.frombuffer(data[max(cut, 0) :], np.uint8)
        return cls(
            SealedMap.read(data[: max(cut, 0)], shape.entries, _VALUE.size),
            names.reshape(shape.songs, shape.name_bytes),
        )

    def dump(self) -> bytes:
        """As bytes."""
        return self.landmarks.dump() + self.names.tobytes()

    def name(self, song: int, key: bytes) -> str | None:
        """The name of a song, by its key; what is no text is shown as such. None for what is no song's."""
        if not song < len(self.names):
            return None
        opened = self.names[song] ^ _name_pad(key, self.names.shape[1])
        return show_text(opened.tobytes())


def seal_landmarks(
    key: MapKey, shape: LandmarkShape, landmarks: Sequence[tuple[Whole, Whole]], names: Sequence[str]
) -> LandmarkMap:
    """The server's map: hashes and times of every song, sealed; filled up with what opens for nobody.

    Raises PpspeechError for more than the shape holds, or a name that does not fit.
    """
    name_bytes, spelled = shape.name_bytes, [name.encode() for name in names]
    if len(names) != len(landmarks) or any(not 0 < len(each) <= name_bytes or 0 in each for each in spelled):
        raise PpspeechError(f"every song has a name of 1 to {name_bytes} bytes, none of them zero")
    if len(names) > shape.songs or sum(len(hashes) for hashes, _ in landmarks) > shape.entries:
        raise PpspeechError(f"{shape.songs} songs and {shape.entries:,} landmarks were agreed on: these are more")
    name_keys = [uniform_bytes(NAME_KEY_BYTES) for _ in names]
    entries = [
        (_key_of(mark), _VALUE.pack(song, time, name_keys[song]))
        for song, (hashes, times) in enumerate(landmarks)
        for mark, time in zip(hashes.tolist(), times.tolist(), strict=True)
    ]
    padded = [np.frombuffer(each.ljust(name_bytes, b"\0"), np.uint8) for each in spelled]
    sealed = [each ^ _name_pad(own, name_bytes) for each, own in zip(padded, name_keys, strict=True)]
    filled = [np.frombuffer(uniform_bytes(name_bytes), np.uint8) for _ in range(shape.songs - len(names))]
    return LandmarkMap(key.seal(entries, _VALUE.size, shape.entries), np.stack(sealed + filled))


def votes(songs: Whole, offsets: Whole) -> tuple[int, int]:
    """The song on one offset of which the most agree, or on two that follow each other, and how many; -1 for none."""
    counted = Counter(zip(songs.tolist(), offsets.tolist(), strict=True))
    best, most = -1, 0
    for (song, offset), count in sorted(counted.items()):
        near = count + counted.get((song, offset + _NEAR), 0)
        if near > most:
            best, most = song, near
    return best, most


def give_map(channel: Channel, own: LandmarkMap) -> None:
    """The server's side of step 0."""
    data = own.dump()
    for at in range(0, len(data), AT_ONCE):
        channel.send(Kind.MAP, data[at : at + AT_ONCE])


def take_map(channel: Channel, shape: LandmarkShape) -> LandmarkMap:
    """The client's side of step 0."""
    sizes = (min(AT_ONCE, shape.map_bytes - at) for at in range(0, shape.map_bytes, AT_ONCE))
    return LandmarkMap.read(shape, b"".join(channel.receive(Kind.MAP, size) for size in sizes))


def ask_landmarks(channel: Channel, shape: LandmarkShape, held: LandmarkMap, hashes: Whole, times: Whole) -> str | None:
    """The client's side of steps 1 to 3: the name of the song, or None. `hashes` with their `times`, the strongest
    first: those beyond `asked` are not looked up. Raises RangeError, nothing sent, for what is no hash.
    """
    keys, begins = _keys(shape, hashes, times)
    return _named(shape, held, keys, ask_points(channel, keys, shape.asked), begins)


def look_up_landmarks(key: MapKey, shape: LandmarkShape, held: LandmarkMap, hashes: Whole, times: Whole) -> str | None:
    """What `ask_landmarks` tells, by the owner of the key alone."""
    keys, begins = _keys(shape, hashes, times)
    return _named(shape, held, keys, [key.point_of(each) for each in keys], begins)


def _keys(shape: LandmarkShape, hashes: Whole, times: Whole) -> tuple[list[bytes], list[int]]:
    marks, begins = np.asarray(hashes)[: shape.asked], np.asarray(times)[: shape.asked]
    if marks.shape != begins.shape or marks.ndim != 1 or marks.dtype.kind not in "iu":
        raise RangeError(f"landmarks are whole hashes with a time each, got shapes {marks.shape} and {begins.shape}")
    if marks.size and not 0 <= int(marks.min()) <= int(marks.max()) < 1 << 8 * HASH_BYTES:
        raise RangeError(f"a hash has {8 * HASH_BYTES} bits, got {int(marks.min())} to {int(marks.max())}")
    return [_key_of(mark) for mark in marks.tolist()], [int(begin) for begin in begins]


def _named(
    shape: LandmarkShape, held: LandmarkMap, keys: Sequence[bytes], points: Sequence[bytes], begins: Sequence[int]
) -> str | None:
    """Step 3."""
    found = [
        (*_VALUE.unpack(value), begin)
        for key, point, begin in zip(keys, points, begins, strict=True)
        for value in held.landmarks.values(key, point)
    ]
    songs, offsets = ([each[0] for each in found], [at - begin for _, at, _, begin in found])
    song, most = votes(np.array(songs, np.int64), np.array(offsets, np.int64))
    if most < shape.votes:
        return None
    return held.name(song, next(own for each, _, own, _ in found if each == song))


def _key_of(mark: int) -> bytes:
    return mark.to_bytes(HASH_BYTES, "big")


def _name_pad(key: bytes, size: int) -> Bytes:
    return np.frombuffer(hashlib.shake_256(b"ppspeech name of a song" + key).digest(size), np.uint8)


def _pairs(given: Any) -> tuple[Whole, Whole]:
    marks = np.asarray(given if len(given) else np.zeros((0, 2), np.int64))
    if marks.ndim != 2 or marks.shape[1] != 2 or marks.dtype.kind not in "iu":
        raise RangeError(f"landmarks are pairs of whole numbers, a hash and a time, got shape {marks.shape}")
    return marks[:, 0].astype(np.int64), marks[:, 1].astype(np.int64)


@protocol.party("client")
def client(party: Party, clip: list[list[int]], *, shape: dict[str, Any]) -> str | None:
    """The client's whole program: a song's name, or None. `clip`: pairs of a hash and a time; `shape` has a
    `LandmarkShape`'s attributes.
    """
    chosen, (hashes, times) = LandmarkShape.from_params(shape), _pairs(clip)
    return ask_landmarks(party.channel, chosen, take_map(party.channel, chosen), hashes, times)


@protocol.party("server")
def server(party: Party, songs: list[Any], names: list[str], *, shape: dict[str, Any]) -> None:
    """The server's whole program; `songs` are pairs of a hash and a time each."""
    chosen, key = LandmarkShape.from_params(shape), MapKey.new()
    give_map(party.channel, seal_landmarks(key, chosen, [_pairs(song) for song in songs], names))
    key.help(party.channel, chosen.asked)
