"""A map that is given away sealed, and opens at the keys that its owner helps with, not knowing which these are.

    owner              k random;  j-th value of key x:  y = k H(x),  tag = T(x, y, j),  sealed = value ⊕ P(x, y, j)
    owner → asker      all (tag, sealed), in random order, once
    asker → owner      r_i H(x_i), a fixed number of them            1 round trip, whatever the map holds
    owner → asker      k r_i H(x_i)
    asker              y_i = r_i^-1 of it; the values whose tags are T(x_i, y_i, 0), T(x_i, y_i, 1), …

H hashes into the group of ed25519 (two images of Elligator), T and P are SHA-256. r H(x) is a uniform point whatever x
is, so the owner learns nothing, whatever it does; without its help y is unknown (one-more gap Diffie-Hellman), and tags
and sealed values look random (Jarecki, Kiayias and Krawczyk 2014). An asker learns the values of the keys it asks for,
as many as there are points, which the owner may count.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import nacl.bindings as sodium
import numpy as np

from ppspeech.arrays import Bytes, Residues, Whole
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.points import POINT_BYTES, base_times, checked, hash_to_group, multiply, random_scalar
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.errors import BadLengthError, NotInGroupError, RangeError

TAG_BYTES = 16
LONGEST_VALUE = 32
MOST_VALUES = 64
"""Of one key: an asker looks no further."""


@dataclass(frozen=True, eq=False)
class SealedMap:
    """What everybody may hold: `tags` `(entries, 16)` and `sealed` values `(entries, width)`."""

    tags: Bytes
    sealed: Bytes

    @classmethod
    def read(cls, data: bytes, entries: int, width: int) -> "SealedMap":
        """From `dump`'s bytes. Raises BadLengthError if they are not of so many entries."""
        if len(data) != cls.size(entries, width):
            raise BadLengthError(f"a map of {entries:,} entries has not {len(data):,} bytes")
        rows = np.frombuffer(data, np.uint8).reshape(entries, TAG_BYTES + width)
        return cls(rows[:, :TAG_BYTES], rows[:, TAG_BYTES:])

    @staticmethod
    def size(entries: int, width: int) -> int:
        """Bytes of a map."""
        return entries * (TAG_BYTES + width)

    def dump(self) -> bytes:
        """As bytes."""
        return np.concatenate((self.tags, self.sealed), axis=1).tobytes()

    def values(self, key: bytes, point: bytes) -> list[bytes]:
        """The values of a key, whose point the owner has multiplied."""
        found: list[bytes] = []
        while len(found) < MOST_VALUES:
            tag, pad = _tag_and_pad(key, point, len(found), self.sealed.shape[1])
            at = self._place(tag)
            if at is None:
                break
            found.append(_xor(self.sealed[at].tobytes(), pad))
        return found

    @cached_property
    def _order(self) -> tuple[Residues, Whole]:
        """The first halves of all tags in ascending order, and where they stand."""
        halves = np.ascontiguousarray(self.tags[:, :8]).view("<u8")[:, 0].astype(np.uint64)
        order = np.argsort(halves)
        return halves[order], order

    def _place(self, tag: bytes) -> int | None:
        halves, order = self._order
        half = np.uint64(int.from_bytes(tag[:8], "little"))
        for at in order[np.searchsorted(halves, half) : np.searchsorted(halves, half, "right")]:
            if self.tags[at].tobytes() == tag:
                return int(at)
        return None


