from pathlib import Path

import pytest

from ppspeech.data.corpora.wakewords import load_wakewords
from ppspeech.errors import CorpusError
from tests.data.conftest import LinkedCopy


def test_whole_corpus(data: Path) -> None:
    corpus = load_wakewords()
    assert (len(corpus), corpus.sample_rate) == (240, 16_000)
    words = ("alexa", "computer", "jarvis", "smart_mirror", "snowboy", "view_glass")
    assert corpus.counts("word") == dict.fromkeys(words, 40)
    assert len(corpus.speakers) == 240
    assert "smart mirror" in corpus.labels("text")


def test_partial_corpus_is_refused(data: Path, linked_copy: LinkedCopy) -> None:
    folder = linked_copy(data / "wakewords", opened="snowboy")
    for number in range(36, 40):
        (folder / "snowboy" / f"snowboy_{number}.flac").unlink()
    with pytest.raises(CorpusError, match=r"4 of 240 files missing \(snowboy/snowboy_36.flac.*and 1 more\)"):
        load_wakewords(folder)
