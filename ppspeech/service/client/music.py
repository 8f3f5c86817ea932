"""The client of an index of songs: which song is it? The clip stays here."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ppspeech.arrays import Reals
from ppspeech.audio import Sound
from ppspeech.errors import RangeError, WrongSessionError
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.music import LandmarkMap, Method, MusicShape, ask_landmarks, find_song, prepare_music, take_map
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Answer, Clock
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.requests import Ask, Request
from ppspeech.service.songs import WAYS, FindBy, clip_frames, clip_landmarks, clip_of
from ppspeech.service.tasks.music import Music
from ppspeech.storage import atomic_write, cache_folder

Named = Answer[str | None]

LEAST = 100  # bytes of an offset on shares, of any number of bits
ASKS: dict[FindBy, Ask] = {"fingerprints": Ask.FINGERPRINTS, "shapes": Ask.SHAPES, "landmarks": Ask.LANDMARKS}


@QUESTIONS.register("music")
class AskMusic:
    """What may be asked of an index of songs. Raises WrongSessionError for an offer of more than `MOST_BYTES`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: Music = client.offer.terms
        self._map: LandmarkMap | None = None
        for way in self._offered:
            size = self._size(way)
            if size > MOST_BYTES:
                raise WrongSessionError(f"{client.offer.name} would exchange {size:,} bytes to find a song by {way}")

    def find_all(self, sounds: Sequence[Sound], rate: int | None = None, by: FindBy | None = None) -> list[Named]:
        """The songs of many clips, one after the other."""
        way = by or self._offered[0]
        if way not in self._offered:
            raise RangeError(f"{self._client.offer.name} finds songs by {', '.join(self._offered)}, got {way!r}")
        clips = [clip_of(sound, rate) for sound in sounds]  # refuse all before any is sent
        if way == "landmarks":
            return [self._by_landmarks(clip) for clip in clips]
        return [self._by_frames(clip, way) for clip in clips]

    @property
    def _offered(self) -> list[FindBy]:
        return [way for way in WAYS if getattr(self._terms, way) is not None]

    def _size(self, way: FindBy) -> int:
        shape = getattr(self._terms, way)
        return LEAST * shape.offsets if isinstance(shape, MusicShape) else int(shape.map_bytes)

    def _by_frames(self, clip: Reals, method: Method) -> Named:
        shape: MusicShape = getattr(self._terms, method)
        session, frames = self._client.session(meet_as_client), clip_frames(clip, method)
        with session.asking(Request(ASKS[method])) as record:
            met = replace(session.met, channel=record)
            with met.session():
                clock = Clock()
                engine = prepare_music(met, shape)
                clock.is_prepared()
                (answer,) = clock.answers([find_song(met, shape, frames, engine)], record, method)
        return answer

    def _by_landmarks(self, clip: Reals) -> Named:
        shape, (hashes, times) = self._terms.landmarks, clip_landmarks(clip)
        assert shape is not None
        held = self._held()
        with self._client.session(meet_as_client).asking(Request(Ask.LANDMARKS)) as record:
            clock = Clock()
            (answer,) = clock.answers([ask_landmarks(record, shape, held, hashes, times)], record, "landmarks")
        return answer

    def _held(self) -> LandmarkMap:
        """The sealed map, from here, from a file of an earlier time, or from the server."""
        shape = self._terms.landmarks
        assert shape is not None
        if self._map is None:
            kept = cache_folder() / "maps" / self._terms.map_digest
            data = kept.read_bytes() if kept.is_file() else b""
            if not self._is_map(data):
                with self._client.session(meet_as_client).asking(Request(Ask.MAP)) as record:
                    data = take_map(record, shape).dump()
                if not self._is_map(data):
                    raise WrongSessionError("the map of landmarks is not the one that the server tells of")
                _keep(kept, data)
            self._map = LandmarkMap.read(shape, data)
        return self._map

    def _is_map(self, data: bytes) -> bool:
        return hashlib.sha256(data).hexdigest() == self._terms.map_digest


def _keep(path: Path, data: bytes) -> None:
    with atomic_write(path, durable=False) as temporary:
        temporary.write_bytes(data)
