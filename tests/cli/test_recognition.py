"""The commands that use checkpoints, on checkpoints that were really trained."""

import json
from pathlib import Path

import pytest
import pytorch_lightning as lightning
import torch
from typer.testing import CliRunner

from ppspeech.audio import MfccConfig, read_audio, write_audio
from ppspeech.cli import app
from ppspeech.data import Corpus, SyntheticCorpus
from ppspeech.data.datamodule import SpeechDataModule
from ppspeech.training import SpeakerUbm, WordModels
from ppspeech.training.module import quiet_lightning

OPTIONS = {"words": ["six", "one", "four"], "speakers": 12, "takes": 2}


def run(*words: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


def only(output: str, start: str) -> list[str]:
    """The lines that begin so: warnings go to standard error, which a runner shows too."""
    return [line for line in output.splitlines() if line.startswith(start)]


def trained(model: lightning.LightningModule, voices: SpeechDataModule, path: Path) -> Path:
    quiet_lightning()
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(model, datamodule=voices)
    trainer.save_checkpoint(path)
    return path


@pytest.fixture
def corpus() -> Corpus:
    return SyntheticCorpus(**OPTIONS).build()  # type: ignore[arg-type]


@pytest.fixture
def words(tmp_path: Path) -> Path:
    model = WordModels(states=4, prior_covariance=100.0)
    return trained(model, SpeechDataModule("synthetic", OPTIONS, batch_size=64), tmp_path / "words.ckpt")


@pytest.fixture
def speakers(tmp_path: Path) -> Path:
    voices = SpeechDataModule("synthetic", OPTIONS, batch_size=64, mfcc=MfccConfig(cmvn="none", vad_db=30.0))
    return trained(SpeakerUbm(components=8, floor=0.1), voices, tmp_path / "speakers.ckpt")


def test_recognize_clips_and_a_corpus(words: Path, corpus: Corpus, tmp_path: Path) -> None:
    clips = [u for u in corpus if u.speaker == corpus.speakers[1]]
    rows = [json.loads(line) for line in run("recognize", words, *(c.path for c in clips), "--json").splitlines()]
    assert [row["clip"] for row in rows] == [str(c.path) for c in clips]
    assert sum(row["word"] == c.word for row, c in zip(rows, clips, strict=True)) >= 5
    assert all(row["margin"] >= 0 for row in rows)
    folder = clips[0].path.parents[1]
    bad = tmp_path / "silent.wav"
    write_audio(bad, torch.zeros(16_000), 16_000)
    narrow = tmp_path / "narrow.wav"
    write_audio(narrow, read_audio(clips[1].path, 8_000).clamp(-1, 1), 8_000)
    some = [clips[0].path, bad, narrow, tmp_path / "absent.wav"]
    said = [json.loads(line) for line in only(run("recognize", words, *some, "--json", code=1), "{")]
    assert [row["clip"] for row in said] == [str(path) for path in (some[0], narrow, bad, some[3])]
    assert said[0] == rows[0]
    assert "nothing above 4,000 Hz" in said[1]["warning"]
    assert "is silent" in said[2]["error"]
    assert "no sound file" in said[3]["error"]
    shown = run("recognize", words, *some, code=1)
    assert shown.count("not used: ") == 2
    assert "warning: " in shown
    picture = tmp_path / "confusion.png"
    figure = json.loads(run("recognize", words, "--corpus", folder, "--confusion", picture, "--json"))
    assert figure["metric"] == "recognize.accuracy"
    assert figure["value"] >= 0.8
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_transcribe_finds_words_in_order(words: Path, corpus: Corpus, tmp_path: Path) -> None:
    said = [next(u for u in corpus if u.word == word) for word in ("six", "one")]
    write_audio(tmp_path / "six_one.wav", torch.cat([read_audio(u.path) for u in said]), corpus.sample_rate)
    heard = json.loads(run("transcribe", words, tmp_path / "six_one.wav", "--grammar", "(six | one | four)+", "--json"))
    assert [word["word"] for word in heard["words"]] == ["six", "one"]
    assert heard["words"][0]["end"] <= heard["words"][1]["start"]
    free = json.loads(run("transcribe", words, tmp_path / "six_one.wav", "--json"))
    assert [word["word"] for word in free["words"]] == ["six", "one"]
    assert "no unit for" in run("transcribe", words, tmp_path / "six_one.wav", "--grammar", "seven", code=2)
    run("export", words, "--out", tmp_path / "bundle", "--not-private")
    clip = (tmp_path / "six_one.wav", "--grammar", "(six | one | four)+", "--json")
    assert json.loads(run("transcribe", tmp_path / "bundle", *clip)) == heard


def test_what_is_no_word_is_none_of_them(words: Path, corpus: Corpus, tmp_path: Path) -> None:
    """A word that the model does not know, once and for half a minute; the words it knows are still heard."""
    others = SyntheticCorpus(words=("seven", "three"), speakers=6, takes=1).build()
    known = [u.path for u in corpus if u.take == 0]
    strange = [u.path for u in others]
    rows = [json.loads(row) for row in run("recognize", words, *strange, *known, "--reject", "--json").splitlines()]
    assert all(0 <= row["confidence"] <= 1 for row in rows)
    rejected = [row["word"] is None for row in rows]
    assert sum(rejected[: len(strange)]) >= 0.75 * len(strange)
    assert sum(rejected[len(strange) :]) <= 0.1 * len(known)
    assert "none of them" in run("recognize", words, *strange, "--reject")
    long = torch.cat([read_audio(path) for path in strange]).repeat(4)
    write_audio(tmp_path / "long.wav", long, corpus.sample_rate)
    heard = json.loads(run("transcribe", words, tmp_path / "long.wav", "--json"))
    assert len(heard["words"]) <= len(strange)  # a quarter of what was said; without the filler all of it
    one = json.loads(run("recognize", words, tmp_path / "long.wav", "--json"))
    assert one["margin"] > 100  # which is no confidence
    assert one["confidence"] < 0.9
    measured = run("recognize", words, "--corpus", known[0].parents[1], "--reject", "--json")
    figures = [json.loads(row) for row in measured.splitlines()]
    assert [figure["metric"] for figure in figures] == ["recognize.accuracy", "recognize.rejected"]
    assert "server's choice" in run("recognize", "127.0.0.1:7", strange[0], "--reject", "--insecure", code=2)


def test_verify_and_identify(speakers: Path, corpus: Corpus, tmp_path: Path) -> None:
    ann, bob = corpus.speakers[:2]
    clips = {who: [u.path for u in corpus if u.speaker == who] for who in (ann, bob)}
    enroll = [part for path in clips[ann][:5] for part in ("--enroll", path)]
    assert "--cohort FOLDER" in run("verify", speakers, clips[ann][5], *enroll, code=2)
    own, other = (
        json.loads(run("verify", speakers, clips[who][5], *enroll, "--threshold", "0.5", "--json")) for who in clips
    )
    assert own["score"] > other["score"]
    assert own["accepted"] == (own["score"] >= own["threshold"] == 0.5)
    for who, paths in clips.items():
        for path in paths[:5]:
            (tmp_path / "family" / who).mkdir(parents=True, exist_ok=True)
            (tmp_path / "family" / who / path.name).write_bytes(path.read_bytes())
    known = json.loads(
        run("identify", speakers, clips[bob][5], "--speakers", tmp_path / "family", "--threshold", "-9", "--json")
    )
    assert known["speaker"] == bob
    strict = run("identify", speakers, clips[bob][5], "--speakers", tmp_path / "family", "--threshold", "99", "--json")
    assert json.loads(strict)["speaker"] is None
    assert "nobody known" in run(
        "identify", speakers, clips[bob][5], "--speakers", tmp_path / "family", "--threshold", "99"
    )


def test_wrong_requests_are_words(words: Path, speakers: Path, corpus: Corpus, tmp_path: Path) -> None:
    clip = corpus[0].path
    assert "it cannot verify" in run("verify", words, clip, "--enroll", clip, code=2)
    assert "it cannot recognize" in run("recognize", speakers, clip, code=2)
    assert "either sound files or --corpus" in run("recognize", words, code=2)
    assert "no folder" in run("identify", speakers, clip, "--speakers", tmp_path / "absent", code=2)
    assert "no checkpoint" in run("recognize", tmp_path / "absent.ckpt", clip, code=2)
