"""Music as numbers: as slow loops say, alike after noise, and nothing where nothing is heard."""

from itertools import pairwise

import numpy as np
import pytest

from ppspeech.audio.music import (
    LANDMARK_BITS,
    MUSIC_RATE,
    excerpt,
    fingerprints,
    landmarks,
    music_samples,
    shapes,
)
from ppspeech.errors import AudioError


def tune(seconds: float = 6.0, seed: int = 0) -> np.ndarray:
    """Tones that change every quarter of a second."""
    rng, at = np.random.default_rng(seed), np.arange(round(seconds * MUSIC_RATE)) / MUSIC_RATE
    steps = 1 + len(at) // 4_000
    pitch = np.repeat(rng.uniform(200, 2_500, size=(3, steps)), 4_000, axis=1)[:, : len(at)]
    sound = sum(np.sin(2 * np.pi * np.cumsum(each) / MUSIC_RATE) for each in pitch) / 6
    return np.asarray(sound + 0.01 * rng.normal(size=len(at)))


def slow_energies(sound: np.ndarray, hop: int, window: int, low: float, high: float, bands: int) -> np.ndarray:
    hertz, edges = np.fft.rfftfreq(window, 1 / MUSIC_RATE), np.geomspace(low, high, bands + 1)
    found = []
    for start in range(0, len(sound) - window + 1, hop):
        power = np.abs(np.fft.rfft(sound[start : start + window] * np.hanning(window))) ** 2
        found.append([sum(power[(hertz >= a) & (hertz < b)]) for a, b in pairwise(edges)])
    return np.array(found)


def test_fingerprints_are_the_signs_of_the_slow_loop() -> None:
    sound = tune(2.0)
    energy = slow_energies(sound, 743, 5944, 300, 2_000, 33)
    slow = [[(e[b] - e[b + 1]) - (d[b] - d[b + 1]) > 0 for b in range(32)] for d, e in pairwise(energy)]
    assert (fingerprints(sound) == np.where(slow, 1, -1)).all()


def test_shapes_are_those_of_the_slow_loop() -> None:
    sound = tune(3.0)
    logs = np.log(slow_energies(sound, 800, 4096, 150, 6_000, 13) + 1e-9)
    along = logs[:, 1:] - logs[:, :-1]
    frames = len(along)
    for at in (0, 7, frames - 1):
        around = [along[min(max(at + step, 0), frames - 1)] for step in range(-20, 21)]
        centered = along[at] - np.mean(around, axis=0)
        assert np.abs(shapes(sound)[at] / 126 - centered / np.linalg.norm(centered)).max() < 0.5 / 126 + 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_no_frame_of_shapes_is_longer_than_one(seed: int) -> None:
    loud = np.random.default_rng(seed).normal(size=40_000) * np.linspace(0, 1, 40_000) ** 4
    assert (shapes(loud).astype(int) ** 2).sum(axis=1).max() <= 128**2


def test_what_is_quiet_says_nothing() -> None:
    sound = tune(4.0)
    sound[MUSIC_RATE : 3 * MUSIC_RATE] = 1e-6
    silent = slice(MUSIC_RATE // 743 + 2, (3 * MUSIC_RATE - 5944) // 743 - 2)
    assert not fingerprints(sound)[silent].any()
    assert not fingerprints(np.zeros(20_000)).any()
    assert not shapes(np.zeros(20_000)).any()
    assert len(landmarks(np.zeros(20_000))[0]) == 0


def test_noise_leaves_most_as_it_is() -> None:
    sound = tune()
    noisy = sound + 0.03 * np.random.default_rng(1).normal(size=len(sound))
    other = tune(seed=5)
    own, same, strange = (fingerprints(each).astype(float) for each in (sound, noisy, other))
    assert (own * same).mean() > 0.5  # three of four signs
    assert abs((own * strange).mean()) < 0.2
    marks, again, others = (set(zip(*map(list, landmarks(each)), strict=True)) for each in (sound, noisy, other))
    assert len(marks & again) > 20 * max(1, len(marks & others))


def test_landmarks_are_hashes_with_their_times_the_strongest_first() -> None:
    hashes, times = landmarks(tune())
    assert hashes.min() >= 0
    assert hashes.max() < 1 << LANDMARK_BITS
    assert len(hashes) == len(times) > 100
    assert times.max() < 6 * MUSIC_RATE / 512
    assert (np.diff(times) < 0).any()  # not in the order of time
    assert ((hashes & 31) >= 2).all()  # a partner comes two frames later or more


def test_a_clip_is_the_beginning() -> None:
    sound = tune(8.0)
    assert (excerpt(sound, 100) == sound[: len(excerpt(sound, 100))]).all()
    assert music_samples(100) <= len(excerpt(sound, 100)) <= music_samples(100) + MUSIC_RATE
    assert len(shapes(excerpt(sound, 100))) >= 100
    assert len(fingerprints(excerpt(sound[: music_samples(100)], 100))) >= 100


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: excerpt(tune(3.0), 100), "3.0 s of music are not enough: give 5.2 s"),
        (lambda: excerpt(np.zeros(100_000), 100), "nothing is heard"),
        (lambda: shapes(np.zeros(10)), "one channel"),
        (lambda: fingerprints(np.zeros((2, 9_000))), "one channel"),
        (lambda: landmarks(np.full(9_000, np.nan)), "not finite"),
    ],
)
def test_what_is_no_music_is_refused(call: object, said: str) -> None:
    with pytest.raises(AudioError, match=said):
        call()  # type: ignore[operator]
