import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ppspeech.audio.files import write_audio
from ppspeech.data import SpeechDataModule
from ppspeech.data.registry import (
    CORPORA,
    corpus_names,
    load_corpus,
    load_table,
    register_corpus,
    register_table,
    table_names,
)
from ppspeech.errors import CorpusError


def test_names() -> None:
    assert corpus_names() == (
        "audiomnist",
        "emodb",
        "folder",
        "fsdd",
        "librispeech",
        "music",
        "speech_commands",
        "synthetic",
        "wakewords",
        "yesno",
    )
    assert table_names() == ("adult", "breast_cancer", "genki", "har")


def test_any_module_can_be_imported_first() -> None:
    code = """
import importlib, sys
for first in ("registry", "tables", "corpora.fsdd", "tables.har", "corpora.folder"):
    for name in [name for name in sys.modules if name.startswith("ppspeech.data")]:
        del sys.modules[name]
    importlib.import_module("ppspeech.data." + first)
    registry = importlib.import_module("ppspeech.data.registry")
    assert len(registry.corpus_names()) == 10 and len(registry.table_names()) == 4, first
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_duplicates_are_refused() -> None:
    corpus_names(), table_names()
    with pytest.raises(CorpusError, match="corpus called 'fsdd' is registered already"):
        register_corpus("fsdd")(lambda: None)
    with pytest.raises(CorpusError, match="table called 'har' is registered already"):
        register_table("har")(lambda: None)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("audiomnits", "did you mean 'audiomnist'.*known are audiomnist, emodb"),
        ("xyzzy", "no corpus called 'xyzzy': known are"),
        ("", "no corpus called '': known are"),
        ("no/such/folder", "no corpus called 'no/such/folder'"),
    ],
)
def test_unknown_corpora_are_refused(
    name: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CorpusError, match=complaint):
        load_corpus(name)


def test_unknown_tables_and_options_are_refused() -> None:
    with pytest.raises(CorpusError, match=r"did you mean 'adult'.*known are adult, breast_cancer, genki, har"):
        load_table("adults")
    with pytest.raises(CorpusError, match=r"table 'har' cannot be loaded with these options.*'window'"):
        load_table("har", window=True)
    with pytest.raises(CorpusError, match=r"corpus 'synthetic'.*'speaker_count'"):
        load_corpus("synthetic", speaker_count=3)


def test_by_name(data: Path) -> None:
    assert len(load_corpus("yesno")) == 60
    assert load_corpus("librispeech", part="background").name == "librispeech"
    assert load_table("har", windows=True).features.shape == (10_299, 9, 128)


def test_synthetic_voices() -> None:
    corpus = load_corpus("synthetic", words=("yes",), speakers=2, takes=1)
    assert (corpus.words, len(corpus.speakers), len(corpus)) == (("yes",), 2, 2)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"has no manifest.csv and no folders of recordings"):
        load_corpus(tmp_path)
    clip = tmp_path / "yes" / "ann_nohash_0.wav"
    write_audio(clip, torch.zeros(100), 8000)
    for name in ("testing_list.txt", "validation_list.txt"):
        (tmp_path / name).touch()
    assert load_corpus(tmp_path).name == "speech_commands"
    (tmp_path / "manifest.csv").write_text("path,speaker\nyes/ann_nohash_0.wav,ann\n")
    by_manifest = load_corpus(str(tmp_path))
    assert (by_manifest.name, by_manifest.sample_rate, by_manifest[0].path) == (tmp_path.name, 8000, clip)
    assert load_corpus(tmp_path, sample_rate=16_000).sample_rate == 16_000


def test_a_name_goes_before_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yesno").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PPSPEECH_DATA", str(tmp_path))
    with pytest.raises(CorpusError, match="60 of 60 files missing"):
        load_corpus("yesno")
    with pytest.raises(CorpusError, match=r"has no manifest.csv"):
        load_corpus("./yesno")


WHISTLES = """
from pathlib import Path

from ppspeech.data import Corpus, Utterance, register_corpus


@register_corpus("whistles")
def load_whistles(folder: Path | str) -> Corpus:
    clips = sorted(Path(folder).glob("*.wav"))
    return Corpus("whistles", 16_000, tuple(Utterance(c, speaker=c.stem, word="up") for c in clips))
"""


def test_a_new_corpus_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module in a package that the registry looks in, as it looks in ppspeech.data.corpora: no list names it."""
    (tmp_path / "my_corpora").mkdir()
    (tmp_path / "my_corpora" / "__init__.py").touch()
    (tmp_path / "my_corpora" / "whistles.py").write_text(WHISTLES)
    for place in range(4):
        write_audio(tmp_path / f"{place}.wav", torch.rand(16_000) - 0.5, 16_000)
    corpus_names()
    monkeypatch.setattr(CORPORA, "_entries", dict(CORPORA._entries))  # what the test enters, goes with it
    monkeypatch.setattr(CORPORA, "_packages", list(CORPORA._packages))
    monkeypatch.syspath_prepend(tmp_path)
    CORPORA.look_in("my_corpora")
    assert "whistles" in corpus_names()
    module = SpeechDataModule("whistles", {"folder": str(tmp_path)})
    module.setup()
    assert len(next(iter(module.train_dataloader()))["features"]) == 3


def test_options_by_corpus_leave_other_corpora_alone() -> None:
    module = SpeechDataModule("synthetic", {"synthetic": {"speakers": 6}, "folder": {"sample_rate": 8_000}})
    assert module.options == {"speakers": 6}
    assert SpeechDataModule("my_folder", {"synthetic": {"speakers": 6}}).options == {}
