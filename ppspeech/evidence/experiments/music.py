"""Clips of five seconds, with people talking over them, named among 27 pieces of music, in the clear and encrypted.

Needs the corpora music and librispeech; --quick takes about 30 s.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Whole
from ppspeech.audio import read_audio
from ppspeech.audio.music import MUSIC_RATE, landmarks
from ppspeech.channel import Channel
from ppspeech.data import load_corpus
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.network import run_together
from ppspeech.progress import track
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.music import METHODS, Method, ask_landmarks, find_song, serve_songs, votes
from ppspeech.service import (
    ASKED,
    WAYS,
    FindBy,
    SongIndex,
    clip_frames,
    clip_landmarks,
    clip_of,
    index_songs,
    rivals,
    threshold_of,
    votes_of,
)

LEVELS: dict[str, float | None] = {"none": None, "10db": 10.0, "5db": 5.0, "0db": 0.0}
"""How far the music is above the noise, as it was before it was turned down to 30 to 100 %."""
TIMES = 3
CLIPS = "clips of a few songs"
"""What intervals are over: clips of one song are not independent."""
CUT = 5 * MUSIC_RATE + 6_000
NAMES: dict[FindBy, str] = {"shapes": "correlation", "fingerprints": "fingerprint", "landmarks": "landmarks"}
PUBLISHED, PEER = 0.97, "encrypted Shazam, published"
"""Of clips of 1,000 songs, a linear model on Concrete ML (Zama 2024): clean clips, not measured here."""


@dataclass(frozen=True)
class Query:
    """A clip of a song, at a level of noise."""

    level: str
    song: int
    clip: Reals


@dataclass(frozen=True)
class Heard:
    """What is looked for of a clip."""

    frames: dict[Method, NDArray[np.int8]]
    marks: tuple[Whole, Whole]

    @classmethod
    def of(cls, query: Query) -> "Heard":
        """As a client does."""
        clip = clip_of(query.clip, MUSIC_RATE)
        return cls({method: clip_frames(clip, method) for method in METHODS}, clip_landmarks(clip))


@EXPERIMENTS.register("music")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Three clips of every piece at each level of noise, speech and hiss: how often the best song is the right one,
    and how often the right, a wrong or no song is named from the threshold on.

    Thresholds are set by the pieces alone, before a clip is cut. Then every clip is looked for without its own song in
    the index, by thresholds that were set without it: whatever is named then is wrong. Under encryption both parties
    run in this process. `quick`: one clip of every piece at each level, encrypted at one level alone.
    """
    names, songs = load_songs()
    queries = make_queries(songs, 1 if quick else TIMES)
    index, heard = index_songs(names, songs, MUSIC_RATE), [Heard.of(query) for query in queries]
    marks = [landmarks(song) for song in songs]
    figures: list[Figure] = []
    clear: dict[FindBy, list[str | None]] = {}
    for way in WAYS:
        own = index.map_shape.votes if way == "landmarks" else index.thresholds[way]
        best = best_landmarks(marks, heard) if way == "landmarks" else best_frames(index, heard, way)
        figures += _told(NAMES[way], queries, best, own)
        clear[way] = [index.names[song] if score >= own else None for song, score in best]
    figures += _strangers(index, marks, queries, heard)
    chosen = [at for at, query in enumerate(queries) if not quick or query.level == "5db"]
    told = encrypted(index, [heard[at] for at in chosen])
    for way in WAYS:
        same = sum(one == clear[way][at] for one, at in zip(told[way], chosen, strict=True))
        said = f"of {len(chosen)} clips, named as in the clear"
        figures.append(Figure.count(f"music.{NAMES[way]}.same", same, len(chosen), CLIPS, note=said))
    return figures


def load_songs() -> tuple[list[str], list[Reals]]:
    """Titles and waveforms."""
    corpus = load_corpus("music")
    files = sorted(each.path for each in corpus)
    return [path.stem for path in files], [np.asarray(read_audio(path, MUSIC_RATE), np.float64) for path in files]


def make_queries(songs: Sequence[Reals], times: int) -> list[Query]:
    """The same every time: random places and levels, speech of forty people with hiss over them."""
    rng = np.random.default_rng(3)
    talking = sorted(each.path for each in load_corpus("librispeech") if each.subset == "train")[:40]
    speech = np.concatenate([np.asarray(read_audio(path, MUSIC_RATE), np.float64) for path in talking])
    found = []
    for level, decibel in LEVELS.items():
        for time in range(TIMES):
            for song, sound in enumerate(songs):
                at = rng.integers(0, len(sound) - CUT)
                clip = sound[at : at + CUT]
                begin = rng.integers(0, len(speech) - CUT)
                noise = speech[begin : begin + CUT] + 0.3 * speech.std() * rng.normal(size=CUT)
                turned = rng.uniform(0.3, 1.0) * clip
                if decibel is not None:
                    turned += noise * np.sqrt((clip**2).mean() / (noise**2).mean() / 10 ** (decibel / 10))
                if time < times:
                    found.append(Query(level, song, turned))
    return found


