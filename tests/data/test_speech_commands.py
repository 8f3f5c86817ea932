from pathlib import Path

import pytest

from ppspeech.data.corpora.speech_commands import has_word_folders, load_speech_commands
from ppspeech.errors import CorpusError

FILES = (
    "yes/0a7c_nohash_0.wav",
    "yes/0a7c_nohash_1.wav",
    "yes/1b3d_nohash_0.wav",
    "no/0a7c_nohash_0.wav",
    "no/2c5e_nohash_0.wav",
    "_background_noise_/white_noise.wav",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"a sound, for all that the loader looks at")
    (tmp_path / "validation_list.txt").write_text("yes/1b3d_nohash_0.wav\n")
    (tmp_path / "testing_list.txt").write_text("no/2c5e_nohash_0.wav\n")
    (tmp_path / "README.md").write_text("not a word")
    return tmp_path


def test_official_split(folder: Path) -> None:
    corpus = load_speech_commands(folder)
    found = {f"{u.word}/{u.path.name}": (u.speaker, u.take, u.subset) for u in corpus}
    assert found == {
        "no/0a7c_nohash_0.wav": ("0a7c", 0, "train"),
        "no/2c5e_nohash_0.wav": ("2c5e", 0, "test"),
        "yes/0a7c_nohash_0.wav": ("0a7c", 0, "train"),
        "yes/0a7c_nohash_1.wav": ("0a7c", 1, "train"),
        "yes/1b3d_nohash_0.wav": ("1b3d", 0, "validation"),
    }
    assert corpus.sample_rate == 16_000


def test_some_words(folder: Path) -> None:
    assert load_speech_commands(folder, words=["no"]).words == ("no",)
    with pytest.raises(CorpusError, match=r"no folder for maybe; it has .*'no', 'yes'"):
        load_speech_commands(folder, words=["no", "maybe"])
    with pytest.raises(CorpusError, match="list of words, got the single string 'no'"):
        load_speech_commands(folder, words="no")


def test_unfinished_copy_is_refused(folder: Path) -> None:
    (folder / "no" / "2c5e_nohash_0.wav").unlink()
    with pytest.raises(CorpusError, match=r"files missing \(no/2c5e_nohash_0.wav\)"):
        load_speech_commands(folder)
    assert len(load_speech_commands(folder, words=["yes"])) == 3


@pytest.mark.parametrize("name", ["validation_list.txt", "testing_list.txt"])
def test_missing_list_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(CorpusError, match=rf"{name} cannot be read, and the official split needs both lists"):
        load_speech_commands(folder)


def test_without_lists_there_is_no_official_split(folder: Path) -> None:
    for name in ("validation_list.txt", "testing_list.txt"):
        (folder / name).unlink()
    corpus = load_speech_commands(folder)
    assert corpus.counts("subset") == {"None": 5}
    assert corpus.speakers_known
    assert corpus.speakers == ("0a7c", "1b3d", "2c5e")


def test_file_in_both_lists_is_refused(folder: Path) -> None:
    (folder / "testing_list.txt").write_text("yes/1b3d_nohash_0.wav\n")
    with pytest.raises(CorpusError, match="1 files are in both lists"):
        load_speech_commands(folder)


def test_file_without_speaker_is_refused(folder: Path) -> None:
    (folder / "yes" / "hello.wav").write_bytes(b"sound")
    with pytest.raises(CorpusError, match=r"hello.wav does not name its speaker"):
        load_speech_commands(folder)


def test_empty_word_folder_is_refused(folder: Path) -> None:
    (folder / "up").mkdir()
    with pytest.raises(CorpusError, match="no recording of up"):
        load_speech_commands(folder, words=["up"])


def test_layout_is_recognized(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert has_word_folders(folder)
    other = tmp_path_factory.mktemp("other")
    (other / "yes").mkdir()
    (other / "yes" / "notes.txt").touch()
    assert not has_word_folders(other)
    (other / "yes" / "ann.wav").touch()
    assert has_word_folders(other)
