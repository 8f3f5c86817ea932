"""From where on a song is named, set by the songs themselves.

Excerpts of every song are looked for among the others. What the most alike of those scores, and a part more, is not
enough: a song that is not in the index shall not be taken for one that is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Whole
from ppspeech.audio.music import MUSIC_RATE, PEAK_HOP, music_samples
from ppspeech.protocols.music import Method, MusicShape, votes

PATTERN = 100
"""Frames of a clip, about five seconds."""
CLIP_SECONDS = music_samples(PATTERN) / MUSIC_RATE
CLIP_PEAKS = music_samples(PATTERN) // PEAK_HOP
"""Frames in which landmarks of a clip begin."""
EXCERPTS = 200
"""Of all songs together, by which thresholds are set."""
MARGIN = 1.15
"""Of the most alike that is another song."""
SAME = 0.6
"""A part of the highest score there is: songs that score so much are the same music twice."""
LEAST: dict[Method, float] = {"fingerprints": 0.2, "shapes": 0.4}
"""Parts of the highest score, below which nothing is a song, however few songs there are to set a threshold by."""
LEAST_VOTES = 8
AT_ONCE = 1_024  # frames


@dataclass(frozen=True)
class Alike:
    """Two songs that sound the same: an excerpt of the first scores so high in the second."""

    song: str
    other: str
    score: float


def rivals(frames: Sequence[NDArray[np.int8]], method: Method) -> tuple[Whole, Reals]:
    """Excerpts among all songs: whose each is, `(excerpts,)`, and its best score in each song, `(excerpts, songs)`."""
    numbers = MusicShape(method, PATTERN, 1).numbers
    every = max(1, -(-sum(len(song) - PATTERN + 1 for song in frames) // EXCERPTS))
    starts = [(song, at) for song, own in enumerate(frames) for at in range(0, len(own) - PATTERN + 1, every)]
    cut = [frames[song][at : at + PATTERN] for song, at in starts]
    patterns = np.stack(cut).reshape(len(cut), -1).astype(np.float32) / 2.0 ** (numbers.client + numbers.server)
    best = np.empty((len(starts), len(frames)), np.float32)
    for song, own in enumerate(frames):
        windows = np.lib.stride_tricks.sliding_window_view(own, PATTERN, axis=0).transpose(0, 2, 1)
        scores = [
            patterns @ windows[at : at + AT_ONCE].reshape(-1, patterns.shape[1]).astype(np.float32).T
            for at in range(0, len(windows), AT_ONCE)
        ]
        best[:, song] = np.max([each.max(axis=1) for each in scores], axis=0)
    return np.array([song for song, _ in starts], np.int64), best


def threshold_of(found: tuple[Whole, Reals], names: Sequence[str], method: Method) -> tuple[float, tuple[Alike, ...]]:
    """A score that no excerpt of another song reaches, by `MARGIN`; and songs that are the same music."""
    whose, best = found
    others = np.where(np.arange(best.shape[1]) == whose[:, None], 0.0, best)
    same = {
        (min(one, other), max(one, other)): float(others[at, other])
        for at, (one, other) in enumerate(zip(whose.tolist(), others.argmax(axis=1).tolist(), strict=True))
        if others[at, other] > SAME * PATTERN
    }
    for one, other in same:
        others[whose == one, other] = others[whose == other, one] = 0.0
    others[others > SAME * PATTERN] = 0.0
    threshold = round(max(LEAST[method] * PATTERN, MARGIN * float(others.max())), 3)
    return threshold, tuple(Alike(names[one], names[other], score) for (one, other), score in sorted(same.items()))


def votes_of(marks: Sequence[tuple[Whole, Whole]], asked: int) -> int:
    """Landmarks that must agree: more than do so for an excerpt of another song, by three deviations of a count."""
    places: dict[int, list[tuple[int, int]]] = {}
    for song, (hashes, times) in enumerate(marks):
        for mark, time in zip(hashes.tolist(), times.tolist(), strict=True):
            places.setdefault(mark, []).append((song, time))
    most, each = 0, max(1, EXCERPTS // len(marks))
    for song, (hashes, times) in enumerate(marks):
        last = int(times.max()) if len(times) else 0
        for begin in np.linspace(0, max(0, last - CLIP_PEAKS), min(each, 1 + last // CLIP_PEAKS * 4)):
            inside = np.flatnonzero((times >= begin) & (times < begin + CLIP_PEAKS))[:asked]
            hits = [
                (other, at - int(times[place]))
                for place in inside
                for other, at in places[int(hashes[place])]
                if other != song
            ]
            agree = np.array(hits, np.int64).reshape(-1, 2)
            _, count = votes(agree[:, 0], agree[:, 1])
            most = max(most, count if count < SAME * len(inside) else 0)
    return max(LEAST_VOTES, 1 + round(most + 3 * float(np.sqrt(most))))
