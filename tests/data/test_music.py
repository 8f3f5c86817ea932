from pathlib import Path

import pytest

from ppspeech.data.corpora.music import load_music
from ppspeech.errors import CorpusError
from tests.data.conftest import LinkedCopy


def test_whole_corpus(data: Path) -> None:
    corpus = load_music()
    assert (len(corpus), corpus.sample_rate, len(corpus.speakers)) == (27, 16_000, 7)
    assert corpus.counts("speaker")["Jordan Trudgett"] == 11
    assert {u.path for u in corpus} == set((data / "music").glob("*.flac"))
    assert len(corpus[0].waveform(16_000)) == 20 * 16_000


def test_partial_corpus_is_refused(data: Path, linked_copy: LinkedCopy) -> None:
    folder = linked_copy(data / "music")
    (folder / "08_holy.flac").unlink()
    with pytest.raises(CorpusError, match=r"1 of 27 files missing \(08_holy.flac\)"):
        load_music(folder)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("08_holy.flac", "/08_holy.flac", "inside the corpus folder"),
        ("holy,Jordan Trudgett", "holy,", "author of '08_holy.flac' is empty"),
        ("08_holy.flac", "07_castle.flac", "26 different files"),
    ],
)
def test_damaged_metadata_is_refused(data: Path, linked_copy: LinkedCopy, old: str, new: str, complaint: str) -> None:
    metadata = linked_copy(data / "music") / "metadata.csv"
    text = metadata.read_text()
    assert old in text
    metadata.write_text(text.replace(old, new))
    with pytest.raises(CorpusError, match=complaint):
        load_music(metadata.parent)
