from pathlib import Path

import pytest

from ppspeech.data.corpora.audiomnist import load_audiomnist
from ppspeech.data.corpora.fsdd import DIGIT_WORDS, load_fsdd
from ppspeech.errors import CorpusError
from tests.data.conftest import LinkedCopy


def test_whole_corpus(data: Path) -> None:
    corpus = load_audiomnist()
    assert (len(corpus), corpus.sample_rate) == (4800, 16_000)
    assert corpus.speakers == tuple(f"{n:02d}" for n in range(1, 61))
    assert len({u.speaker for u in corpus if u.gender == "f"}) == 12
    assert len({u.speaker for u in corpus if u.gender == "m"}) == 48
    assert set(corpus.counts("word").values()) == {480}
    assert set(corpus.counts("take").values()) == {600}
    assert corpus.words == load_fsdd().words
    for utterance in corpus:
        digit, speaker, take = utterance.path.stem.split("_")
        assert (utterance.word, utterance.speaker, utterance.take) == (DIGIT_WORDS[int(digit)], speaker, int(take))
        assert utterance.path.parent.name == speaker


def test_partial_corpus_is_refused(data: Path, linked_copy: LinkedCopy) -> None:
    folder = linked_copy(data / "audiomnist")
    (folder / "17").unlink()
    with pytest.raises(CorpusError, match=r"'audiomnist'.*80 of 4800 files missing \(17/0_17_0.flac, .* 77 more\)"):
        load_audiomnist(folder)


def test_empty_recording_is_refused(data: Path, linked_copy: LinkedCopy) -> None:
    folder = linked_copy(data / "audiomnist", opened="60")
    clip = folder / "60" / "9_60_7.flac"
    clip.unlink()
    clip.touch()
    with pytest.raises(CorpusError, match=r"1 of 4800 files empty \(60/9_60_7.flac\)"):
        load_audiomnist(folder)