def best_frames(index: SongIndex, heard: Sequence[Heard], method: Method) -> list[tuple[int, float]]:
    """In the clear: the best song of each clip, and its score."""
    songs, found = index.songs(method), []
    for clip in heard:
        scores = songs.scores(clip.frames[method])
        at = int(scores.argmax())
        found.append((int(songs.places[at]) - 1, float(scores[at])))
    return found


def best_landmarks(marks: Sequence[tuple[Whole, Whole]], heard: Sequence[Heard]) -> list[tuple[int, float]]:
    """In the clear, from a table: the song that most landmarks of each clip agree on, and how many do."""
    places: dict[int, list[tuple[int, int]]] = {}
    for song, (hashes, times) in enumerate(marks):
        for mark, time in zip(hashes.tolist(), times.tolist(), strict=True):
            places.setdefault(mark, []).append((song, time))
    found = []
    for clip in heard:
        asked = zip(*(each[:ASKED].tolist() for each in clip.marks), strict=True)
        hits = np.array([(song, at - own) for mark, own in asked for song, at in places.get(mark, ())], np.int64)
        song, count = votes(*hits.reshape(-1, 2).T)
        found.append((song, float(count)))
    return found


def _told(name: str, queries: Sequence[Query], best: Sequence[tuple[int, float]], threshold: float) -> list[Figure]:
    """By level: how often the best song is right; how often it is named; and wrong songs that are."""
    figures, note = [], f"a song is named from {threshold:g} on"
    rows = [(query, song == query.song, score >= threshold) for query, (song, score) in zip(queries, best, strict=True)]
    for level in LEVELS:
        own = [(right, named) for query, right, named in rows if query.level == level]
        best_right, right_named = sum(right for right, _ in own), sum(right and named for right, named in own)
        peer, published = (PEER, PUBLISHED) if level == "none" else (None, None)
        figures += [
            Figure.share(
                f"music.{name}.accuracy_{level}", best_right, len(own), CLIPS, peer, published, note="the best song"
            ),
            Figure.share(f"music.{name}.named_{level}", right_named, len(own), CLIPS, note=note),
        ]
    wrong = sum(named and not right for _, right, named in rows)
    return [*figures, Figure.count(f"music.{name}.wrong_named", wrong, len(rows), CLIPS, note=note)]


def _strangers(
    index: SongIndex, marks: Sequence[tuple[Whole, Whole]], queries: Sequence[Query], heard: Sequence[Heard]
) -> list[Figure]:
    """Clips of songs that are not in the index, and by whose frames no threshold was set."""
    wrong: dict[FindBy, int] = dict.fromkeys(WAYS, 0)
    matrices = {method: rivals(index.frames[method], method) for method in METHODS}
    for song in track(range(len(index.names)), "Without one"):
        others = [at for at in range(len(index.names)) if at != song]
        clips = [clip for query, clip in zip(queries, heard, strict=True) if query.song == song]
        names = tuple(index.names[at] for at in others)
        for method, (whose, best) in matrices.items():
            kept = whose != song
            renumbered = np.searchsorted(others, whose[kept])
            threshold, _ = threshold_of((renumbered, best[kept][:, others]), names, method)
            frames = {method: [index.frames[method][at] for at in others]}
            rest = replace(index, names=names, frames=frames, thresholds={method: threshold})
            wrong[method] += sum(score >= threshold for _, score in best_frames(rest, clips, method))
        left = [marks[at] for at in others]
        enough = votes_of(left, ASKED)
        wrong["landmarks"] += sum(count >= enough for _, count in best_landmarks(left, clips))
    note = f"of {len(queries)} clips of songs that are not in the index, by thresholds set without them"
    counts = {NAMES[way]: count for way, count in wrong.items()}
    return [
        Figure.count(f"music.{name}.strangers_named", count, len(queries), CLIPS, note=note)
        for name, count in counts.items()
    ]


def encrypted(index: SongIndex, heard: Sequence[Heard]) -> dict[FindBy, list[str | None]]:
    """What a client is told of each clip, by way."""

    def ask(channel: Channel) -> dict[FindBy, list[str | None]]:
        met = meet_as_client(channel)
        told: dict[FindBy, list[str | None]] = {}
        with met.session():
            for method in METHODS:
                told[method] = [find_song(met, index.shape(method), clip.frames[method]) for clip in heard]
        told["landmarks"] = [ask_landmarks(channel, index.map_shape, index.map, *clip.marks) for clip in heard]
        return told

    def answer(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            for method in METHODS:
                own = index.songs(method)
                encoded = own.encoded()
                for _ in heard:
                    serve_songs(met, own, encoded)
        for _ in heard:
            index.key.help(channel, index.map_shape.asked)

    return run_together(ask, answer)[0]
