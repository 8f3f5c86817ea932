"""`ppspeech report`, and `--store` of what measures."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ppspeech.cli import app
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.results.store import read_result
from ppspeech.figures import Figure
from ppspeech.registry import Listed

SHOWN = """
groups:
  - title: Models
    commands:
      - command: ppspeech bench hmm
        about: Baum-Welch
        rows: [{metric: hmm.accuracy, what: words right, form: percent}]
      - command: ppspeech reproduce yesno
        about: Sentences
        rows: [{metric: yesno.wer, what: error rate}]
"""


def run(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with documents, and a benchmark that takes no time."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "shown.yaml").write_text(SHOWN)
    (tmp_path / "README.md").write_text("It is <!-- figure: hmm.accuracy percent -->?<!-- end --> right.\n")
    (tmp_path / "docs" / "guide.md").write_text("Nothing.\n")
    _ = BENCHES["hmm"], EXPERIMENTS["yesno"]
    made = [Figure.share("hmm.accuracy", 99, 100, "utterances", note=f"{tmp_path}/runs/x.png")]
    monkeypatch.setitem(BENCHES._entries, "hmm", lambda _: made)
    return tmp_path


def test_the_beginning_of_names_runs_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"scale-up": Listed("Of the first."), "scale-out": Listed("Of the second."), "hmm": Listed("No part.")}
    monkeypatch.setattr("ppspeech.registry.listed", lambda *_: both)
    for name in ("scale-up", "scale-out"):
        monkeypatch.setitem(BENCHES._entries, name, lambda _, name=name: [Figure(f"{name}.seconds", 1.0, "s")])
    told = [json.loads(line)["metric"] for line in run("bench", "scale", "--json").splitlines()]
    assert told == ["scale-up.seconds", "scale-out.seconds"]
    assert "no benchmark called 'scal'" in run("bench", "scal", code=2)


def test_from_a_run_to_the_page_and_the_documents(top: Path) -> None:
    assert "words" not in run("bench", "hmm")
    assert not list((top / "docs" / "results").glob("*.jsonl"))
    assert "bench-hmm.jsonl" in run("bench", "hmm", "--store")
    (figure,) = read_result(top / "docs" / "results" / "bench-hmm.jsonl").figures
    assert figure.note == "x.png; interval over 100 utterances"
    told = run("report", "--check", code=1)
    assert "index.md is not what the store gives" in told.replace("\n", " ")
    assert "README.md, line 1: hmm.accuracy percent is quoted as '?'" in told.replace("\n", " ")
    said = run("report")
    assert "wrote README.md" in said
    assert "not measured yet: ppspeech reproduce yesno" in said
    assert "-->99.0 %<!-- end -->" in (top / "README.md").read_text()
    assert "| words right | 99.0 % |" in (top / "docs" / "results" / "index.md").read_text()
    assert "say what 1 results give" in run("report", "--check")
    assert "wrote README.md" not in run("report")


@pytest.mark.parametrize("name", ["docs/results/index.md", "README.md"])
def test_a_changed_document_is_noticed(name: str, top: Path) -> None:
    run("bench", "hmm", "--store")
    run("report")
    path = top / name
    path.write_text(path.read_text().replace("99.0 %", "99.9 %"))
    assert name in run("report", "--check", code=1)
    run("report")
    run("report", "--check")


def test_a_new_measurement_makes_the_page_stale(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("bench", "hmm", "--store")
    run("report")
    monkeypatch.setitem(BENCHES._entries, "hmm", lambda _: [Figure("hmm.accuracy", 0.5)])
    run("bench", "hmm", "--store")
    assert "'50.0 %'" in run("report", "--check", code=1).replace("\n", " ")


def test_a_run_that_fails_leaves_what_was_stored(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("bench", "hmm", "--store")
    before = (top / "docs" / "results" / "bench-hmm.jsonl").read_bytes()

    def fails(_: bool) -> list[Figure]:
        raise PpspeechError("no peer")

    monkeypatch.setitem(BENCHES._entries, "hmm", fails)
    run("bench", "hmm", "--store", code=2)
    assert (top / "docs" / "results" / "bench-hmm.jsonl").read_bytes() == before
    assert len(list((top / "docs" / "results").iterdir())) == 2


def test_a_quick_run_is_stored_as_one(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def yesno(quick: bool, folder: Path) -> list[Figure]:
        assert (quick, folder) == (True, Path("runs/reproduce"))
        return [Figure("yesno.wer", 0.0)]

    monkeypatch.setitem(EXPERIMENTS._entries, "yesno", yesno)
    run("reproduce", "yesno", "--quick", "--store", "--results", "kept")
    found = read_result(top / "kept" / "reproduce-yesno-quick.jsonl")
    assert found.provenance.command == "ppspeech reproduce yesno --quick"


def test_figures_and_names_for_programs(top: Path) -> None:
    run("bench", "hmm", "--store")
    (line,) = map(json.loads, run("report", "--json").splitlines())
    assert (line["command"], line["metric"], line["value"]) == ("ppspeech bench hmm", "hmm.accuracy", 0.99)
    assert {"date", "low", "high"} <= set(line)
    (name,) = map(json.loads, run("report", "--metrics", "--json").splitlines())
    assert name == {"metric": "hmm.accuracy", "unit": "", "command": "ppspeech bench hmm"}
    assert "hmm.accuracy" in run("report", "--metrics")


def test_what_was_measured_by_hand_is_added(top: Path) -> None:
    first = {"command": "ppspeech bench hmm --json", "date": "2026-11-18", "seconds": 3}
    (top / "raw").write_text(f"{json.dumps(first)}\n{Figure('hmm.accuracy', 0.5).to_json()}\n")
    assert "bench-hmm.jsonl" in run("report", "add", "raw", "--machine", "4 cores")
    assert read_result(top / "docs" / "results" / "bench-hmm.jsonl").provenance.machine == "4 cores"
    assert json.loads(run("report", "add", "raw", "--json"))["stored"].endswith("bench-hmm.jsonl")


@pytest.mark.parametrize(
    ("spoil", "words", "said"),
    [
        (lambda top: (top / "docs/results/bench-hmm.jsonl").unlink(), ["report"], "no results in docs/results"),
        (lambda top: (top / "docs/results/shown.yaml").unlink(), ["report"], "shown.yaml"),
        (
            lambda top: (top / "README.md").write_text("<!-- figure: no -->1<!-- end -->"),
            ["report"],
            "README.md, line 1",
        ),
        (lambda top: (top / "docs/results/bench-hmm.jsonl").write_text("{"), ["report", "--json"], "is torn"),
        (lambda _: None, ["report", "--documents", "no.md"], "there is no no.md"),
        (lambda _: None, ["report", "write"], "`ppspeech report add FILE` stores files"),
        (lambda _: None, ["report", "add"], "`ppspeech report add FILE` stores files"),
        (lambda _: None, ["report", "add", "no.jsonl"], "no.jsonl cannot be read"),
        (lambda _: None, ["report", "add", "README.md", "--check"], "afterwards"),
        (lambda _: None, ["bench", "--store"], "`ppspeech bench NAME --store`"),
        (lambda _: None, ["reproduce", "--store"], "`ppspeech reproduce NAME --store`"),
    ],
)
def test_what_cannot_be_done_is_said(spoil: Callable[[Path], object], words: list[str], said: str, top: Path) -> None:
    run("bench", "hmm", "--store")
    spoil(top)
    before = {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}
    assert said in " ".join(run(*words, code=2).split())
    assert {path: path.read_bytes() for path in top.rglob("*") if path.is_file()} == before
