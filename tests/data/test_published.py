"""Corpora in the layout their authors publish them in: small trees, or the real files under their published names."""

import json
import lzma
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from ppspeech.data import SpeechDataModule, corpus_names, load_corpus, load_table, table_names
from ppspeech.data.corpora.audiomnist import load_audiomnist
from ppspeech.data.corpora.emodb import EMOTIONS
from ppspeech.data.layout import Published
from ppspeech.data.registry import CORPORA, TABLES
from ppspeech.data.tables import adult, har
from ppspeech.errors import CorpusError, SpeechWarning

TOP = Path(__file__).parents[2]


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a sound, for all that the loader looks at")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of one's own."""
    monkeypatch.setenv("PPSPEECH_DATA", str(tmp_path))
    return tmp_path


def test_fsdd(home: Path) -> None:
    recordings = home / "free-spoken-digit-dataset" / "recordings"
    people = ("jackson", "newcomer")
    touch(*(recordings / f"{digit}_{who}_{take}.wav" for who in people for digit in range(10) for take in range(50)))
    corpus = load_corpus("fsdd")
    assert (corpus.speakers, len(corpus), corpus.sample_rate) == (people, 1_000, 8_000)
    assert corpus.counts("subset") == {"train": 900, "test": 100}
    assert {u.take for u in corpus if u.subset == "test"} == set(range(5))
    assert {(u.speaker, u.gender) for u in corpus} == {("jackson", "m"), ("newcomer", None)}
    (recordings / "3_jackson_7.wav").unlink()
    with pytest.raises(CorpusError, match=r"1 of 1000 files missing .recordings/3_jackson_7.wav."):
        load_corpus("fsdd")


def test_audiomnist(home: Path) -> None:
    folder = home / "AudioMNIST" / "data"
    people = [f"{number:02d}" for number in range(1, 61)]
    touch(*(folder / who / f"{digit}_{who}_0.wav" for who in people for digit in range(10)))
    about = {who: {"gender": "female" if who == "12" else "male", "age": 30} for who in people}
    (folder / "audioMNIST_meta.txt").write_text(json.dumps(about))
    corpus = load_corpus("audiomnist", takes=1)
    assert (len(corpus.speakers), len(corpus), corpus.sample_rate) == (60, 600, 16_000)
    assert {u.speaker for u in corpus if u.gender == "f"} == {"12"}
    assert {u.word for u in corpus if u.path.name.startswith("7_")} == {"seven"}
    with pytest.raises(CorpusError, match=r"takes must lie in 1..50, got 51"):
        load_corpus("audiomnist", takes=51)
    (folder / "audioMNIST_meta.txt").write_text("{")
    with pytest.raises(CorpusError, match=r"audioMNIST_meta.txt is damaged"):
        load_audiomnist(home / "AudioMNIST")


def test_emodb(home: Path) -> None:
    names = [f"{who}{text}{letter}{version}" for who in ("03", "08") for text in ("a01", "a02", "b03", "b10")
             for letter in EMOTIONS for version in "abcdefghij"][:535]  # fmt: skip
    touch(*(home / "EmoDB" / "wav" / f"{name}.wav" for name in names))
    corpus = load_corpus("emodb")
    assert (corpus.speakers, len(corpus)) == (("03", "08"), 535)
    found = {u.path.stem: (u.speaker, u.text, u.emotion, u.gender, u.take) for u in corpus}
    assert found["03a01Fa"] == ("03", "a01", "happiness", "m", 0)
    assert found["08b03Wb"] == ("08", "b03", "anger", "f", 1)
    touch(home / "EmoDB" / "wav" / "hello.wav")
    with pytest.raises(CorpusError, match=r"hello.wav is not named as the files of EmoDB"):
        load_corpus("emodb")


def test_librispeech(home: Path) -> None:
    folder = home / "LibriSpeech"
    for part, speaker in (("train-clean-100", "103"), ("dev-clean", "1272"), ("test-other", "367")):
        chapter = folder / part / speaker / "7"
        touch(*(chapter / f"{speaker}-7-{place:04d}.flac" for place in range(2)))
        lines = [f"{speaker}-7-{place:04d} CHAPTER ONE OF {part.upper()}" for place in range(2)]
        (chapter / f"{speaker}-7.trans.txt").write_text("\n".join(lines) + "\n")
    (folder / "SPEAKERS.TXT").write_text(
        "; a comment\n103  | F | train-clean-100 | 25.0 | Karen\n367 | M | x | 8 | J\n"
    )
    corpus = load_corpus("librispeech")
    assert corpus.counts("subset") == {"train": 2, "validation": 2, "test": 2}
    assert {(u.speaker, u.gender) for u in corpus} == {("103", "f"), ("1272", None), ("367", "m")}
    assert load_corpus("librispeech", part="dev-clean")[0].text == "chapter one of dev-clean"
    assert load_corpus("librispeech", part="test_other").speakers == ("367",)  # as the small selection calls it
    with pytest.raises(CorpusError, match="one of dev-clean, test-other, train-clean-100, got 'train'"):
        load_corpus("librispeech", part="train")
    (folder / "dev-clean" / "1272" / "7" / "1272-7-0001.flac").unlink()
    with pytest.raises(CorpusError, match=r"1 of 6 files missing"):
        load_corpus("librispeech")


