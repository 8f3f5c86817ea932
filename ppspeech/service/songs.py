"""An index of songs: what `ppspeech music index` makes of a folder, and what is looked in, in the clear or encrypted.

One file in the format of safetensors: frames of all songs by both ways, landmarks sealed under a key of their own, and
JSON beside them. It tells its owner's music to whoever reads it, and is for its owner alone.

From where on a song is named: `song_thresholds`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ppspeech.arrays import Bytes, Reals, Whole
from ppspeech.audio import Sound, samples_at
from ppspeech.audio.music import MUSIC_RATE, excerpt, fingerprints, landmarks, music_samples, shapes
from ppspeech.bundle import check_text, from_plain, read_json
from ppspeech.crypto import MapKey
from ppspeech.errors import AudioError, BundleError, PpspeechError, RangeError
from ppspeech.protocols.music import (
    BLOCK,
    METHODS,
    LandmarkMap,
    LandmarkShape,
    Method,
    MusicShape,
    Songs,
    look_up_landmarks,
    seal_landmarks,
)
from ppspeech.service.song_thresholds import CLIP_SECONDS, PATTERN, Alike, rivals, threshold_of, votes_of
from ppspeech.storage import atomic_write

FindBy = Literal["fingerprints", "landmarks", "shapes"]
WAYS: tuple[FindBy, ...] = get_args(FindBy)
"""How a song may be looked for; the first that a server offers is the usual one."""

FORMAT = 1
NAME_BYTES = 63
ASKED = 300
FRAMES_STEP = 1_024  # what all songs together are filled up to a multiple of
SUFFIXES = {".wav", ".flac", ".ogg", ".mp3", ".aif", ".aiff"}

_FRAMES: dict[Method, Callable[[Reals], NDArray[np.int8]]] = {"fingerprints": fingerprints, "shapes": shapes}
_TENSORS = {"fingerprints": ("I8", 2), "shapes": ("I8", 2), "lengths": ("I64", 2), "map": ("U8", 2),
            "names": ("U8", 2), "key": ("U8", 1)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Facts:
    """What stands in the JSON of a file."""

    format: int
    songs: tuple[str, ...]
    fingerprints: float
    shapes: float
    votes: int
    digest: str


@dataclass(frozen=True, eq=False)
class SongIndex:
    """Songs by name, and from where on each way names one. Get one by `index_folder` or `read_index`.

    Attributes:
        frames: by method, of every song `(frames, channels)`.
        thresholds: by method, in scores from 0 to `PATTERN`.
        map_shape: sizes of the map of landmarks, and how many must agree.
        alike: songs that were not told apart when thresholds were set; known to the one who made the index.
    """

    names: tuple[str, ...]
    frames: Mapping[Method, Sequence[NDArray[np.int8]]]
    thresholds: Mapping[Method, float]
    map_shape: LandmarkShape
    map: LandmarkMap
    key: MapKey
    alike: tuple[Alike, ...] = ()

    def shape(self, method: Method) -> MusicShape:
        """What is public of a search: all songs' frames together and their number, filled up."""
        frames = sum(len(song) for song in self.frames[method])
        padded = -(-max(frames, PATTERN) // FRAMES_STEP) * FRAMES_STEP
        return MusicShape(method, padded, (1 << len(self.names).bit_length()) - 1, PATTERN, NAME_BYTES)

    def songs(self, method: Method) -> Songs:
        """As the protocol takes them."""
        return Songs(self.shape(method), self.frames[method], self.names, self.thresholds[method])

    @cached_property
    def _songs(self) -> dict[Method, Songs]:
        return {method: self.songs(method) for method in METHODS}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that songs are found by."""
        return _digest(self._tensors())

    def find(self, sound: Sound, rate: int | None = None, by: FindBy = "fingerprints") -> str | None:
        """In the clear: the name of the song that a clip is of, or None."""
        clip = clip_of(sound, rate)
        if by == "landmarks":
            return look_up_landmarks(self.key, self.map_shape, self.map, *clip_landmarks(clip))
        return self._songs[by].find(clip_frames(clip, by))

    def write(self, path: Path) -> None:
        """Write the file, for its owner alone."""
        facts = {
            "format": FORMAT,
            "songs": list(self.names),
            "fingerprints": self.thresholds["fingerprints"],
            "shapes": self.thresholds["shapes"],
            "votes": self.map_shape.votes,
            "digest": self.fingerprint,
        }
        with atomic_write(path, private=True) as temporary:
            safetensors.numpy.save_file(self._tensors(), temporary, {"index": json.dumps(facts, ensure_ascii=False)})

    def _tensors(self) -> dict[str, NDArray[Any]]:
        lengths = [[len(song) for song in self.frames[method]] for method in METHODS]
        return {
            **{method: np.concatenate(self.frames[method]) for method in METHODS},
            "lengths": np.array(lengths, np.int64),
            "map": np.concatenate((self.map.landmarks.tags, self.map.landmarks.sealed), axis=1),
            "names": np.ascontiguousarray(self.map.names),
            "key": np.frombuffer(self.key.scalar, np.uint8),
        }


def index_folder(folder: Path) -> SongIndex:
    """An index of the sound files in a folder and those below; a song is called as its file is, without the suffix.

    Raises AudioError for a file that cannot be used, PpspeechError for a folder without any, or two of one name.
    """
    if not folder.is_dir():
        raise PpspeechError(f"{folder} is no folder: give one with sound files")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not files:
        raise PpspeechError(f"{folder} has no sound files ({', '.join(sorted(SUFFIXES))})")
    return index_songs((path.relative_to(folder).with_suffix("").as_posix() for path in files), files)


def index_songs(names: Any, sounds: Sequence[Sound], rate: int | None = None) -> SongIndex:
    """An index of songs by name. Raises PpspeechError for names that cannot be, or are given twice."""
    called = tuple(_checked_name(name) for name in names)
    if len(set(called)) < len(called) or not called:
        raise PpspeechError(f"songs need names of their own, got {len(called)} of which {len(set(called))} differ")
    frames: dict[Method, list[NDArray[np.int8]]] = {method: [] for method in METHODS}
    marks: list[tuple[Whole, Whole]] = []
    for name, sound in zip(called, sounds, strict=True):
        try:
            waveform = samples_at(sound, rate, MUSIC_RATE).astype(np.float64)
            if len(waveform) < music_samples(PATTERN):
                raise AudioError(f"{len(waveform) / MUSIC_RATE:.1f} s are no song: it has {CLIP_SECONDS:.1f} s or more")
            for method in METHODS:
                frames[method].append(_FRAMES[method](waveform))
            marks.append(landmarks(waveform))
        except AudioError as error:
            raise AudioError(f"{name}: {error}") from None
    chosen = {method: threshold_of(rivals(frames[method], method), called, method) for method in METHODS}
    entries = sum(len(hashes) for hashes, _ in marks)
    shape = LandmarkShape(
        max(1, -(-entries // BLOCK)), (1 << len(called).bit_length()) - 1, ASKED, votes_of(marks, ASKED), NAME_BYTES
    )
    key = MapKey.new()
    return SongIndex(
        called,
        frames,
        {method: threshold for method, (threshold, _) in chosen.items()},
        shape,
        seal_landmarks(key, shape, marks, called),
        key,
        chosen["fingerprints"][1],
    )


def read_index(path: Path) -> SongIndex:
    """Read a file, checked to the last number. Raises BundleError for anything that `write` does not write."""
    if not path.is_file():
        raise BundleError(f"no index at {path}: make one with `ppspeech music index FOLDER -o {path}`")
    try:
        with safe_open(path, framework="numpy") as opened:
            written = (opened.metadata() or {}).get("index", "")
            kinds = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118 - it is no dict
            found = {name: (each.get_dtype(), len(each.get_shape())) for name, each in kinds.items()}
            if found != _TENSORS:
                raise BundleError(f"{path} is no index of songs: it holds {', '.join(sorted(found)) or 'nothing'}")
            tensors = {name: opened.get_tensor(name) for name in found}
    except (SafetensorError, OSError, ValueError) as damaged:
        if isinstance(damaged, BundleError):
            raise
        raise BundleError(f"{path} is no index of songs, or damaged: {damaged}") from None
    facts = from_plain(_Facts, read_json(written.encode(), f"{path}"), "an index")
    try:
        return _index_of(facts, tensors)
    except (PpspeechError, ValueError) as refused:
        raise BundleError(f"{path} is damaged, make it again: {refused}") from None


def _index_of(facts: _Facts, tensors: Mapping[str, NDArray[Any]]) -> SongIndex:
    count, lengths = len(facts.songs), tensors["lengths"]
    if facts.format != FORMAT:
        raise RangeError(f"its format is {facts.format}, not {FORMAT}")
    if _digest(tensors) != facts.digest:
        raise RangeError("its numbers are not those that were written")
    if not count or len(set(map(_checked_name, facts.songs))) < count or lengths.shape != (len(METHODS), count):
        raise RangeError(f"{count} names do not go with songs of shape {lengths.shape}")
    rows, hidden = tensors["map"], tensors["names"]
    shape = LandmarkShape(len(rows) // BLOCK, len(hidden), ASKED, facts.votes, NAME_BYTES)
    data = rows.tobytes() + hidden.tobytes()
    if len(data) != shape.map_bytes or hidden.shape[1] != NAME_BYTES:
        raise RangeError(f"a map of shape {rows.shape} with names of {hidden.shape} cannot be")
    frames: dict[Method, list[NDArray[np.int8]]] = {}
    for method, own in zip(METHODS, lengths, strict=True):
        if own.min() < PATTERN or own.max() > len(tensors[method]) or int(own.sum()) != len(tensors[method]):
            raise RangeError(f"songs of {own.tolist()[:8]} frames are not {len(tensors[method])}")
        frames[method] = np.split(tensors[method], np.cumsum(own)[:-1])
    found = SongIndex(
        facts.songs,
        frames,
        {"fingerprints": facts.fingerprints, "shapes": facts.shapes},
        shape,
        LandmarkMap.read(shape, data),
        MapKey(tensors["key"].tobytes()),
    )
    for method in METHODS:
        found.shape(method).checked(tensors[method])
        found.songs(method)
    return found


def clip_of(sound: Sound, rate: int | None = None) -> Reals:
    """The beginning of a clip, as much as is looked for. Raises AudioError for one that is too short, or silent."""
    try:
        return excerpt(samples_at(sound, rate, MUSIC_RATE).astype(np.float64), PATTERN)
    except AudioError as error:
        if not isinstance(sound, str | Path) or str(sound) in str(error):
            raise
        raise AudioError(f"{sound}: {error}") from None


def clip_frames(clip: Reals, method: Method) -> NDArray[np.int8]:
    """`(PATTERN, channels)` of what `clip_of` gives."""
    return _FRAMES[method](clip)[:PATTERN]


def clip_landmarks(clip: Reals) -> tuple[Whole, Whole]:
    """Hashes and times of what `clip_of` gives."""
    return landmarks(clip[: music_samples(PATTERN)])


def _checked_name(name: str) -> str:
    check_text("a song's name", name)
    if len(name.encode()) > NAME_BYTES:
        raise PpspeechError(f"a song's name has up to {NAME_BYTES} bytes, got {name!r}: rename the file")
    return name


def _digest(tensors: Mapping[str, NDArray[Any]]) -> str:
    found = hashlib.sha256()
    for name in sorted(tensors):
        each: Bytes = np.ascontiguousarray(tensors[name])
        found.update(f"{name} {each.dtype.str} {each.shape}".encode())
        found.update(each.tobytes())
    return found.hexdigest()
