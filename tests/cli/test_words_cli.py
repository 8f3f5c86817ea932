"""`ppspeech words learn`: from folders and built-in voices to a bundle that recognizes, and what it says of itself."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from ppspeech.audio import write_audio
from ppspeech.bundle import load_bundle
from ppspeech.cli import app
from ppspeech.data import SyntheticCorpus
from ppspeech.training import own_words
from tests.audio.embeddings import needs

pytestmark = needs("speech")

WORDS = ("lights on", "computer")
FEW = {"training": 6, "calibrating": 12}


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    return result.exit_code, result.output


@pytest.fixture(scope="module", autouse=True)
def _few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A short default background, in the cache of all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PPSPEECH_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        patch.setattr(own_words.built_in, "SPOKEN", FEW)
        yield


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder a word, with a folder a voice; a voice that is not in it; and what is no word."""
    folder = tmp_path_factory.mktemp("spoken")
    corpus = SyntheticCorpus((*WORDS, "banana"), speakers=8, takes=1, seed=3).build(folder / "all", progress=False)
    for each in corpus:
        assert each.word is not None
        place = "other" if each.speaker in corpus.speakers[-2:] else "mine"
        target = folder / place / each.word / each.speaker / "a.wav"
        if place == "other" or each.word in WORDS:
            target.parent.mkdir(parents=True)
            shutil.copy(each.path, target)
    shutil.rmtree(folder / "all")
    return folder


@pytest.fixture(scope="module")
def bundle(spoken: Path) -> tuple[Path, dict[str, Any]]:
    out = spoken / "bundle"
    code, said = run("words", "learn", spoken / "mine", "--out", out, "--alarms", "30", "--json")
    assert code == 0, said
    return out, json.loads(said.splitlines()[-1])


def test_another_voice_is_recognized_and_garbage_is_not(bundle: tuple[Path, dict[str, Any]], spoken: Path) -> None:
    others = sorted((spoken / "other").rglob("*.wav"))
    code, said = run("recognize", bundle[0], *others, "--json")
    assert code == 0, said
    heard = {row["clip"]: row["word"] for row in map(json.loads, said.splitlines())}
    right = [heard[str(path)] == path.parent.parent.name for path in others if path.parent.parent.name in WORDS]
    assert sum(right) >= 3, heard
    assert all(heard[str(path)] is None for path in others if path.parent.parent.name == "banana"), heard


def test_it_says_what_was_heard_and_what_that_shows(bundle: tuple[Path, dict[str, Any]], spoken: Path) -> None:
    out, told = bundle
    assert told["words"] == {"lights on": 6, "computer": 6}
    assert told["extrapolated"] is (30 * told["background_hours"] < 3)
    assert told["shown_an_hour"] > told["alarms"] / told["background_hours"]
    assert told["guarantee"] is None
    loaded = load_bundle(out)
    assert not loaded.statement.guarantee.proven
    code, said = run("inspect", out)
    assert code == 0
    assert "the built-in voices" in said
    code, said = run(
        "words", "learn", "--voices", "2", "--word", "go", "--background", spoken / "mine", "--out", spoken / "go",
        "--over", "window",
    )  # fmt: skip
    assert (code, "at least 30 are needed" in said) == (2, True), said  # and nothing is written
    assert not (spoken / "go").exists()


def test_a_promise_for_speakers_is_stated(spoken: Path) -> None:
    out = spoken / "private"
    code, said = run("words", "learn", spoken / "mine", "--out", out, "--epsilon", "2", "--unit", "speaker")
    assert code == 0, said
    assert "-DP for one speaker" in said.replace("\n", " ")
    guarantee = load_bundle(out).statement.guarantee
    assert (guarantee.unit, guarantee.epsilon) == ("speaker", pytest.approx(2.0, rel=0.02))


def test_what_cannot_be_learned_from_is_told(spoken: Path, tmp_path: Path) -> None:
    empty, text, short = tmp_path / "empty", tmp_path / "text", tmp_path / "short"
    (empty / "go").mkdir(parents=True)
    (text / "go").mkdir(parents=True)
    (text / "go" / "a.wav").write_text("no sound")
    (short / "go").mkdir(parents=True)
    write_audio(short / "go" / "a.wav", torch.full((100,), 0.1), 16_000)
    mine = spoken / "mine"
    learn = ("words", "learn")
    table: list[tuple[tuple[object, ...], str]] = [
        ((*learn,), "give a folder"),
        ((*learn, "--voices", 2), "give a folder"),
        ((*learn, mine, "--word", "go"), "--word goes with --voices"),
        ((*learn, tmp_path / "none"), "no folder"),
        ((*learn, empty), "holds no sound file"),
        ((*learn, empty / "go"), "holds no folder"),
        ((*learn, text), "a.wav"),
        ((*learn, short), "0.05 to 30 s"),
        ((*learn, mine, "--head", "cubic"), "heads are logistic, margin"),
        ((*learn, mine, "--alarms", "0"), "must be > 0"),
        ((*learn, mine, "--epsilon", "-1"), "epsilon must be > 0"),
        ((*learn, mine, "--background", empty), "0 recordings"),
        ((*learn, mine, "--background", mine), "in the background too"),
        ((*learn, mine, "--background", mine, "--epsilon", "1"), "in the background too"),
        ((*learn, "--voices", 2, "--word", "go", "--word", "\x00"), "text"),
    ]
    for given, words in table:
        code, said = run(*given, "--out", tmp_path / "out")
        assert code == 2, (given, said)
        assert words in said.replace("\n", " "), (given, said)
        assert not (tmp_path / "out").exists()
