"""A clip of five seconds among 27 excerpts, and among an hour to six hours of music, between two processes over TLS.

Needs nothing.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ppspeech.arrays import Whole
from ppspeech.channel import Channel
from ppspeech.crypto import MapKey
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import machine
from ppspeech.evidence.bench.two_parties import STRANGERS, Measured, Timed, certificates, measure
from ppspeech.figures import Figure
from ppspeech.protocols import Meeting
from ppspeech.protocols.music import (
    BLOCK,
    LandmarkShape,
    Method,
    MusicShape,
    Songs,
    ask_landmarks,
    find_song,
    music_cost,
    prepare_music,
    seal_landmarks,
    serve_songs,
)

EXCERPTS, EXCERPT_FRAMES = 27, 422
"""Of 20 s: as in `reproduce music`."""
HOURS = (1, 2, 6)
FRAMES_AN_HOUR = round(3_600 * 16_000 / 743)
SONG_FRAMES = round(200 * 16_000 / 743)
LANDMARKS_A_SECOND = 104
PUBLISHED = 0.5
"""Seconds of a query among 1,000 songs, encrypted Shazam on Concrete ML (Zama 2024): a published figure, not measured
here; it ranks songs by a linear model that was trained on them, with 97 % right.
"""


@BENCHES.register("music")
def run(quick: bool) -> list[Figure]:
    """Measure each size, offline and online apart; what is found must be what was put there. Growth is shown by hours
    of music, by fingerprints and by landmarks. `quick`: one hour and not six.
    """
    repeats, hours = (2, HOURS[:1]) if quick else (5, HOURS)
    with certificates() as tls:
        small = measure(excerpt_jobs(), repeats, tls=tls)
        large = {each: measure([hours_job(each)], repeats, tls=tls)["hours"] for each in hours}
        looked = measure(landmark_jobs(quick), repeats, meet=STRANGERS, tls=tls)
    where = f"two processes, TLS on loopback, {machine()}; best of {repeats} after a warm-up"
    clip = f"a clip of 5 s among {EXCERPTS} excerpts of 20 s"
    return [
        Figure.less(
            "music.27.s", small["fingerprints"].total, "s", "encrypted Shazam, published, 1,000 songs", PUBLISHED,
            note=f"{clip}, fingerprints, offline and online; {where}",
        ),
        *small["fingerprints"].figures("music.fingerprints", "clip_s", f"{clip}; {where}"),
        *small["shapes"].figures("music.correlation", "clip_s", f"{clip}; {where}"),
        *(figure for each, found in large.items() for figure in _hours(each, found, where)),
        *(figure for name, found in looked.items() for figure in found.figures(f"music.{name}", "clip_ms", where)),
    ]  # fmt: skip


def _hours(hours: int, found: Measured, where: str) -> list[Figure]:
    shape = hours_shape(hours)
    sizes = f"{hours} h of music, {shape.songs} songs of 200 s, {shape.offsets:,} offsets, fingerprints; {where}"
    return [
        Figure(f"music.{hours}h.s", found.total, "s", note=sizes),
        Figure(f"music.{hours}h.online_s", found.online, "s", note=sizes),
        Figure(f"music.{hours}h.bytes", found.bytes, "B", note="payload, offline and online, both ways"),
        Figure(f"music.{hours}h.rounds", found.rounds, note="round trips online"),
    ]


def excerpt_jobs(songs: int = EXCERPTS, frames: int = EXCERPT_FRAMES, pattern: int = 100) -> list[Timed]:
    """Both kinds of frames."""
    methods: tuple[Method, ...] = ("fingerprints", "shapes")
    return [song_job(each, MusicShape(each, songs * frames, songs, pattern)) for each in methods]


def hours_shape(hours: float) -> MusicShape:
    """Of whole songs, one after the other."""
    frames = round(hours * FRAMES_AN_HOUR)
    return MusicShape("fingerprints", frames, -(-frames // SONG_FRAMES))


def hours_job(hours: float) -> Timed:
    """A clip of one of very many songs."""
    return song_job("hours", hours_shape(hours))


def song_job(name: str, shape: MusicShape) -> Timed:
    """Songs of random frames, and a clip of one of them with every tenth number another."""
    rng, numbers = np.random.default_rng(0), shape.numbers
    most = 1 if not numbers.client else 36  # no frame is longer than one
    signs = rng.choice([-most, most], size=(shape.frames, numbers.channels)).astype(np.int8)
    songs = np.array_split(signs, shape.songs)
    names = tuple(f"song {number}" for number in range(shape.songs))
    own = Songs(shape, songs, names, threshold=0.3 * shape.pattern * (most / numbers.largest) ** 2)
    wanted = len(songs) * 2 // 3
    clip = songs[wanted][7 : 7 + shape.pattern].copy()
    clip[rng.random(clip.shape) < 0.1] *= -1
    encoded, cost = own.encoded(), music_cost(shape)

    def seek(met: Meeting, channel: Channel) -> Callable[[], str | None]:
        watched = replace(met, channel=channel)
        engine = prepare_music(watched, shape)
        return lambda: find_song(watched, shape, clip, engine)

    def hold(met: Meeting, channel: Channel) -> Callable[[], None]:
        watched = replace(met, channel=channel)
        engine = prepare_music(watched, shape)
        return lambda: serve_songs(watched, own, encoded, engine)

    total = shape.plan.total_bytes + cost.total_bytes
    return Timed(name, seek, hold, lambda told: told == names[wanted], total, 1 + cost.rounds)


def landmark_jobs(quick: bool) -> list[Timed]:
    """Maps of 27 excerpts and of a third of them: one round trip each."""
    sizes = {"landmarks": EXCERPTS, "landmarks_third": EXCERPTS // 3}
    return [landmark_job(name, songs if not quick else songs // 9, 20) for name, songs in sizes.items()]


def landmark_job(name: str, songs: int, seconds: int, asked: int = 300) -> Timed:
    """Songs of random landmarks, and a clip with some of one of them; the map is there before."""
    rng, each = np.random.default_rng(0), seconds * LANDMARKS_A_SECOND
    marks: list[tuple[Whole, Whole]] = [
        (rng.integers(0, 1 << 23, each), np.sort(rng.integers(0, 31 * seconds, each))) for _ in range(songs)
    ]
    names = [f"song {number}" for number in range(songs)]
    key, shape = MapKey.new(), LandmarkShape(-(-songs * each // BLOCK), songs, asked, name_bytes=21)
    held = seal_landmarks(key, shape, marks, names)
    hashes, times = (part[:asked] for part in marks[-1])

    def seek(_: object, channel: Channel) -> Callable[[], str | None]:
        return lambda: ask_landmarks(channel, shape, held, hashes, times - times.min())

    def hold(_: object, channel: Channel) -> Callable[[], None]:
        return lambda: key.help(channel, shape.asked)

    return Timed(name, seek, hold, lambda told: told == names[-1], 64 * asked, 1)
