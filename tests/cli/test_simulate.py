"""`ppspeech simulate`: every option used or refused, results beside simple answers, and what is told when one dies."""

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from ppspeech.bundle import load_bundle
from ppspeech.cli.app import guarded
from ppspeech.cli.classify import classify
from ppspeech.cli.simulate import simulate
from ppspeech.cli.simulations import TAKES, prepare
from ppspeech.data import SyntheticCorpus
from ppspeech.errors import PpspeechError
from ppspeech.training.together import JointTraining, local_minimizer
from ppspeech.training.together.average import balanced_penalty
from tests.fresh import start

OWN = ["--table", "own.csv", "--label", "ill", "--radius", "2"]
OF_ANY = {"name", "parties", "param", "kill", "messages", "as_json"}
OPTIONS = [name for name in inspect.signature(simulate).parameters if name not in OF_ANY]


def write_csv(path: Path, rows: int = 400, seed: int = 0) -> Path:
    """Two columns, of which the first says who is `ill`, and the second who is `tall`."""
    x = np.random.default_rng(seed).uniform(-1, 1, size=(rows, 2))
    lines = [f"{a:.6f},{b:.6f},{int(a > 0)},{int(b > 0)}" for a, b in x]
    path.write_text("\n".join(["height,weight,ill,tall", *lines]) + "\n")
    return path


