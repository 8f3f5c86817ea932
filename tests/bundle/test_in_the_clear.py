"""Bundles used in the clear: words, recordings and speakers, from files and waveforms."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.audio import Mfcc, write_audio
from ppspeech.bundle import Bundle, load_bundle
from ppspeech.errors import AudioError, ModelError
from ppspeech.models import adapt_speakers, supervector_scores
from tests.service.voices import CLASSES, MARGIN, RATE, SPEAKERS, WHOLE, released, voice


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("clear") / "words")


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("clear") / "voices", SPEAKERS)


@pytest.mark.parametrize("settings", [None, MARGIN, CLASSES], ids=["hmm", "margin", "classes"])
def test_words_are_those_of_the_model_alone(settings: object, words: Bundle, tmp_path: Path) -> None:
    bundle = words if settings is None else released(tmp_path / "other", settings)  # type: ignore[arg-type]
    sounds = [voice(seed, 0.2 + 0.1 * seed) for seed in range(4)]
    for sound, heard in zip(sounds, bundle.recognizer.recognize_all(sounds, RATE), strict=True):
        frames = Mfcc(bundle.mfcc)(sound)
        near = bundle.recognizer.clipped(frames.features)
        best = bundle.model(near, frames.lengths)[0].topk(2)
        assert heard.value == bundle.labels[int(best.indices[0])]
        assert heard.margin == pytest.approx(float(best.values[0] - best.values[1]), abs=1e-3)
        assert bundle.recognize(sound, RATE).value == heard.value


def test_none_of_the_words(words: Bundle, tmp_path: Path) -> None:
    sounds = [voice(seed) for seed in range(6)]
    plain = words.recognizer.recognize_all(sounds, RATE)
    all_rejected = words.recognizer.recognize_all(sounds, RATE, reject=True, garbage=1e3)
    none_rejected = words.recognizer.recognize_all(sounds, RATE, reject=True, garbage=-1e3)
    assert [each.value for each in all_rejected] == [None] * 6
    assert [each.value for each in none_rejected] == [each.value for each in plain]
    assert all(0 < each.confidence <= 1 for each in (*plain, *all_rejected))
    assert words.recognize(sounds[0], RATE, reject=True).value in {None, plain[0].value}
    longer = words.recognize(sounds[0].repeat(8), RATE)
    assert longer.margin > 3 * plain[0].margin
    assert longer.confidence < 2 * plain[0].confidence  # the same thing said often is no surer
    for settings in (MARGIN, CLASSES):
        with pytest.raises(ModelError, match="no garbage model"):
            released(tmp_path / type(settings).__name__, settings).recognize(sounds[0], RATE, reject=True)


def test_a_file_is_its_waveform(words: Bundle, tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav", voice(3), RATE)
    path = tmp_path / "released"
    released(path)
    assert load_bundle(path).recognize(tmp_path / "a.wav").value == words.recognize(voice(3), RATE).value
    write_audio(tmp_path / "silent.wav", torch.zeros(RATE), RATE)
    with pytest.raises(AudioError, match=r"silent\.wav: .*silent"):
        words.recognize(tmp_path / "silent.wav")


def test_words_of_a_recording_follow_one_another(words: Bundle) -> None:
    heard = words.transcriber.transcribe_all([voice(0, 1.0)], RATE, garbage=-1e3)[0]  # all of it must be words
    assert heard
    assert all(word.value in words.labels for word in heard)
    assert heard[0].start == 0.0
    assert all(one.end == pytest.approx(next_.start) for one, next_ in pairwise(heard))
    assert words.transcriber.transcribe_all([voice(0, 1.0)], RATE, garbage=1e3) == [[]]  # none of it can be
    only = words.transcribe(voice(0, 1.0), RATE, grammar="bumblebee aardvark")
    assert [word.value for word in only] == ["bumblebee", "aardvark"]


def test_speakers(voices: Bundle) -> None:
    verifier, mfcc = voices.verifier, Mfcc(voices.mfcc)
    own, other = [voice(0), voice(3)], [voice(1)]
    enrolled = torch.cat([mfcc(sound).features[0] for sound in own])
    models = [
        adapt_speakers(verifier.background.ubm, x, relevance=4.0) for x in (enrolled[None], mfcc(voice(5)).features)
    ]
    score = float(supervector_scores(verifier.background.ubm, *models))
    found = voices.verify(own, [voice(5)], RATE, threshold=score - 0.01)
    assert (found.value, found.score) == (True, pytest.approx(score, abs=1e-5))
    assert not voices.verify(own, [voice(5)], RATE, threshold=score + 0.01).value
    named = voices.identify([voice(0)], {"ann": own, "bob": other}, RATE, threshold=-9.0)
    assert named.value == max(named.scores, key=lambda name: named.scores[name])
    assert voices.identify([voice(0)], {"ann": own}, RATE, threshold=99.0).value is None
    direction = verifier.direction(verifier.features(own, RATE))
    assert direction.shape == (verifier.size,)
    assert np.linalg.norm(direction) == pytest.approx(1.0)


def test_a_claim_is_decided_by_how_rarely_strangers_come_so_far(voices: Bundle) -> None:
    among = voices.verifier.among(([voice(10 * who + take, 0.5) for take in range(4)] for who in range(1, 7)), RATE)
    assert among.impostors is not None
    assert among.impostors.people == 6
    found = [among.verify([voice(0)], [voice(3)], RATE, false_accept=rate) for rate in (0.5, 0.1, 0.01)]
    assert found[0].threshold < found[1].threshold < found[2].threshold
    assert [each.score for each in found] == [found[0].score] * 3
    assert all(each.value == (each.score >= each.threshold) for each in found)
    one = among.identify([voice(3)], {"ann": [voice(0)]}, RATE, false_accept=0.01)
    three = among.identify([voice(3)], {"ann": [voice(0)], "bob": [voice(1)], "cid": [voice(2)]}, RATE)
    assert three.thresholds["ann"] > one.thresholds["ann"] == pytest.approx(found[2].threshold)
    assert one.false_accept == three.false_accept == 0.01


def test_speech_unlike_the_cohort_is_not_accepted_at_any_rate(tmp_path: Path) -> None:
    voices = released(tmp_path / "raw", SPEAKERS, replace(WHOLE, cmvn="none"))
    among = voices.verifier.among(([voice(10 * who + take, 0.5) for take in range(4)] for who in range(1, 7)), RATE)
    seconds = torch.arange(RATE // 2) / RATE
    tone = 0.5 * torch.sin(2 * torch.pi * 440 * seconds)
    found = among.verify([tone], [tone], RATE, false_accept=0.5)
    assert found.score == pytest.approx(1.0)
    assert not found.value
    assert [each.split(" is unlike")[0] for each in found.unlike] == [
        "the trial", "what the claimed person was enrolled with",
    ]  # fmt: skip
    assert among.verify([tone], [tone], RATE, threshold=0.9).value  # at one's own risk, and said
    assert among.verify([tone], [tone], RATE, threshold=0.9).unlike
    assert not among.verify([voice(0)], [voice(0)], RATE).unlike


def test_a_bundles_cohort_is_doubted_sooner_than_one_that_was_brought(tmp_path: Path) -> None:
    """Whoever brings a cohort has chosen people recorded alike; a bundle may be used anywhere."""
    voices = released(tmp_path / "raw", SPEAKERS, replace(WHOLE, cmvn="none")).verifier
    people = [[voice(10 * who + take, 0.5) for take in range(4)] for who in range(1, 7)]
    brought = voices.among(people, RATE)
    shipped = replace(voices, impostors=brought.impostors)
    clip = brought.features([voice(0)], RATE)[0]
    moved = [(1 + 0.002 * step) * clip for step in range(500)]
    doubted = [[bool(each.unlike({"a clip": frames})) for frames in moved] for each in (brought, shipped)]
    assert all(later <= sooner for later, sooner in zip(*doubted, strict=True))
    assert 0 < sum(doubted[0]) < sum(doubted[1])


def test_what_a_model_is_not_for_is_refused(words: Bundle, voices: Bundle, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no words to recognize: it is there to verify and identify"):
        voices.recognize(voice(0), RATE)
    with pytest.raises(ModelError, match="no words to transcribe: it is there to recognize"):
        released(tmp_path / "margin", MARGIN).transcribe(voice(0), RATE)
    with pytest.raises(ModelError, match="speaker_ubm is needed"):
        words.verify([voice(0)], [voice(0)], RATE)
    with pytest.raises(ModelError, match="no cohort, and does not know"):
        voices.verify([voice(0)], [voice(0)], RATE)
    with pytest.raises(ModelError, match="at least one clip"):
        voices.verify([], [voice(0)], RATE, threshold=0.0)
