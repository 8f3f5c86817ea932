"""What pages may ask for: names that the studio gave them, numbers within bounds; never a path, never an option."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import typer

from ppspeech.cli import app
from ppspeech.errors import PpspeechError
from ppspeech.studio import Places, work
from ppspeech.studio.jobs import Jobs
from ppspeech.studio.runs import new_run, run_named

TRAIN = {"recipe": "keyword_dp", "corpus": "synthetic", "unit": "speaker", "epochs": 1, "epsilon": 4.0}
FILTER = {"recipe": "filter_speaker", "corpus": "synthetic", "rho": 1.0}
TOGETHER = {"protocol": "train_average", "table": "breast_cancer", "parties": 3, "epsilon": 1.0}


@pytest.mark.parametrize(
    ("kind", "good", "bad", "words"),
    [
        ("train", TRAIN, {"recipe": "../../etc/passwd"}, "recipe must be one of"),
        ("train", TRAIN, {"recipe": "filter_speaker"}, "recipe must be one of"),
        ("train", TRAIN, {"corpus": "/etc"}, "corpus must be one of"),
        ("train", TRAIN, {"corpus": "--trainer.logger"}, "corpus must be one of"),
        ("train", TRAIN, {"corpus": ["synthetic"]}, "corpus must be one of"),
        ("train", TRAIN, {"unit": "nobody"}, "unit must be one of utterance, speaker, got 'nobody'"),
        ("train", TRAIN, {"epsilon": 0}, "epsilon must be between 0.01 and 1000, got 0"),
        ("train", TRAIN, {"epsilon": -1}, "epsilon must be between"),
        ("train", TRAIN, {"epsilon": "4"}, "epsilon must be between"),
        ("train", TRAIN, {"epsilon": float("nan")}, "epsilon must be between"),
        ("train", TRAIN, {"epsilon": float("inf")}, "epsilon must be between"),
        ("train", TRAIN, {"epsilon": True}, "epsilon must be between"),
        ("train", TRAIN, {"epochs": 1.5}, "epochs must be a whole number, got 1.5"),
        ("train", TRAIN, {"epochs": 10**9}, "epochs must be between"),
        ("train", TRAIN, {"out": "/tmp/x"}, "this is asked for by recipe, corpus, epsilon, unit, epochs"),
        ("filter", FILTER, {"recipe": "keyword_dp"}, "recipe must be one of"),
        ("filter", FILTER, {"recipe": "filter_network"}, "recipe must be one of"),
        ("filter", FILTER, {"corpus": "../x"}, "corpus must be one of"),
        ("filter", FILTER, {"rho": 1e9}, "rho must be between 0 and 1000"),
        ("together", TOGETHER, {"protocol": "millionaires"}, "protocol must be one of"),
        ("together", TOGETHER, {"table": "/etc/passwd"}, "table must be one of"),
        ("together", TOGETHER, {"parties": 1000}, "parties must be between 2 and 12"),
        ("export", {"run": "none", "state": "no"}, {}, "there is no run 'none'"),
        ("export", {"run": "../train/x", "state": "no"}, {}, "there is no run"),
        ("export", {"run": 7, "state": "no"}, {}, "there is no run ''"),
        ("speak", {"bundle": "../../etc"}, {}, "bundle must be one of animals, broken, margins, sentences"),
    ],
    ids=str,
)
def test_what_may_not_be_asked_is_refused_in_words_and_leaves_nothing(
    kind: str, good: dict[str, Any], bad: dict[str, Any], words: str, places: Places
) -> None:
    def start(asked: Any) -> Any:
        return work.serve(Jobs(), places, asked, ()) if kind == "speak" else work.START[kind](Jobs(), places, asked)

    with pytest.raises(PpspeechError) as refused:
        start(good | bad)
    assert words in str(refused.value)
    assert not places.work.exists()


@pytest.mark.parametrize(("kind", "good"), [("train", TRAIN), ("filter", FILTER), ("together", TOGETHER)])
def test_commands_are_of_ppspeech_and_in_a_folder_of_their_own(
    kind: str, good: dict[str, Any], places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page chooses values, never what is run or where."""
    monkeypatch.setattr("ppspeech.studio.jobs.Job.run", _nothing)
    job = asyncio.run(_started(kind, good, places))
    assert job.folder.parent == places.work / kind
    for command in job.commands:
        assert command[0] in typer.main.get_command(app).commands  # type: ignore[attr-defined]
        assert all(isinstance(word, str) for word in command)


async def _nothing(_: Any) -> None:
    return None


async def _started(kind: str, asked: Any, places: Places) -> Any:
    return work.START[kind](Jobs(), places, asked)


def test_bundles_and_corpora_have_names_and_pages_never_say_a_path(bundles: Path, tmp_path: Path) -> None:
    again = tmp_path / "others"
    (again / "animals").mkdir(parents=True)
    for file in (bundles / "animals").iterdir():
        (again / "animals" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "mine").mkdir()
    places = Places(tmp_path / "work", (bundles, again, bundles / "margins"), (tmp_path / "mine",))
    assert list(places.bundles()) == ["animals", "broken", "margins", "sentences", "animals (2)", "margins (2)"]
    assert places.recordings()["mine"] == str(tmp_path / "mine")
    assert "folder" not in places.recordings()


def test_no_name_hides_another(bundles: Path, tmp_path: Path) -> None:
    for name in ("animals (2)", "one/animals", "two/animals", "one/synthetic", "two/synthetic"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    folders = [tmp_path / "animals (2)", tmp_path / "one" / "animals", tmp_path / "two" / "animals"]
    for folder in folders:
        for name in ("privacy.json", "config.json"):
            (folder / name).write_bytes((bundles / "animals" / name).read_bytes())
    corpora = (tmp_path / "one" / "synthetic", tmp_path / "two" / "synthetic")
    places = Places(tmp_path / "work", tuple(folders), corpora)
    assert places.bundles() == dict(zip(("animals (2)", "animals", "animals (3)"), folders, strict=True))
    found = places.recordings()
    assert found["synthetic"] == "synthetic"
    assert [found[f"synthetic ({n})"] for n in (2, 3)] == [str(each) for each in corpora]


def test_runs_are_found_by_their_own_name_alone(tmp_path: Path) -> None:
    folder = new_run(tmp_path, "train", {"epsilon": 1.0})
    assert run_named(tmp_path, "train", folder.name) == folder
    assert folder.stat().st_mode & 0o077 == 0
    for name in ("", "..", f"../train/{folder.name}", str(folder), folder.name + "/", "*"):
        with pytest.raises(PpspeechError, match="there is no run"):
            run_named(tmp_path, "train", name)
