"""Which song is it? The client has a clip, the server songs; the client learns the song's name, or that it is none.

    1. client → server   the frames of its clip, encrypted
    2. server → client   their correlation with all songs, masked: each has a share of the score of every offset

           c[w] = sum over i of <s_i, y_{w+i}>,    w = 0 .. L - m

    3. both              a tournament of the offsets, each carrying the place of its song
    4. both              [best >= threshold]; the place where it is 1, nobody's where it is not
    5. both → client     the name at that place, by transfer

Songs stand one after the other, and an offset belongs to the song that the middle of the clip lies in: how long songs
are is not told, only how much music there is.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice import EncodedWeights
from ppspeech.crypto.shares import Cost, Shared, ShareEngine, blank, read_text, record
from ppspeech.protocols.meeting import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.music.shape import MusicShape, Songs
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.search import ASSUMPTIONS, best_of, bits_where, joined, tell_name

music = register_protocol(
    "music",
    functionality="the name of the server's song that the client's clip is of, or that it is of none, to the client",
    leakage="sizes alone: frames of a clip, frames of all songs together and how many songs, padded; bytes of a name",
    assumptions=ASSUMPTIONS.replace("name a segment", "name a song"),
)


@lru_cache(maxsize=32)
def music_cost(shape: MusicShape) -> Cost:
    """All that happens on shares; the correlation's bytes are `shape.plan.total_bytes`."""
    scores = blank(shape.offsets)
    return record(lambda engine: tell(engine, shape, scores, None))


def prepare_music(met: Meeting, shape: MusicShape) -> ShareEngine:
    """Offline, both parties at the same time, for one clip."""
    return met.prepare(shape.plan, music_cost(shape))


def find_song(met: Meeting, shape: MusicShape, clip: Any, engine: ShareEngine | None = None) -> str | None:
    """The client's side, in a session of the meeting. `clip`: whole frames `(pattern, channels)`. Raises RangeError
    before anything is sent, for another.
    """
    pattern = shape.clip(clip)
    engine = engine or prepare_music(met, shape)
    told = tell(engine, shape, met.correlate(shape.plan, pattern), None)
    assert told is not None
    return read_text(told)


def serve_songs(met: Meeting, own: Songs, encoded: EncodedWeights, engine: ShareEngine | None = None) -> None:
    """The server's side, in a session of the meeting; `encoded` by `Songs.encoded`."""
    engine = engine or prepare_music(met, own.shape)
    tell(engine, own.shape, met.correlate(own.shape.plan, encoded), own)


def tell(engine: ShareEngine, shape: MusicShape, scores: Residues, own: Songs | None) -> Residues | None:
    """Steps 3 to 5, from shares of all scores, `(offsets,)`: a name as text for the client, None for the server."""
    ring = shape.scale.ring
    with engine.in_flights():
        places = np.zeros(shape.offsets, np.uint64) if own is None else own.places
        best, place = best_of(Shared(engine, scores[None], ring), places[None], shape.width)
        level = np.zeros(1, np.uint64) if own is None else own.level
        found = ~(best - Shared(engine, level, ring)).is_negative()
        kept = joined(bits_where(found, place, shape.width))
        names = None if own is None else own.names
        told: Residues | None = tell_name(engine, kept, shape.width, names, shape.name_bytes)
    return told


@music.party("client")
def client(party: Party, clip: list[list[int]], *, shape: Mapping[str, Any]) -> str | None:
    """The client's whole program: a song's name, or None; `shape` has a `MusicShape`'s attributes."""
    chosen = MusicShape.from_params(shape)
    given = chosen.checked(clip, chosen.pattern)
    met = meet_as_client(party.channel)
    with met.session():
        return find_song(met, chosen, given)


@music.party("server")
def server(party: Party, songs: list[Any], names: Sequence[str], threshold: float, *, shape: Mapping[str, Any]) -> None:
    """The server's whole program; `songs` are whole frames, `(frames, channels)` each."""
    own = Songs(MusicShape.from_params(shape), [np.asarray(song) for song in songs], tuple(names), float(threshold))
    encoded, met = own.encoded(), meet_as_server(party.channel)
    with met.session():
        serve_songs(met, own, encoded)
