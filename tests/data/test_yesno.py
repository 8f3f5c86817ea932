from pathlib import Path

import pytest

from ppspeech.data.corpora.yesno import load_yesno
from ppspeech.errors import CorpusError
from tests.data.conftest import LinkedCopy


def test_whole_corpus(data: Path) -> None:
    corpus = load_yesno()
    assert {u.path for u in corpus} == set((data / "yesno").glob("*.flac"))
    assert (len(corpus), corpus.sample_rate, len(corpus.speakers)) == (60, 8000, 1)
    assert [u.take for u in corpus] == list(range(60))
    for utterance in corpus:
        assert utterance.text is not None
        words = utterance.text.split()
        assert "_".join({"yes": "1", "no": "0"}[word] for word in words) == utterance.path.stem
        assert len(words) == 8


def test_partial_corpus_is_refused(data: Path, linked_copy: LinkedCopy) -> None:
    folder = linked_copy(data / "yesno")
    (folder / "0_0_0_0_1_1_1_1.flac").unlink()
    with pytest.raises(CorpusError, match=r"1 of 60 files missing \(0_0_0_0_1_1_1_1.flac\)"):
        load_yesno(folder)
