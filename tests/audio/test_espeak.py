"""eSpeak: the same prompt gives the same sound, text is only text, and failures are errors people can read."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import espeakng_loader
import numpy as np
import pytest

from ppspeech.audio.voices.espeak import LONGEST_TEXT, SAMPLE_RATE, Espeak, Prompt, UnsayableError
from ppspeech.errors import AudioError


@pytest.fixture(scope="module")
def espeak() -> Iterator[Espeak]:
    with Espeak() as running:
        yield running


def test_says_a_word(espeak: Espeak) -> None:
    samples = espeak.say(Prompt("seven"))
    assert samples.dtype == np.float32
    assert 0.2 < samples.size / SAMPLE_RATE < 1.0
    assert 0.05 < np.abs(samples).max() <= 1.0


@pytest.mark.parametrize("voice", ["en", "en+m3", "en-us+f2", "en+klatt3", "en-gb-scotland+grandma"])
def test_a_prompt_sounds_the_same_whatever_was_said_before(espeak: Espeak, voice: str) -> None:
    with Espeak() as fresh:
        first = fresh.say(Prompt("seven", voice))
    espeak.say(Prompt("Something longer, in another voice.", "en+f4", rate=250, pitch=80, pitch_range=90))
    np.testing.assert_array_equal(espeak.say(Prompt("seven", voice)), first)


def test_a_prompt_sounds_the_same_at_another_time() -> None:
    """eSpeak seeds its noise with the clock's second, so the two processes must start in different ones."""
    answers = []
    for _ in range(2):
        with Espeak() as espeak:
            answers.append(espeak.say(Prompt("seven", "en-us+f2")))
        time.sleep(1.1)
    np.testing.assert_array_equal(*answers)


def test_rate_pitch_and_voice_are_heard(espeak: Espeak) -> None:
    plain = espeak.say(Prompt("seven"))
    assert espeak.say(Prompt("seven", rate=300)).size < 0.8 * plain.size
    for other in (Prompt("seven", pitch=80), Prompt("six"), Prompt("seven", "en+f2"), Prompt("seven", pitch_range=0)):
        changed = espeak.say(other)
        assert changed.size != plain.size or not np.array_equal(changed, plain)


def test_markup_is_read_aloud_and_not_obeyed(espeak: Espeak) -> None:
    plain = espeak.say(Prompt("seven"))
    assert espeak.say(Prompt('<prosody rate="fast">seven</prosody>')).size > 2 * plain.size
    # As phoneme names, [[s]] would be a hiss of the length of one sound.
    letter = espeak.say(Prompt("s"))
    assert espeak.say(Prompt("[[s]]")).size > 0.5 * letter.size


def test_unicode_reaches_espeak_whole(espeak: Espeak) -> None:
    assert not np.array_equal(espeak.say(Prompt("café")), espeak.say(Prompt("caf")))


def test_the_longest_text_passes(espeak: Espeak) -> None:
    assert espeak.say(Prompt("é" * LONGEST_TEXT)).size > SAMPLE_RATE


@pytest.mark.parametrize("text", ["...", "-", "\u200b"])
def test_a_text_without_sound_is_refused_and_espeak_goes_on(espeak: Espeak, text: str) -> None:
    with pytest.raises(UnsayableError, match="no sound"):
        espeak.say(Prompt(text))
    assert espeak.say(Prompt("one")).size


@pytest.mark.parametrize("text", ["", "  ", "a\nb", "a\x00b", "\x0150P seven", "\ud800", "a" * (LONGEST_TEXT + 1)])
def test_texts_that_are_not_one_line_of_text_are_refused(text: str) -> None:
    with pytest.raises(AudioError, match="text to say"):
        Prompt(text)


@pytest.mark.parametrize(("name", "value"), [("rate", 79), ("rate", 451), ("pitch", -1), ("pitch_range", 100)])
def test_numbers_out_of_range_are_refused(name: str, value: int) -> None:
    with pytest.raises(AudioError, match=f"{name} must lie in .* got {value}"):
        Prompt("seven", **{name: value})


@pytest.mark.parametrize("voice", ["nonsense", "en-gb", "en+nonsense", "en+../../en_dict"])
def test_an_unknown_voice_is_named(voice: str) -> None:
    with Espeak() as espeak, pytest.raises(AudioError, match="eSpeak has no voice") as refusal:
        espeak.say(Prompt("seven", voice))
    assert voice in str(refusal.value)


def test_a_killed_process_is_an_error_that_says_so() -> None:
    with Espeak() as espeak:
        espeak.say(Prompt("one"))
        os.kill(espeak._process.pid, signal.SIGKILL)
        with pytest.raises(AudioError, match="ended with status -9"):
            espeak.say(Prompt("two"))


def test_a_crash_while_speaking_names_the_signal_and_the_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = Path(sys.modules["ppspeech.audio.voices.espeak_process"].__file__ or "").read_text()
    crashing = tmp_path / "crashing.py"
    crashing.write_text(program.replace("espeak.espeak_Synchronize()", "os.kill(os.getpid(), signal.SIGSEGV)"))
    monkeypatch.setattr("ppspeech.audio.voices.espeak.espeak_process.__file__", str(crashing))
    with Espeak() as espeak, pytest.raises(AudioError, match=r"signal 11 while saying .*seven"):
        espeak.say(Prompt("seven"))


def test_a_library_that_cannot_be_loaded_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(espeakng_loader, "get_library_path", lambda: str(tmp_path / "none.so"))
    with Espeak() as espeak, pytest.raises(AudioError, match=r"cannot be loaded.*none\.so"):
        espeak.say(Prompt("seven"))


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(AudioError, match="need the package espeakng-loader"):
        Espeak()


def test_closed_is_closed() -> None:
    with Espeak() as espeak:
        process = espeak._process
    assert process.returncode == 0
    with pytest.raises(AudioError, match="closed"):
        espeak.say(Prompt("seven"))


def test_a_data_folder_with_a_long_path_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Espeak() as espeak:
        expected = espeak.say(Prompt("seven"))
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    (deep / "espeak-ng-data").symlink_to(espeakng_loader.get_data_path())
    monkeypatch.setattr(espeakng_loader, "get_data_path", lambda: str(deep / "espeak-ng-data"))
    with Espeak() as espeak:
        np.testing.assert_array_equal(espeak.say(Prompt("seven")), expected)
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with pytest.raises(AudioError, match="set TMPDIR"):
        Espeak()