@dataclass(frozen=True)
class MapKey:
    """The owner's secret. Raises NotInGroupError for what is no scalar of the group, reduced and not zero."""

    scalar: bytes

    def __post_init__(self) -> None:
        reduced = len(self.scalar) == POINT_BYTES and sodium.crypto_core_ed25519_scalar_reduce(
            self.scalar + bytes(POINT_BYTES)
        )
        if reduced != self.scalar or not any(self.scalar):
            raise NotInGroupError("the key of a map is a scalar of ed25519, reduced and not zero: make the map again")

    def __repr__(self) -> str:
        return "MapKey(…)"

    @classmethod
    def new(cls) -> "MapKey":
        """A fresh one."""
        return cls(random_scalar())

    def point_of(self, key: bytes) -> bytes:
        """The point that opens a key."""
        return multiply(self.scalar, _point_of(key))

    def seal(self, entries: Sequence[tuple[bytes, bytes]], width: int, size: int) -> SealedMap:
        """A map of keys to values of `width` bytes, filled up to `size` with what opens for nobody, in random order; of
        a key with many values the first 64 are kept. Raises RangeError for more entries, or a value of another width.
        """
        if (
            len(entries) > size
            or size < 1
            or not 1 <= width <= LONGEST_VALUE
            or any(len(value) != width for _, value in entries)
        ):
            raise RangeError(
                f"a map of {size} entries, all with values of {width} bytes, of 1 to {LONGEST_VALUE}, holds not these "
                f"{len(entries)}"
            )
        points: dict[bytes, bytes] = {}
        counts: dict[bytes, int] = {}
        rows = []
        for key, value in entries:
            number = counts.get(key, 0)
            if number == MOST_VALUES:
                continue
            counts[key] = number + 1
            if key not in points:
                points[key] = self.point_of(key)
            tag, pad = _tag_and_pad(key, points[key], number, width)
            rows.append(tag + _xor(value, pad))
        rows.append(uniform_bytes((size - len(rows)) * (TAG_BYTES + width)))
        drawn = np.argsort(uniform_residues(size))
        shuffled = np.frombuffer(b"".join(rows), np.uint8).reshape(size, -1)[drawn]
        return SealedMap(shuffled[:, :TAG_BYTES], shuffled[:, TAG_BYTES:])

    def help(self, channel: Channel, count: int) -> None:
        """The owner's side of one question of `count` points. Raises NotInGroupError for what is no point."""
        asked = channel.receive(Kind.MAP_POINTS, POINT_BYTES * count)
        channel.send(Kind.MAP_HELP, b"".join(multiply(self.scalar, checked(each)) for each in _points(asked)))


def ask_points(channel: Channel, keys: Sequence[bytes], count: int) -> list[bytes]:
    """The asker's side: the points of its keys, multiplied by the owner. As many points are asked for as `count` says,
    random ones beside those of the keys. Raises RangeError, nothing sent, for more keys; NotInGroupError for answers
    that are no points.
    """
    if len(keys) > count:
        raise RangeError(f"{count} keys are asked for at once, got {len(keys)}")
    blinds = [random_scalar() for _ in range(count)]
    points = [_point_of(key) for key in keys] + [base_times(random_scalar()) for _ in range(count - len(keys))]
    channel.send(Kind.MAP_POINTS, b"".join(map(multiply, blinds, points)))
    helped = channel.receive(Kind.MAP_HELP, POINT_BYTES * count)
    answers = [checked(each) for each in _points(helped)]
    inverse = (sodium.crypto_core_ed25519_scalar_invert(blind) for blind in blinds)
    return [multiply(each, point) for each, point in zip(inverse, answers, strict=True)][: len(keys)]


def _point_of(key: bytes) -> bytes:
    return hash_to_group(b"ppspeech oblivious map" + key)


def _tag_and_pad(key: bytes, point: bytes, number: int, width: int) -> tuple[bytes, bytes]:
    said = len(key).to_bytes(4, "big") + key + point + number.to_bytes(4, "big")
    tag = hashlib.sha256(b"ppspeech oblivious map, tag" + said).digest()[:TAG_BYTES]
    return tag, hashlib.sha256(b"ppspeech oblivious map, pad" + said).digest()[:width]


def _points(data: bytes) -> list[bytes]:
    return [data[at : at + POINT_BYTES] for at in range(0, len(data), POINT_BYTES)]


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
