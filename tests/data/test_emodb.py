from pathlib import Path

import pytest

from ppspeech.data.corpora.emodb import EMOTIONS, load_emodb
from ppspeech.errors import CorpusError
from tests.data.conftest import LinkedCopy

PUBLISHED = {"anger": 127, "boredom": 81, "neutral": 79, "happiness": 71, "fear": 69, "sadness": 62, "disgust": 46}


def test_whole_corpus(data: Path) -> None:
    corpus = load_emodb()
    assert (len(corpus), corpus.sample_rate, len(corpus.speakers)) == (535, 16_000, 10)
    assert corpus.counts("emotion") == PUBLISHED
    assert len({u.speaker for u in corpus if u.gender == "f"}) == 5
    assert len(corpus.labels("text")) == 10
    assert corpus.words == ()
    for utterance in corpus:
        name = utterance.path.stem
        assert (utterance.speaker, utterance.text, utterance.emotion) == (name[:2], name[2:5], EMOTIONS[name[5]])
        assert "abcdef"[utterance.take] == name[6]


def test_partial_corpus_is_refused(data: Path, linked_copy: LinkedCopy) -> None:
    folder = linked_copy(data / "emodb", opened="flac")
    (folder / "flac" / "03a01Fa.flac").unlink()
    with pytest.raises(CorpusError, match=r"1 of 535 files missing \(flac/03a01Fa.flac\)"):
        load_emodb(folder)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("a01,happiness,a", "a01,anger,a", "'03a01Fa.flac' disagrees"),
        ("a01,happiness,a", "a01,joy,a", "emotion must be one of.*'joy'"),
        ("03a01Nc.flac,03,male,31,a01,neutral,c", "03a01Fa.flac,03,male,31,a01,happiness,a", "534 different files"),
        ("03a01Fa.flac,03,male,31,a01,happiness,a", "03a01F.flac,03,male,31,a01,happiness,", "disagrees"),
        ("03a01Fa.flac,03", "../03a01Fa.flac,../03", "inside the corpus folder"),
        ("text_code", "code", "no column 'text_code'"),
    ],
)
def test_damaged_metadata_is_refused(data: Path, linked_copy: LinkedCopy, old: str, new: str, complaint: str) -> None:
    metadata = linked_copy(data / "emodb") / "metadata.csv"
    text = metadata.read_text()
    assert old in text
    metadata.write_text(text.replace(old, new, 1))
    with pytest.raises(CorpusError, match=complaint):
        load_emodb(metadata.parent)
