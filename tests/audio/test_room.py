"""The room adds what it says it adds, and no more."""

import numpy as np
import pytest
import scipy.signal
from hypothesis import given
from hypothesis import strategies as st

from ppspeech.audio.voices.room import Room, colored_noise
from ppspeech.errors import AudioError

RATE = 16000
QUIET = Room(snr=200, before=0, after=0, peak=1)


def speech(size: int = 8000) -> np.ndarray:
    return np.sin(np.arange(size) * 0.2) * np.hanning(size)


@given(st.integers(0, 2**32), st.integers(1, 3000), st.sampled_from([8000, 16000]))
def test_a_recording_is_finite_has_the_peak_and_the_length_of_its_room(seed: int, size: int, rate: int) -> None:
    generator = np.random.default_rng(seed)
    room = Room.draw(generator)
    recording = room.record(generator.standard_normal(size), rate, generator)
    assert np.isfinite(recording).all()
    assert np.abs(recording).max() == pytest.approx(room.peak)
    assert recording.size == size + sum(round(t * rate) for t in (room.before, room.after, room.decay)) - 1


@given(st.integers(0, 2**32))
def test_rooms_are_mild(seed: int) -> None:
    room = Room.draw(np.random.default_rng(seed))
    assert 20 <= room.snr <= 35
    assert room.wetness <= -12
    assert room.decay <= 0.25


def test_recordings_follow_from_the_generator() -> None:
    first, again, other = (Room().record(speech(), RATE, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("snr", [20.0, 35.0])
def test_noise_has_the_stated_level(snr: float) -> None:
    room = Room(wetness=-200, snr=snr, before=1.0, after=0)
    recording = room.record(np.ones(RATE), RATE, np.random.default_rng(0))
    noise, sound = recording[:RATE], recording[RATE : 2 * RATE]
    measured = 20 * np.log10(np.sqrt(np.mean(sound**2)) / noise.std())
    assert measured == pytest.approx(snr, abs=0.5)


@pytest.mark.parametrize("wetness", [-12.0, -22.0])
def test_reverberation_has_the_stated_energy_and_decay(wetness: float) -> None:
    response = Room(decay=0.2, wetness=wetness).impulse_response(RATE, np.random.default_rng(0))
    assert response[0] == 1
    assert 10 * np.log10(np.sum(response[1:] ** 2)) == pytest.approx(wetness)
    early, late = response[1:1600], response[1600:]  # the second half of 60 dB lies 30 dB lower
    assert 10 * np.log10(np.sum(early**2) / np.sum(late**2)) == pytest.approx(30, abs=3)


def test_recording_is_convolution_with_the_impulse_response() -> None:
    response = QUIET.impulse_response(RATE, np.random.default_rng(3))
    slow = np.zeros(100 + response.size - 1)
    for position, sample in enumerate(speech(100)):
        slow[position : position + response.size] += sample * response
    recording = QUIET.record(speech(100), RATE, np.random.default_rng(3))
    np.testing.assert_allclose(recording, slow / np.abs(slow).max(), atol=1e-6)


@pytest.mark.parametrize("color", [0.0, 0.5, 0.9])
def test_noise_has_unit_power_and_the_spectrum_of_its_color(color: float) -> None:
    noise = colored_noise(200_000, color, np.random.default_rng(0))
    assert np.mean(noise**2) == pytest.approx(1)
    frequencies, power = scipy.signal.welch(noise, nperseg=256)
    theory = (1 - color**2) / np.abs(1 - color * np.exp(-2j * np.pi * frequencies)) ** 2
    np.testing.assert_allclose(power[2:-2] / 2, theory[2:-2], rtol=0.3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"peak": 0}, "peak"),
        ({"peak": 1.01}, "peak"),
        ({"color": 1}, "color"),
        ({"decay": 0}, "decay"),
        ({"before": -1}, "silence"),
        ({"after": float("nan")}, "silence"),
    ],
)
def test_impossible_rooms_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(AudioError, match=message):
        Room(**wrong)


@pytest.mark.parametrize("bad", [np.zeros(10), np.zeros(0), np.ones((2, 10)), np.array([1.0, np.nan])])
def test_what_is_not_speech_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(AudioError, match="one finite, audible channel"):
        Room().record(bad, RATE, np.random.default_rng(0))
