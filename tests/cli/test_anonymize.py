"""`ppspeech anonymize` and `ppspeech audit TABLE`: what is written, what is said, what is refused."""

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ppspeech.cli import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With `people.csv`, 200 rows of which no two are alike."""
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(0)
    rows = [
        [f"p{at}", 18 + at % 60, "fm"[at % 2], chance.choice(["flu", "none"]), repr(float(chance.normal()))]
        for at in range(200)
    ]
    with Path("people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["name", "age", "sex", "illness", "voice"], *rows])
    return tmp_path


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result.output


def read(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_rows_are_alike_in_another_order_and_nothing_is_promised(folder: Path) -> None:
    command = ["anonymize", "people.csv", "--k", "8", "--quasi", "age, sex", "--sensitive", "illness", "--out"]
    said = run(*command, "out.csv", "--drop", "voice")
    assert "no guarantee (none)" in said
    assert "as they are: name, illness" in said
    rows = read("out.csv")
    assert min(Counter((row["age"], row["sex"]) for row in rows).values()) >= 8
    assert list(rows[0]) == ["name", "age", "sex", "illness"]
    assert [row["name"] for row in rows] != [f"p{at}" for at in range(200)]
    assert sorted(row["name"] for row in rows) == sorted(f"p{at}" for at in range(200))
    told = json.loads(run(*command, "again.csv", "--json", "--method", "mondrian"))
    assert told["guarantee"] == "none"
    assert told["k"] == min(Counter((row["age"], row["sex"]) for row in read("again.csv")).values()) >= 8
    assert {"l", "t", "homogeneous", "guessed", "guessed_by_nothing", "loss", "left_out", "as_they_are"} <= set(told)


def test_a_table_is_linked_to_people_before_and_hardly_after(folder: Path) -> None:
    def named(path: str) -> float:
        lines = run("audit", path, "--known", "people.csv", "--person", "name", "--json").splitlines()
        figures = {figure["metric"]: figure["value"] for figure in map(json.loads, lines)}
        stem = Path(path).stem
        assert figures[f"audit.{stem}.chance"] == pytest.approx(1 / 200)
        return float(figures[f"audit.{stem}.named"])

    assert named("people.csv") == 1
    run("anonymize", "people.csv", "--k", "10", "--quasi", "age,sex,illness,voice", "--out", "out.csv")
    assert named("out.csv") <= 1 / 10
    assert "people given a row" in run("audit", "out.csv", "--known", "people.csv", "--person", "name")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["anonymize", "absent.csv", "--quasi", "age", "--out", "x.csv"], "no file absent.csv"),
        (["anonymize", "people.csv", "--quasi", "shoe", "--out", "x.csv"], "no column 'shoe'"),
        (["anonymize", "people.csv", "--quasi", "age", "--out", "x.csv", "--k", "201"], "cannot be made 201-anonymous"),
        (["anonymize", "people.csv", "--quasi", "age", "--drop", "age", "--out", "x.csv"], "no column 'age'"),
        (["anonymize", "people.csv", "--quasi", "age", "--sensitive", "age", "--out", "x.csv"], "both"),
        (["anonymize", "people.csv", "--quasi", "age", "--out", "x.csv", "--method", "magic"], "one of auto"),
        (["audit", "people.csv"], "--known FILE.csv and --person"),
        (["audit", "people.csv", "--known", "absent.csv", "--person", "name"], "no file absent.csv"),
        (["audit", "gaussian", "--known", "people.csv"], "rows of a table"),
        (["audit", "k_anonymity"], "states no epsilon"),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, words: list[str], said: str) -> None:
    assert said in " ".join(run(*words, code=2).split())
    assert not Path("x.csv").exists()
