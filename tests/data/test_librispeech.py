from pathlib import Path

import pytest

from ppspeech.data.corpora.librispeech import load_librispeech
from ppspeech.errors import CorpusError
from tests.data.conftest import LinkedCopy


def test_whole_selection(data: Path) -> None:
    corpus = load_librispeech()
    assert (len(corpus), corpus.sample_rate, len(corpus.speakers)) == (220, 16_000, 130)
    assert corpus.counts("subset") == {"train": 120, "test": 100}
    for utterance in corpus:
        assert utterance.path.name.split("-")[0] == utterance.speaker
        assert (utterance.text is not None) == (utterance.path.parent.name == "test_other")
        assert utterance.gender in {"f", "m"}


@pytest.mark.parametrize(("part", "speakers", "women"), [("background", 120, 60), ("test_other", 10, 5)])
def test_parts(data: Path, part: str, speakers: int, women: int) -> None:
    corpus = load_librispeech(part=part)
    assert {u.path.parent.name for u in corpus} == {part}
    assert len(corpus.speakers) == speakers
    assert len({u.speaker for u in corpus if u.gender == "f"}) == women


def test_unknown_part_is_refused() -> None:
    with pytest.raises(CorpusError, match="part must be all, background or test_other, got 'train'"):
        load_librispeech(part="train")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("test_other/1688-142285-0002", "test_other/1688-142285-9999", "1 of 220 files missing"),
        ("test_other/1688-142285-0002", "../test_other/1688-142285-0002", "inside the corpus folder"),
        ("test_other/1688-142285-0002", "test_other/1688-142285-0001", "219 different files"),
        ("test_other/1688-142285-0002.flac,1688", "test_other/1688-142285-0002.flac,", "0002.flac' is damaged"),
        ("you don't mean that you thought me so silly", "", "'test_other/1688-142285-0002.flac' is damaged"),
    ],
)
def test_damaged_metadata_is_refused(data: Path, linked_copy: LinkedCopy, old: str, new: str, complaint: str) -> None:
    metadata = linked_copy(data / "librispeech") / "metadata.csv"
    text = metadata.read_text()
    assert old in text
    metadata.write_text(text.replace(old, new))
    with pytest.raises(CorpusError, match=complaint):
        load_librispeech(metadata.parent)
