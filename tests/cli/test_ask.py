"""`ppspeech ask` as people type it: counts with noise, a budget that outlives the command, and refusals."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ppspeech.cli import app
from ppspeech.privacy import KeptBudget

ROWS = 400


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """400 rows of 200 people: the first hundred are over 60, every fourth row is a yes."""
    rows = [f"p{i // 2},{70 if i < 200 else 30},{'yes' if i % 4 == 0 else 'no'}" for i in range(ROWS)]
    path = tmp_path / "calls.csv"
    path.write_text("\n".join(["person,age,word", *rows]) + "\n")
    return path


def ask(*words: Any, code: int = 0, typed: str = "") -> Any:
    result = CliRunner().invoke(app, ["ask", *map(str, words)], input=typed)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def answers(*words: Any, **more: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ask(*words, "--json", **more).stdout.splitlines()]


def test_a_count_and_what_it_cost(table: Path) -> None:
    """At epsilon 20 a question costs 2, and noise beyond 30 comes once in e^60."""
    (told,) = answers(table, "--epsilon", 20, "--query", 'age > 60 and word == "yes"')
    assert set(told) == {"question", "count", "within", "epsilon", "left"}
    assert abs(told["count"] - 50) < 30
    assert (told["epsilon"], told["left"], told["within"]) == (2.0, 18.0, 2)
    said = ask(table, "--query", "age > 60", "--each", 8).stdout
    assert "a budget of 20 for one record (replace), of which 18 is left" in said
    assert "cost 8, 10 left" in said


def test_people_count_once(table: Path) -> None:
    (told,) = answers(table, "--epsilon", 20, "--each", 20, "--who", "person", "--query", "age > 60")
    assert abs(told["count"] - 100) < 10
    ask(table, "--query", "age > 60", code=2)  # the budget is people's: rows are not protected by it


def test_the_budget_goes_on_in_the_next_command_and_ends(table: Path) -> None:
    for left in (0.6, 0.2):
        assert answers(table, "--epsilon", 1, "--each", 0.4, "--query", "age > 60")[0]["left"] == left
    refused = ask(table, "--epsilon", 1, "--each", 0.4, "--query", "age > 60", "--json", code=2)
    assert "0.2 is left: 0.4 more would exceed it, and nothing was released" in refused.output
    assert refused.stdout == ""
    assert "not 5.0: leave epsilon out" in ask(table, "--epsilon", 5, "--query", "age > 60", code=2).output
    assert KeptBudget(table.with_suffix(".asked.sqlite"), "calls").releases == 2
    assert table.with_suffix(".asked.sqlite").stat().st_mode & 0o077 == 0
    link = table.parent / "elsewhere.csv"
    link.symlink_to(table)
    assert "0.2 is left" in ask(link, "--each", 0.4, "--query", "age > 60", code=2).output


def test_nothing_is_paid_for_questions_that_make_no_sense(table: Path) -> None:
    first = "age > 60"
    for wrong, words in (
        ("age >> 60", "letter 6"),
        ("height > 1", "there are person, age, word"),
        ("age", "compare it"),
    ):
        refused = ask(table, "--epsilon", 1, "--query", first, "--query", wrong, "--json", code=2)
        assert words in refused.output
        assert refused.stdout == ""
    assert answers(table, "--epsilon", 1, "--query", first)[0]["left"] == 0.9


def test_questions_from_a_file_and_from_the_keyboard(table: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text("# about age\nage > 60\n\nage > 20\n")
    assert [told["question"] for told in answers(table, "--epsilon", 1, "--queries", questions)] == [
        "age > 60",
        "age > 20",
    ]
    typed = ask(table, typed="age > 60\nnonsense >\n\nword == 'yes'\n")
    assert typed.stdout.count("cost 0.1") == 2
    assert "nonsense" in typed.stderr
    assert KeptBudget(table.with_suffix(".asked.sqlite"), "calls").left == pytest.approx(0.6)
    assert "cannot read the questions" in ask(table, "--queries", tmp_path / "no.txt", code=2).output


def test_a_session_is_paid_once(table: Path) -> None:
    """At an epsilon of 5,000 noise is nothing beside the stated error, which grain makes a fiftieth of all."""
    about = ["--about", "old: age > 60", "--about", "yes: word == 'yes'"]
    asked = ["old", "yes", "old and not yes", "old", "not old"]
    told = answers(table, "--epsilon", 5000, *about, *[word for each in asked for word in ("--query", each)])
    assert [row["question"] for row in told] == asked
    for row, truth in zip(told, (200, 100, 150, 200, 200), strict=True):
        assert abs(row["count"] - truth) <= row["within"] < 40
    assert told[-1]["hard_left"] == 18 - sum(row["hard"] for row in told)
    assert any(row["hard"] for row in told)
    refused = ask(table, "--query", "age > 60", "--each", 1, code=2)
    assert "nothing was released" in refused.output


def test_a_session_that_could_say_nothing_is_refused_before_it_is_paid(table: Path) -> None:
    about = ["--about", "old: age > 60"]
    assert "off by all of them" in ask(table, "--epsilon", 0.1, *about, "--query", "old", code=2).output
    for wrong in (["--about", "age > 60"], ["--about", "old: age > 60"] * 2, [*about, "--query", "old > 1"]):
        ask(table, *wrong, code=2)
    many = [word for name in "abcd" for word in ("--about", f"{name}: age > 1")]
    assert "at most 3 statements" in ask(table, *many, code=2).output
    assert KeptBudget(table.with_suffix(".asked.sqlite"), "calls").left == 0.1


def test_a_corpus_with_a_manifest_is_asked_by_all_its_columns(tmp_path: Path) -> None:
    from ppspeech.audio import write_audio
    from tests.audio.test_mfcc import voice

    rows = []
    for place in range(6):
        write_audio(tmp_path / f"{place}.wav", voice(8000).clamp(-1, 1), 16_000)
        rows.append(f"{place}.wav,s{place // 2},{'yes' if place % 2 else 'no'},{20 + 20 * place}")
    (tmp_path / "manifest.csv").write_text("\n".join(["path,speaker,word,age", *rows]) + "\n")
    said = ask(tmp_path, "--epsilon", 500, "--query", 'age > 60 and word == "yes"').stdout
    assert "3 speakers; a budget of 500 for one speaker (replace)" in said
    assert ": 2 (95 %" in said
    again = answers(tmp_path / "manifest.csv", "--query", "age > 60")  # the same people by another door
    assert again[0]["left"] == pytest.approx(400, abs=0.01)
    assert KeptBudget(tmp_path / "manifest.asked.sqlite", "manifest").releases == 2


def test_nothing_of_the_rows_is_written_but_the_noisy_count(table: Path) -> None:
    result = ask(table, "--epsilon", 1, "--query", "age > 60", typed="")
    with sqlite3.connect(table.with_suffix(".asked.sqlite")) as database:
        kept = " ".join(str(row) for row in database.execute("SELECT * FROM spent"))
    for text in (result.output, kept):
        assert not [person for person in ("p0", "p17", "p199") if person in text]
    assert "age" not in kept  # nor what was asked
