"""Voices as signs: agreement stands for the angle, lengths do not matter, everybody has the same code of a voice."""

import hashlib

import numpy as np
import pytest
from scipy.linalg import hadamard

from ppspeech.errors import RangeError
from ppspeech.protocols.speakers import codes
from ppspeech.protocols.speakers.codes import cosines_of, least_agreeing, voice_codes

generator = np.random.default_rng(3)


@pytest.mark.parametrize("features", [3, 40, 700])
def test_agreeing_bits_tell_the_cosine(features: int) -> None:
    """Within 5 standard deviations of as many coins: a false alarm in 40,000 runs of all."""
    bits = 1024
    for wanted in np.linspace(-0.95, 0.95, 9):
        one, other = np.linalg.qr(generator.normal(size=(features, 2)))[0].T
        both = voice_codes(np.stack([one, wanted * one + np.sqrt(1 - wanted**2) * other]), bits)
        part = 1 - np.arccos(wanted) / np.pi
        agreeing = (both[0] == both[1]).sum()
        assert abs(agreeing - bits * part) <= 5 * np.sqrt(bits * part * (1 - part))
        assert abs(float(cosines_of(agreeing, bits)) - wanted) < 0.25


def test_a_rotation_of_the_kind_that_is_stated() -> None:
    """Against the whole matrices, slowly."""
    vectors, size = generator.normal(size=(4, 100)), 256
    slow = np.zeros((4, size))
    slow[:, :100] = vectors
    for signs in codes._signs(size):
        slow = (slow * signs) @ hadamard(size) / np.sqrt(size)
    np.testing.assert_allclose(np.linalg.norm(slow, axis=1), np.linalg.norm(vectors, axis=1))
    np.testing.assert_array_equal(voice_codes(vectors, size), slow >= 0)


def test_lengths_do_not_matter_and_many_are_coded_as_one_by_one() -> None:
    vectors = generator.normal(size=(600, 20))
    scaled = vectors * generator.uniform(1e-3, 1e3, size=(600, 1))
    many = voice_codes(vectors, 64)
    np.testing.assert_array_equal(voice_codes(scaled, 64), many)
    np.testing.assert_array_equal(voice_codes(vectors[599:], 64), many[599:])


def test_everybody_has_the_same_code() -> None:
    """A device and a server of other versions must agree: this never changes."""
    code = voice_codes(np.arange(1.0, 41.0)[None], 128)
    assert hashlib.sha256(np.packbits(code).tobytes()).hexdigest()[:16] == "802ed650c155c9e5"


def test_the_least_bits_that_are_enough() -> None:
    cosines = np.linspace(-1, 1, 41)
    least = least_agreeing(cosines, 512)
    assert (least[0], least[-1]) == (1, 512)
    assert (cosines_of(least[1:], 512) >= cosines[1:] - 1e-9).all()
    assert (cosines_of(least[1:-1] - 1, 512) < cosines[1:-1]).all()
    for wrong in (1.5, -1.1, np.nan):
        with pytest.raises(RangeError, match="within"):
            least_agreeing(np.array([0.0, wrong]), 512)


@pytest.mark.parametrize("wrong", [np.zeros(4), np.full(4, np.nan), np.array([1.0, np.inf, 0.0, 0.0])])
def test_what_has_no_direction_has_no_code(wrong: np.ndarray) -> None:
    with pytest.raises(RangeError, match="finite numbers, not all of them 0"):
        voice_codes(np.stack([np.ones(4), wrong]), 64)
