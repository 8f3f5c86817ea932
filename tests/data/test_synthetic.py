"""The synthetic corpus: the same to the byte, whole or absent, and it refuses what it cannot say."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ppspeech.audio.voices.espeak import Espeak
from ppspeech.audio.voices.speakers import VOICES
from ppspeech.data.corpora import synthetic
from ppspeech.data.corpora.synthetic import DIGITS, SyntheticCorpus
from ppspeech.data.corpus import Corpus
from ppspeech.errors import AudioError, CorpusError
from ppspeech.storage import cache_folder

SMALL = SyntheticCorpus(words=("yes", "no"), speakers=2, takes=2, sentences=("It is late.",), sample_rate=8000)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synthetic") / "small"
    SMALL.build(folder)
    return folder


def test_every_speaker_says_every_text_in_every_style_and_take(tmp_path: Path) -> None:
    spec = SyntheticCorpus(words=("yes",), speakers=3, takes=2, sentences=("It is late.",), styles=("calm", "excited"))
    corpus = spec.build(tmp_path / "corpus", progress=False)
    assert len(corpus) == 3 * 2 * 2 * 2
    assert corpus.name == "synthetic"
    assert corpus.speakers == ("f01", "f02", "m01")
    assert corpus.words == ("yes",)
    assert corpus.labels("text") == ("It is late.", "yes")
    assert corpus.labels("emotion") == ("calm", "excited")
    assert corpus.labels("gender") == ("f", "m")
    assert {utterance.take for utterance in corpus} == {0, 1}
    assert all((utterance.word is None) == (utterance.text == "It is late.") for utterance in corpus)
    for utterance in corpus:
        waveform = utterance.waveform(16000)
        assert 0.25 < waveform.numel() / 16000 < 2.5
        assert 0.25 < waveform.abs().max() < 0.95
    assert len({tuple(utterance.waveform(16000)[:4000].tolist()) for utterance in corpus}) == len(corpus)


def test_the_manifest_lists_what_the_corpus_holds(small: Path) -> None:
    with (small / "manifest.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["path", "speaker", "word", "text", "emotion", "gender", "take", "subset"]
    for row, utterance in zip(rows, SMALL.build(small), strict=True):
        assert small / row["path"] == utterance.path
        assert row["speaker"] == utterance.speaker
        assert (row["word"] or None) == utterance.word
        assert row["text"] == utterance.text
        assert int(row["take"]) == utterance.take
    assert {path for path in contents(small) if path.endswith(".wav")} == {row["path"] for row in rows}


def test_building_again_gives_the_same_bytes(small: Path, tmp_path: Path) -> None:
    SMALL.build(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(small)


def test_a_recording_depends_on_nothing_else_in_the_corpus(small: Path, tmp_path: Path) -> None:
    part = SyntheticCorpus(words=("no", "maybe"), speakers=1, takes=1, styles=("excited", "calm"), sample_rate=8000)
    part.build(tmp_path / "part")
    whole, other = contents(small), contents(tmp_path / "part")
    shared = {path for path in whole if path in other and path.endswith(".wav")}
    assert shared == {"f01/no-calm-0.wav"}
    assert all(whole[path] == other[path] for path in shared)


def test_another_seed_gives_other_takes(small: Path, tmp_path: Path) -> None:
    other = SyntheticCorpus(words=("yes",), speakers=1, takes=1, sample_rate=8000, seed=1).build(tmp_path / "other")
    first = SMALL.build(small)[0]
    assert (first.speaker, first.word, first.take) == (other[0].speaker, other[0].word, other[0].take)
    waveforms = first.waveform(8000), other[0].waveform(8000)
    assert waveforms[0].shape != waveforms[1].shape or not torch.equal(*waveforms)


def test_a_built_corpus_is_only_listed(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Espeak) -> None:
        raise AssertionError("eSpeak must not run")

    before = contents(small)
    monkeypatch.setattr(Espeak, "__init__", never)
    assert len(SMALL.build(small)) == 12
    assert contents(small) == before


def test_the_cache_folder_is_named_after_the_specification() -> None:
    spec = SyntheticCorpus(words=("yes",), speakers=1, takes=1)
    corpus = spec.build()
    assert corpus[0].path == cache_folder() / f"synthetic-{spec.digest()}" / "f01" / "yes-calm-0.wav"
    assert corpus[0].path.is_file()
    others = [
        SyntheticCorpus(words=("yes",), speakers=1, takes=1, seed=1),
        SyntheticCorpus(words=("yes",), speakers=1, takes=1, sample_rate=8000),
        SyntheticCorpus(words=(), sentences=("yes",), speakers=1, takes=1),
    ]
    assert len({spec.digest(), *(other.digest() for other in others)}) == 4
    assert SyntheticCorpus(words=["yes"], speakers=1, takes=1).digest() == spec.digest()  # type: ignore[arg-type]


def test_any_text_has_a_file_name_of_its_own(tmp_path: Path) -> None:
    texts = ("../up", "a/b", "A/b", "a b", "seven", "Seven", "où", "七", "x" * 300)
    corpus = SyntheticCorpus(words=texts, speakers=1, takes=1).build(tmp_path / "corpus")
    names = [utterance.path.name.lower() for utterance in corpus]
    assert len(set(names)) == len(texts)
    assert all(utterance.path.parent == tmp_path / "corpus" / "f01" for utterance in corpus)
    assert all(len(name) < 64 and name.isascii() for name in names)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    spec = SyntheticCorpus(words=("yes",), speakers=1, takes=1)
    assert spec.build(tmp_path)[0].path.is_file()


def test_a_folder_with_something_else_is_refused_and_left_alone(small: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(CorpusError, match="not a synthetic corpus: choose another folder"):
        SMALL.build(tmp_path)
    with pytest.raises(CorpusError, match="not a synthetic corpus"):
        SMALL.build(tmp_path / "thesis.txt")
    assert contents(tmp_path) == {"thesis.txt": b"mine"}
    with pytest.raises(CorpusError, match="another synthetic corpus"):
        SyntheticCorpus(words=("yes",)).build(small)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_damaged_corpus_is_refused(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    spec = SyntheticCorpus(words=("yes", "no"), speakers=1, takes=1)
    corpus = spec.build(tmp_path / "corpus")
    damage(corpus[1].path)
    with pytest.raises(CorpusError, match=r"1 files are missing or empty, the first f01/no-calm-0\.wav"):
        spec.build(tmp_path / "corpus")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError("disk full")])
def test_an_interrupted_build_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException] | BaseException
) -> None:
    write, written = synthetic._write_wav, []

    def fail_at_the_fourth(path: Path, *rest: object) -> None:
        if len(written) == 3:
            raise failure
        written.append(path)
        write(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(synthetic, "_write_wav", fail_at_the_fourth)
    with pytest.raises((KeyboardInterrupt, OSError)):
        SMALL.build(tmp_path / "corpus")
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    assert len(SMALL.build(tmp_path / "corpus")) == 12


PROGRAM = """
import sys
from pathlib import Path
from ppspeech.data.corpora.synthetic import SyntheticCorpus
print(len(SyntheticCorpus(speakers=int(sys.argv[2]), takes=2).build(Path(sys.argv[1]))))
"""


def start(folder: Path, speakers: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(speakers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_in_a_real_process_leaves_nothing(tmp_path: Path) -> None:
    process = start(tmp_path / "corpus", len(VOICES))
    for _ in range(600):
        if any(tmp_path.rglob("*.wav")):
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in complaint
    assert not list(tmp_path.iterdir())


def test_two_processes_at_once_both_have_the_whole_corpus(tmp_path: Path) -> None:
    processes = [start(tmp_path / "corpus", 3) for _ in range(2)]
    for process in processes:
        count, complaint = process.communicate(timeout=120)
        assert (process.returncode, count) == (0, "60\n"), complaint
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]
    assert len(SyntheticCorpus(speakers=3, takes=2).build(tmp_path / "corpus")) == 60


def test_whoever_ends_second_keeps_the_first_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = SyntheticCorpus._write
    marks = []

    def overtaken(self: SyntheticCorpus, folder: Path, progress: bool) -> None:
        record(self, folder, progress)
        if not marks:
            marks.append("once")
            self.build(tmp_path / "corpus")
            marks.append((tmp_path / "corpus").stat().st_ino)

    monkeypatch.setattr(SyntheticCorpus, "_write", overtaken)
    assert isinstance(SMALL.build(tmp_path / "corpus"), Corpus)
    assert (tmp_path / "corpus").stat().st_ino == marks[1]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"words": ()}, "at least one word or sentence"),
        ({"words": ("yes", "")}, "must not be empty"),
        ({"words": ("yes ",)}, "begin or end with a space"),
        ({"words": (True, False)}, "must be a string, got True: in YAML"),
        ({"words": "yes"}, "must be a list"),
        ({"words": ("yes", "no", "yes")}, "'yes' is given twice"),
        ({"words": ("yes",), "sentences": ("yes",)}, "'yes' is given twice"),
        ({"sentences": ("two\nlines",)}, "control characters"),
        ({"speakers": 0}, "speakers must lie in 1..56"),
        ({"speakers": 57}, "speakers must lie in 1..56.*got 57"),
        ({"takes": 0}, "takes must be >= 1, got 0"),
        ({"styles": ()}, "some of calm, excited; got none"),
        ({"styles": ("calm", "angry")}, "some of calm, excited; got calm, angry"),
        ({"styles": ("calm", "calm")}, "'calm' is given twice"),
        ({"sample_rate": 100}, "sample_rate must lie in 4000..48000 Hz, got 100"),
    ],
)
def test_impossible_specifications_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        SyntheticCorpus(**wrong)  # type: ignore[arg-type]


def test_a_word_without_sound_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no sound for the text '\.\.\.'"):
        SyntheticCorpus(words=("yes", "..."), speakers=1, takes=1).build(tmp_path / "corpus")
    assert not list(tmp_path.iterdir())


def test_a_crash_of_espeak_is_an_audio_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_espeak = Espeak.__init__

    def killed(self: Espeak) -> None:
        start_espeak(self)
        os.kill(self._process.pid, signal.SIGKILL)

    monkeypatch.setattr(Espeak, "__init__", killed)
    with pytest.raises(AudioError, match="eSpeak's process ended"):
        SMALL.build(tmp_path / "corpus")
    assert not list(tmp_path.iterdir())


def test_the_specification_stands_beside_the_corpus(small: Path) -> None:
    written = json.loads((small / "synthetic.json").read_text())
    assert written.pop("format") == synthetic.FORMAT
    assert SyntheticCorpus(**written) == SMALL
    assert SyntheticCorpus().words == DIGITS