def run(command: Any, *words: str | Path, code: int = 2) -> str:
    app = typer.Typer()
    app.command()(guarded(command))
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two small corpora."""
    folder = tmp_path_factory.mktemp("voices")
    for name, words in (("first", ("go", "stop")), ("second", ("left", "right"))):
        SyntheticCorpus(words=words, speakers=4, takes=1).build(folder / name)
    return {name: folder / name for name in ("first", "second")}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("protocol", TAKES)
def test_every_option_is_used_or_refused(protocol: str, option: str, voices: dict[str, Path], tmp_path: Path) -> None:
    usual: dict[str, Any] = {"corpus": str(voices["first"])}
    if "table" in TAKES[protocol]:
        usual = {"table": str(write_csv(tmp_path / "own.csv")), "radius": 2.0}
        usual |= {"epsilon": 1.0} if protocol == "eigen" else {"label": "ill"}
    other = {
        "table": str(write_csv(tmp_path / "other.csv", seed=1)),
        "label": "tall",
        "radius": 3.0,
        "corpus": str(voices["second"]),
        "model": "huber_svm",
        "epsilon": 3.0,
        "delta": 1e-4,
        "penalty": 0.05,
        "colluders": 2,
        "out": str(tmp_path),
    }
    given = usual | {option: other[option]}
    if option not in TAKES[protocol]:
        with pytest.raises(PpspeechError, match=rf"{protocol} does not use --{option}: it takes --.*--parties"):
            prepare(protocol, 3, given, {})
        return
    if option == "out":
        words = [word for name, value in given.items() for word in (f"--{name}", value)]
        assert "exists already" in run(simulate, protocol, "--parties", "3", *words)
        return
    before, after = prepare(protocol, 3, usual, {}), prepare(protocol, 3, given, {})
    changed = [str(one) != str(another) for one, another in zip(before.inputs, after.inputs, strict=True)]
    assert before.terms != after.terms or all(changed), f"--{option} changes nothing of {protocol}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["poker"], "train_words can be simulated"),
        (
            ["eigen", "--table", "own.csv", "--delta", "1e-5"],
            "without --epsilon directions are exact, and --delta would",
        ),
        (["train_average", "--table", "own.csv", "--label", "ill"], "say --radius: a norm that no row of own exceeds"),
        (["train_average", "--table", "own.csv", "--radius", "2"], "say which column of own.csv is the class"),
        (["train_average", "--table", "own.csv", "--label", "age"], "age"),
        (["train_average", "--table", "absent.csv", "--label", "age"], "there is no file absent.csv"),
        (
            ["train_average", "--table", "word.csv", "--label", "ill"],
            "row 2: name must be a finite number, got '[red]ann'",
        ),
        (["train_descent", *OWN, "--param", "epsilon=3"], "say --epsilon"),
        (["train_descent", *OWN, "--param", "features=3"], "comes from the data"),
        (["train_descent", *OWN, "--param", "clap=3"], "has no term clap"),
        (["train_descent", *OWN, "--kill", "bob"], "no party 'bob' to kill"),
    ],
)
def test_what_cannot_be_simulated_is_said_at_once(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    write_csv(tmp_path / "own.csv")
    (tmp_path / "word.csv").write_text("name,ill\n[red]ann,1\nbob,0\n")
    assert said in run(simulate, *words)


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run_simulation(tmp_path: Path) -> Callable[..., Done]:
    """All parties are forks of a process that has done nothing yet."""

    def run(*words: str) -> Done:
        job = start(["ppspeech", "simulate", *words], tmp_path, environment={"COLUMNS": "160", "OMP_NUM_THREADS": "1"})
        return Done(job.end(), job.stdout, job.stderr)

    return run


def test_an_own_table_becomes_a_bundle_that_classifies(tmp_path: Path, run_simulation: Callable[..., Done]) -> None:
    table = write_csv(tmp_path / "own.csv", rows=4000)
    out = tmp_path / "model"
    words = ["train_average", "--parties", "3", "--table", str(table), "--label", "ill", "--radius", "2"]
    done = run_simulation(*words, "--epsilon", "4", "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "uniform residues" in done.stdout
    assert "(4, 1e-05)-DP for one record (replace)" in done.stdout
    assert "by always saying the most frequent class" in done.stdout
    assert load_bundle(out).config.columns == ("height", "weight", "tall")
    new = write_csv(tmp_path / "new.csv", rows=1000, seed=1)
    said = json.loads(run(classify, out, new, "--label", "ill", "--out", tmp_path / "found.csv", "--json", code=0))
    assert said["rows"] == 1000
    assert said["accuracy"] > said["majority"] + 0.2
    assert len((tmp_path / "found.csv").read_text().splitlines()) == 1001
    (tmp_path / "few.csv").write_text("height,weight\n1,2\n")
    assert "tall" in run(classify, out, tmp_path / "few.csv")


def test_the_usual_penalty_follows_rows_and_epsilon() -> None:
    """With 0.01, as it was, noise or no noise, the released model says the same class of every row."""
    rows = {"model": "logistic", "features": 5, "classes": 2, "radius": 1.0, "sizes": [3000] * 5}
    chance = np.random.default_rng(0)
    x = chance.normal(size=(15_000, 5)) / 4
    y = (x @ [1, -1, 0.5, 0, 0] + 0.3 * chance.logistic(size=15_000) / 4 > 0.4).astype(float)
    table = torch.from_numpy(np.column_stack([x, y]))
    majority = max(y.mean(), 1 - y.mean())
    examples = table[:, :-1] / table[:, :-1].norm(dim=1, keepdim=True).clamp_min(1)
    features = torch.cat([examples, torch.ones(len(table), 1)], dim=1)

    def accuracy(terms: JointTraining) -> float:
        parts = [terms.read(part) for part in table.split(3000)]
        theta = sum(terms.weight(place) * local_minimizer(terms, *part, place) for place, part in enumerate(parts))
        noise = sum(torch.from_numpy(terms.shares().share()) for _ in parts) * terms.shares().grid.step
        return float(((features @ (theta.flatten() + noise) > 0) == table[:, -1].bool()).double().mean())

    for epsilon in (4.0, 10.0):
        terms = JointTraining(**rows, epsilon=epsilon)
        assert terms.penalty == pytest.approx(balanced_penalty(terms))
        assert accuracy(terms) > majority + 0.03
        assert accuracy(JointTraining(**rows, epsilon=epsilon, penalty=0.01)) < majority + 0.01


def test_simple_answers_stand_beside_the_result(data: Path, run_simulation: Callable[..., Done]) -> None:
    words = ["train_average", "--parties", "3", "--table", "breast_cancer", "--model", "huber_svm", "--epsilon", "10"]
    done = run_simulation(*words, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["figures"]["accuracy"] > said["figures"]["majority"]
    assert said["figures"]["one_party"] > said["figures"]["majority"]
    assert re.fullmatch(r"\((10|9\.99\d*), 1e-05\)-DP for one record \(replace\), to the bit", said["guarantee"])
    assert said["saw"]["party0"]["curator"]["sum"]["messages"] == 1
    assert said["terms"]["scale"] == 30.0


def test_a_simulation_in_which_a_party_dies(tmp_path: Path, run_simulation: Callable[..., Done]) -> None:
    table = write_csv(tmp_path / "own.csv")
    words = ["train_descent", "--parties", "3", "--table", str(table), "--label", "ill", "--radius", "2"]
    done = run_simulation(*words, "--kill", "party1", "--json")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "the round ended without a result" in done.stderr
    ends = json.loads(done.stdout)["ends"]
    assert ends["party1"]["end"] == "Killed"
    for who in ("party0", "party2"):
        assert "party1 is gone: the round is over, nothing is published" in ends[who]["end"]
        assert "take it out of the group's file" in ends[who]["end"]


@pytest.mark.usefixtures("data")
def test_a_descent_is_simulated(run_simulation: Callable[..., Done]) -> None:
    words = ["train_descent", "--parties", "2", "--table", "breast_cancer", "--model", "huber_svm"]
    done = run_simulation(*words, "--epsilon", "4", "--param", "rounds=12", "--param", "averaged=3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\((4|3\.9\d+), 1e-05\)-DP for one record \(add_remove\)", done.stdout)


def test_mixtures_and_words_are_simulated(
    voices: dict[str, Path], tmp_path: Path, run_simulation: Callable[..., Done]
) -> None:
    for name, terms, type_ in (
        ("train_mixture", ["components=2", "rounds=1"], "speaker_ubm"),
        ("train_words", ['words=["go", "stop"]', "states=3", "rounds=1"], "keyword_hmm"),
    ):
        words = [
            name,
            "--corpus",
            str(voices["first"]),
            "--parties",
            "2",
            "--epsilon",
            "8",
            "--out",
            str(tmp_path / name),
        ]
        done = run_simulation(*words, *(word for each in terms for word in ("--param", each)))
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"\((8|7\.9\d+), 1e-05\)-DP for one utterance \(add_remove\)", done.stdout)
        assert load_bundle(tmp_path / name).config.type == type_


def test_parties_find_the_direction_of_all_rows(tmp_path: Path, run_simulation: Callable[..., Done]) -> None:
    """Exactly; and with an epsilon, not exactly, which is said with its guarantee."""
    table = str(write_csv(tmp_path / "own.csv"))
    exact = run_simulation("eigen", "--parties", "3", "--table", table)
    assert exact.returncode == 0, exact.stderr
    assert re.search(r"(1\.000000|0\.99999\d) \|cos\|", exact.stdout)
    assert "no guarantee" in exact.stdout
    assert "uniform residues" in exact.stdout
    done = run_simulation("eigen", "--parties", "3", "--table", table, "--epsilon", "1", "--radius", "2", "--json")
    said = json.loads(done.stdout)
    assert said["guarantee"].startswith("(1, 1e-06)-DP for one frame (add_remove), to the bit of each party")
    assert 0 < said["figures"]["cosine"] < 1 - 1e-6
