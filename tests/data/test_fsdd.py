from pathlib import Path

import pytest

from ppspeech.data.corpora.fsdd import DIGIT_WORDS, load_fsdd
from ppspeech.errors import CorpusError
from tests.data.conftest import LinkedCopy


def test_whole_corpus(data: Path) -> None:
    corpus = load_fsdd()
    assert (len(corpus), corpus.sample_rate) == (3000, 8000)
    assert corpus.speakers == ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
    assert set(corpus.words) == set(DIGIT_WORDS)
    assert corpus.counts("subset") == {"train": 2700, "test": 300}
    assert corpus.counts("gender") == {"m": 3000}
    assert set(corpus.counts("take").values()) == {60}


def test_labels_agree_with_the_file_name_and_the_sound_can_be_read(data: Path) -> None:
    for utterance in load_fsdd():
        digit, speaker, take = utterance.path.stem.split("_")
        assert utterance.speaker == speaker
        assert utterance.word == utterance.text == DIGIT_WORDS[int(digit)]
        assert utterance.take == int(take)
        assert utterance.subset == ("test" if int(take) < 5 else "train")
    waveform = load_fsdd()[0].waveform(8000)
    assert 1000 < len(waveform) < 20_000


def test_partial_corpus_is_refused(data: Path, linked_copy: LinkedCopy) -> None:
    folder = linked_copy(data / "fsdd", opened="recordings")
    assert len(load_fsdd(folder)) == 3000
    for take in (3, 7):
        (folder / "recordings" / f"0_theo_{take}.wav").unlink()
    with pytest.raises(CorpusError, match=r"'fsdd'.*2 of 3000 files missing \(recordings/0_theo_3.wav, rec.*7.wav\)"):
        load_fsdd(folder)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("theo,male,USA/neutral\n", "", "5 rows where the corpus has 6"),
        ("theo,", "george,", "2500 different files where the corpus has 3000"),
        ("theo,", "teo,", "500 of 3000 files missing"),
        ("theo,male", "theo,mail", "speaker theo: gender.*'mail'"),
        ("speaker,", "who,", "no column 'speaker'"),
    ],
)
def test_damaged_metadata_is_refused(data: Path, linked_copy: LinkedCopy, old: str, new: str, complaint: str) -> None:
    metadata = linked_copy(data / "fsdd") / "metadata.csv"
    text = metadata.read_text()
    assert old in text
    metadata.write_text(text.replace(old, new))
    with pytest.raises(CorpusError, match=complaint):
        load_fsdd(metadata.parent)
