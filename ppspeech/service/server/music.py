"""An index of songs that is served: encoded before the first client, and a session with it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ppspeech.channel import Channel
from ppspeech.crypto.lattice import EncodedWeights
from ppspeech.errors import PpspeechError
from ppspeech.network import run_together
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.music import Method, MusicShape, Songs, find_song, give_map, music_cost, serve_songs
from ppspeech.service.estimate import KNOWN_PART, LEAST_BUDGET, Knowledge
from ppspeech.service.offer import Offer
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server.book import Visitor
from ppspeech.service.server.session import Handler
from ppspeech.service.songs import WAYS, FindBy, SongIndex
from ppspeech.service.tasks.music import Music

ASKS: dict[Method, Ask] = {"fingerprints": Ask.FINGERPRINTS, "shapes": Ask.SHAPES}
HASHES = 1 << 23  # landmarks that there can be


@dataclass(frozen=True, eq=False)
class ServedMusic:
    """Everything a session needs; made before the server forks, and shared by all sessions."""

    offer: Offer[Music]
    index: SongIndex
    songs: Mapping[Method, Songs]
    encoded: Mapping[Method, EncodedWeights]

    @classmethod
    def of(cls, name: str, index: SongIndex, ways: tuple[FindBy, ...] = WAYS) -> "ServedMusic":
        """Encode an index for the ways that are offered. Raises PpspeechError for other ways, or none."""
        if not ways or set(ways) - set(WAYS):
            raise PpspeechError(f"songs are found by {', '.join(WAYS)}, got {', '.join(ways) or 'none'}")
        chosen: list[Method] = [method for method in ASKS if method in ways]
        terms = Music(
            index.shape("fingerprints") if "fingerprints" in ways else None,
            index.shape("shapes") if "shapes" in ways else None,
            index.map_shape if "landmarks" in ways else None,
            hashlib.sha256(index.map.dump()).hexdigest(),
        )
        offer = Offer(
            name,
            "Which song is it? Its name, or that it is none of ours",
            index.fingerprint,
            "nobody's data were used: songs are not people",
            terms=terms,
        )
        warm_up()
        songs = {method: index.songs(method) for method in chosen}
        for each in songs.values():
            music_cost(each.shape)  # is kept
        return cls(offer, index, songs, {method: each.encoded() for method, each in songs.items()})

    @property
    def usual_budget(self) -> int:
        """What follows from the bits that an answer tells of frames, or from how many landmarks it opens."""
        terms = self.offer.terms
        told = [
            Knowledge.about(shape.frames * shape.numbers.channels, shape.width).budget
            for shape in (terms.fingerprints, terms.shapes)
            if shape is not None
        ]
        if terms.landmarks is not None:
            told.append(max(LEAST_BUDGET, HASHES // terms.landmarks.asked // KNOWN_PART))
        return min(told)

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:  # noqa: ARG002
        """Meet one client; it may ask in the ways that are offered."""
        met = meet_as_server(channel)
        handlers: dict[Ask, Handler] = {}
        for method, songs in self.songs.items():

            def by_frames(record: Channel, _: Request, songs: Songs = songs, method: Method = method) -> None:
                meeting = replace(met, channel=record)
                with meeting.session():
                    serve_songs(meeting, songs, self.encoded[method])

            handlers[ASKS[method]] = Handler(by_frames)
        shape = self.offer.terms.landmarks
        if shape is not None:
            asked = shape.asked
            handlers[Ask.LANDMARKS] = Handler(lambda record, _: self.index.key.help(record, asked))
            handlers[Ask.MAP] = Handler(lambda record, _: give_map(record, self.index.map), is_query=False)
        return handlers


@cache
def warm_up() -> None:
    """Compile before the first client comes, by two tiny songs: every session's process inherits it."""
    shape = MusicShape("fingerprints", 20, 3, pattern=5, name_bytes=7)
    own = Songs(shape, [np.ones((8, 32), np.int8), -np.ones((8, 32), np.int8)], ("a", "b"), 1.0)

    def ask(channel: Channel) -> None:
        met = meet_as_client(channel)
        with met.session():
            find_song(met, shape, np.ones((5, 32), np.int8))

    def answer(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            serve_songs(met, own, own.encoded())

    run_together(ask, answer)
