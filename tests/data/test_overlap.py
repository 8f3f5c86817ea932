"""Public speech that is the private corpus under another name is noticed."""

from dataclasses import replace
from pathlib import Path

import pytest

from ppspeech.data import Corpus, Utterance, check_disjoint, load_corpus
from ppspeech.errors import CorpusError


def corpus(folder: Path, name: str, contents: list[bytes]) -> Corpus:
    folder.mkdir()
    paths = [folder / f"{place}.wav" for place in range(len(contents))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    return Corpus(name, 8000, tuple(Utterance(path, speaker=path.stem, word="yes") for path in paths))


def test_a_copy_under_another_name_in_another_folder_is_refused(tmp_path: Path) -> None:
    private = corpus(tmp_path / "ours", "ours", [b"ann", b"bob", b"cid"])
    public = corpus(tmp_path / "theirs", "theirs", [b"dan", b"eve", b"bob"])
    with pytest.raises(CorpusError, match=r"1 recordings of the private corpus, 1.wav for one, are in .* theirs too"):
        check_disjoint(private, [public])
    check_disjoint(private, [public[:2]])  # of equal sizes, and others


def test_the_private_corpus_itself_is_refused_by_its_name(tmp_path: Path) -> None:
    private = corpus(tmp_path / "ours", "ours", [b"ann"])
    again = corpus(tmp_path / "resampled", "ours", [b"the same, in another format"])
    with pytest.raises(CorpusError, match="ours is the private corpus"):
        check_disjoint(private, [again])


def test_built_in_voices_may_stand_beside_other_takes_of_them() -> None:
    small = {"words": ("yes",), "speakers": 2, "takes": 1}
    voices = load_corpus("synthetic", **small)
    check_disjoint(voices, [load_corpus("synthetic", **small, seed=1)])
    with pytest.raises(CorpusError, match=r"options\.seed 1"):
        check_disjoint(voices, [load_corpus("synthetic", **small | {"speakers": 3})])
    with pytest.raises(CorpusError, match="leave it out"):
        check_disjoint(voices, [replace(voices, name="a folder of them")])
