from pathlib import Path

import pytest
import torch

from ppspeech.audio.files import write_audio
from ppspeech.data.corpora.folder import load_folder
from ppspeech.errors import CorpusError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two speakers, three clips at 11,025 Hz, and no manifest yet."""
    for name in ("ann/1.wav", "ann/2.wav", "bob.wav"):
        write_audio(tmp_path / name, torch.full((500,), 0.25), 11_025)
    return tmp_path


def write_manifest(folder: Path, *lines: str) -> Path:
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_all_columns(folder: Path) -> None:
    write_manifest(
        folder,
        "path,speaker,word,text,emotion,gender,take,subset,seconds",
        "ann/1.wav,ann,yes,yes please,joy,female,3,train,1.5",
        "./bob.wav,bob,,,,M,,test,",
    )
    corpus = load_folder(folder)
    assert (corpus.name, corpus.sample_rate, len(corpus)) == (folder.name, 11_025, 2)
    ann, bob = corpus
    assert (ann.path, ann.speaker, ann.word, ann.text) == (folder / "ann/1.wav", "ann", "yes", "yes please")
    assert (ann.emotion, ann.gender, ann.take, ann.subset) == ("joy", "f", 3, "train")
    assert (bob.path, bob.word, bob.text, bob.emotion) == (folder / "bob.wav", None, None, None)
    assert (bob.gender, bob.take, bob.subset) == ("m", 0, "test")
    assert len(ann.waveform(11_025)) == 500


def test_required_columns_are_enough_and_the_rate_can_be_chosen(folder: Path) -> None:
    write_manifest(folder, "speaker,path", "ann,ann/2.wav")
    corpus = load_folder(folder, sample_rate=16_000)
    assert (corpus.sample_rate, corpus[0].speaker) == (16_000, "ann")
    with pytest.raises(CorpusError, match="positive number of Hz, got 0"):
        load_folder(folder, sample_rate=0)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (("path,word", "bob.wav,yes"), "no column 'speaker'"),
        (("speaker", "bob"), "no column 'path'"),
        (("path,speaker", "bob.wav,"), "row 1: the speaker of 'bob.wav' is empty"),
        (("path,speaker", "bob.wav,bob", "./bob.wav,ann"), "row 2: path './bob.wav' is there already"),
        (("path,speaker", "bob.wav,bob", "rob.wav,bob"), r"1 of 2 files missing \(rob.wav\)"),
        (("path,speaker", "ann,bob"), "1 of 1 files missing"),
        (("path,speaker", "../bob.wav,bob"), "row 1: a path must be inside"),
        (("path,speaker", "/bob.wav,bob"), "row 1: a path must be inside"),
        (("path,speaker", ",bob"), "row 1: a path must be inside"),
        (("path,speaker,take", "bob.wav,bob,-1"), "take must be a whole number from 0, got '-1'"),
        (("path,speaker,take", "bob.wav,bob,1.5"), "take must be a whole number from 0, got '1.5'"),
        (("path,speaker,take", "bob.wav,bob,²"), "take must be a whole number"),
        (("path,speaker,gender", "bob.wav,bob,boy"), "row 1: gender"),
        (("path,speaker,subset", "bob.wav,bob,dev"), "subset must be one of train, validation, test or empty"),
        (("path,speaker,emtion", "bob.wav,bob,joy"), "'emtion': rename it to 'emotion'"),
        (("path,speaker,Word", "bob.wav,bob,yes"), "'Word': rename it to 'word'"),
        (("path,speaker",), "no row"),
        (("path,speaker", "manifest.csv,bob"), "not a sound file"),
    ],
)
def test_bad_manifests_are_refused(folder: Path, lines: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(CorpusError, match=complaint):
        load_folder(write_manifest(folder, *lines))


def test_other_encodings_and_missing_manifests_are_refused(folder: Path) -> None:
    with pytest.raises(CorpusError, match=r"manifest.csv is missing"):
        load_folder(folder)
    (folder / "manifest.csv").write_bytes("path,speaker\nbob.wav,Zoë\n".encode("utf-16"))
    with pytest.raises(CorpusError, match="not UTF-8"):
        load_folder(folder)


def test_nothing_is_read_before_it_is_asked_for(folder: Path) -> None:
    (folder / "bob.wav").write_bytes(b"this is not sound")
    corpus = load_folder(write_manifest(folder, "path,speaker", "ann/1.wav,ann", "bob.wav,bob"))
    assert len(corpus) == 2