def test_yesno(home: Path, data: Path) -> None:
    names = [path.stem for path in (data / "yesno").glob("*.flac")]
    touch(*(home / "waves_yesno" / f"{name}.wav" for name in names))
    assert len(load_corpus("yesno")) == 60


def test_har(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, generator = home / "UCI HAR Dataset", np.random.default_rng(0)
    people = {"train": range(1, 22), "test": range(22, 31)}
    for part, subjects in people.items():
        (folder / part / "Inertial Signals").mkdir(parents=True)
        rows = [(subject, activity) for subject in subjects for activity in (1, 1, 6)]
        for name, column in (("subject", 0), ("y", 1)):
            (folder / part / f"{name}_{part}.txt").write_text("".join(f"{row[column]}\n" for row in rows))
        np.savetxt(folder / part / f"X_{part}.txt", generator.uniform(-1, 1, (len(rows), 561)), fmt="%.3e")
        for channel in har.CHANNELS:
            path = folder / part / "Inertial Signals" / f"{channel}_{part}.txt"
            np.savetxt(path, np.full((len(rows), 128), har.CHANNELS.index(channel)), fmt="%.1e")
    (folder / "features.txt").write_text("".join(f"{place} feature-{place}\n" for place in range(1, 562)))
    names = ("WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING")
    (folder / "activity_labels.txt").write_text("".join(f"{place} {name}\n" for place, name in enumerate(names, 1)))
    with pytest.raises(CorpusError, match="30 subjects and 27 test rows where 30 and 2947 were published"):
        load_table("har")
    monkeypatch.setattr(har, "TEST_ROWS", 27)
    table = load_table("har")
    assert table.features.shape == (90, 561)
    assert table.label_names[1] == "walking upstairs"
    assert table.labels[:3].tolist() == [0, 0, 5]
    assert table.extra["recording"][:4].tolist() == [0, 0, 1, 2]
    assert table.is_test is not None
    assert int(table.is_test.sum()) == 27
    windows = load_table("har", windows=True)
    assert windows.features[:, :, 0].unique(dim=0).tolist() == [list(map(float, range(9)))]
    assert torch.equal(windows.labels, table.labels)
    (folder / "test" / "y_test.txt").write_text("1\n")
    with pytest.raises(CorpusError, match="27, 1 and 27 rows"):
        load_table("har")


def test_adult(home: Path, data: Path) -> None:
    (home / "adult").mkdir()
    for name in ("a9a", "a9a.t", "adult.data", "adult.test"):
        (home / "adult" / name).write_bytes(lzma.decompress((data / "adult" / f"{name}.xz").read_bytes()))
    assert len(adult.load_adult()) == 48_842
    assert len(adult.load_adult_raw().labels) == 48_842
    (home / "adult" / "a9a.t").unlink()
    with pytest.raises(CorpusError, match=r"a9a.t is missing: get it from https"):
        adult.load_adult()


def published(name: str) -> Published | None:
    loader = CORPORA[name] if name in corpus_names() else TABLES[name]
    return getattr(sys.modules[loader.__module__], "PUBLISHED", None)


SOURCES = {name: published(name) for name in (*corpus_names(), *table_names())}


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source])
def test_what_is_absent_says_where_to_get_it(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = load_table if name in table_names() else load_corpus
    address = re.escape(SOURCES[name].address)  # type: ignore[union-attr]
    with pytest.raises(CorpusError, match=rf"no folder .*get it from {address}; its folder"):
        load(name)
    monkeypatch.setenv("PPSPEECH_DATA", str(home / "nowhere"))
    with pytest.raises(CorpusError, match=rf"set PPSPEECH_DATA.*get it from {address}"):
        load(name)


def test_the_document_tells_the_same() -> None:
    rows = ["| name | get it from | its folder | which holds |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {source.address} | `{source.folder}` | `{source.holds}` |"
        for name, source in SOURCES.items()
        if source
    ]
    text = (TOP / "docs" / "guides" / "corpora.md").read_text()
    told = text.partition("<!-- published -->\n")[2].partition("<!-- end -->")[0]
    assert told.strip() == "\n".join(rows), "\n".join(rows)


class TestFoldersOfWords:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for place in range(8):
            path = tmp_path / "mine" / ("yes", "no")[place % 2] / f"recording {place}.WAV"
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng(place).normal(0, 0.1, 6_000).clip(-1, 1)
            soundfile.write(path, noise, 22_050)
        return tmp_path / "mine"

    def test_are_a_corpus_whose_speakers_are_unknown(self, folder: Path) -> None:
        corpus = load_corpus(folder)
        assert (corpus.name, corpus.words, len(corpus.speakers)) == ("mine", ("no", "yes"), 8)
        assert corpus.sample_rate == 22_050
        assert not corpus.speakers_known
        assert corpus.counts("subset") == {"None": 8}

    def test_and_a_split_by_speaker_says_so(self, folder: Path) -> None:
        module = SpeechDataModule(str(folder))
        with pytest.warns(SpeechWarning, match="every recording counts as a speaker of its own"):
            module.setup()
        assert {name: len(part) for name, part in module.parts.items()} == {"train": 6, "test": 2}


def test_wakewords_say_that_speakers_are_unknown(data: Path) -> None:
    corpus = load_corpus("wakewords")
    assert not corpus.speakers_known
    with pytest.warns(SpeechWarning, match="who speaks in 'wakewords' is not known"):
        SpeechDataModule("wakewords").divide(corpus)
