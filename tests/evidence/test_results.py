"""Stored results: read strictly, shown as they are, and quoted nowhere as anything else."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.results import (
    Provenance,
    Shown,
    Store,
    add_file,
    measured,
    problems_of,
    read_shown,
    read_store,
    rewritten,
    unmarked,
    write_result,
    written_page,
)
from ppspeech.evidence.results.forms import form_of, interval_text, peer_text, ratio_text
from ppspeech.evidence.results.quoted import quotes
from ppspeech.evidence.results.store import read_result
from ppspeech.figures import Figure

TOP = Path(__file__).parents[2]
FSDD = Provenance(
    "ppspeech reproduce fsdd", "2026-11-18", 123.4, "2 cores, x86_64, 24 GB", {"python": "3.11", "torch": "2.11.0"}, 0.1
)
WORDS = Figure.share("fsdd.hmm.accuracy", 297, 300, "utterances", "hmmlearn 0.3", 0.98, note="a | b; 5 states")
FIGURES = [WORDS, Figure("fsdd.loso.accuracy", 0.901), Figure.less("fsdd.train_s", 0.04, "s", "hmmlearn", 1.5)]
SHOWN = """
groups:
  - title: Models
    commands:
      - command: ppspeech reproduce fsdd
        about: Digits
        rows:
          - {metric: fsdd.hmm.accuracy, what: words right, form: percent}
          - {metric: fsdd.train_s, what: training}
      - command: ppspeech reproduce yesno
        about: Sentences
        rows: [{metric: yesno.wer, what: error rate, form: percent:2}]
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with one result, made up."""
    folder = tmp_path / "results"
    write_result(FSDD, FIGURES, folder)
    (folder / "shown.yaml").write_text(SHOWN)
    return folder


def page(folder: Path) -> str:
    """As `ppspeech report` would write it."""
    return written_page(read_store(folder), read_shown(folder / "shown.yaml"))


# The store


def test_what_is_written_is_read_again(results: Path) -> None:
    path = results / "reproduce-fsdd.jsonl"
    first, *figures = map(json.loads, path.read_text().splitlines())
    assert first["command"] == "ppspeech reproduce fsdd"
    assert first["figures"] == 3
    assert figures == [json.loads(figure.to_json()) for figure in FIGURES]
    found = read_result(path)
    assert found.provenance == FSDD
    assert found.figures == tuple(FIGURES)
    assert {path.name for path in results.iterdir()} == {"reproduce-fsdd.jsonl", "shown.yaml"}  # nothing half-written


def changed(line: int, change: Callable[[Any], Any]) -> Callable[[str], str]:
    """The file with one line's object changed."""

    def apply(text: str) -> str:
        lines = text.splitlines()
        lines[line] = json.dumps(change(json.loads(lines[line])))
        return "\n".join(lines) + "\n"

    return apply


DAMAGE: dict[str, tuple[Callable[[str], str], str]] = {
    "torn in a line": (lambda text: text[:-20], "is torn"),
    "torn between lines": (lambda text: "\n".join(text.splitlines()[:-1]) + "\n", "is torn.*says 3 figures.*2"),
    "empty": (lambda _: "", "is torn"),
    "no figures": (lambda text: text.splitlines()[0] + "\n", "no figures"),
    "no JSON": (lambda text: text.replace('{"metric": "fsdd.loso', '{"metric" "fsdd.loso'), "line 3 is no JSON"),
    "a list": (lambda text: text + "[1]\n", "line 5 is no JSON object"),
    "NaN": (lambda text: text.replace("0.901", "NaN"), "NaN is not a number"),
    "infinite": (lambda text: text.replace("0.901", "1e999"), "value cannot be inf"),
    "a field twice": (lambda text: text.replace('"unit": ""}', '"unit": "", "unit": ""}'), "there twice"),
    "a metric twice": (lambda text: text.replace("fsdd.loso.accuracy", "fsdd.hmm.accuracy"), "is there twice"),
    "a strange metric": (changed(2, lambda line: line | {"metric": "Fsdd!"}), "metric cannot be 'Fsdd!'"),
    "a strange field": (changed(2, lambda line: line | {"host": "ann"}), "line 3: a figure has"),
    "a value that is none": (changed(2, lambda line: line | {"value": "0.9"}), "value cannot be '0.9'"),
    "half an interval": (changed(2, lambda line: line | {"low": 0.1}), "both ends"),
    "an interval elsewhere": (changed(2, lambda line: line | {"low": 0.1, "high": 0.2}), "must hold its value"),
    "a folder in a note": (changed(2, lambda line: line | {"note": "see /home/ann/x.png"}), "names a folder"),
    "no provenance": (lambda text: "\n".join(text.splitlines()[1:]) + "\n", "is torn"),
    "a host": (changed(0, lambda line: line | {"host": "ann"}), "the first line must have"),
    "no machine": (changed(0, lambda line: {k: v for k, v in line.items() if k != "machine"}), "first line must have"),
    "a machine with a path": (changed(0, lambda line: line | {"machine": "/dev/ann"}), "without a path"),
    "another day": (changed(0, lambda line: line | {"date": "18.11."}), "written as 2026-11-18"),
    "less than no time": (changed(0, lambda line: line | {"seconds": -1}), "takes some seconds"),
    "no command": (changed(0, lambda line: line | {"command": "rm -r"}), "results are of `ppspeech bench"),
    "a command that is not": (
        changed(0, lambda line: line | {"command": "ppspeech bench sing"}),
        "no `ppspeech bench s",
    ),
    "another command": (changed(0, lambda line: line | {"command": "ppspeech bench hmm"}), "call it bench-hmm"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_store_is_refused(name: str, results: Path) -> None:
    damage, words = DAMAGE[name]
    path = results / "reproduce-fsdd.jsonl"
    before = path.read_text()
    assert damage(before) != before
    path.write_text(damage(before))
    with pytest.raises(PpspeechError, match=words):
        read_store(results)


def test_a_store_that_is_not_there_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(PpspeechError, match=r"no results in .*--store"):
        read_store(tmp_path)


def test_one_command_is_stored_once(results: Path) -> None:
    quick = replace(FSDD, command="ppspeech reproduce fsdd --quick")
    assert write_result(quick, FIGURES, results).name == "reproduce-fsdd-quick.jsonl"
    with pytest.raises(PpspeechError, match=r"reproduce-fsdd.jsonl and reproduce-fsdd-quick.jsonl"):
        read_store(results)


def test_figures_that_could_not_be_read_are_not_stored(results: Path) -> None:
    before = (results / "reproduce-fsdd.jsonl").read_text()
    for wrong in ([Figure("a", float("nan"))], [Figure("a", 1), Figure("a", 2)], []):
        with pytest.raises(PpspeechError):
            write_result(FSDD, wrong, results)
    assert (results / "reproduce-fsdd.jsonl").read_text() == before
    assert len(list(results.iterdir())) == 2


def test_folders_are_cut_from_notes(results: Path) -> None:
    notes = {"5 rows; /home/ann/runs/x.png": "5 rows; x.png", "~/a/b.png": "b.png", "1/2 of 3 MB/s": "1/2 of 3 MB/s"}
    write_result(FSDD, [Figure(f"m{n}", n, note=note) for n, note in enumerate(notes)], results)
    assert [figure.note for figure in read_result(results / "reproduce-fsdd.jsonl").figures] == list(notes.values())


def test_a_run_says_where_it_was() -> None:
    provenance, figures = measured("ppspeech bench hmm --quick", lambda: [WORDS])
    assert figures == [WORDS]
    assert (provenance.name, provenance.quick) == ("bench-hmm-quick", True)
    assert re.fullmatch(r"\d+ cores?, \w+, \d+ GB", provenance.machine)
    assert {"python", "torch", "numpy", "ppspeech"} <= set(provenance.versions)
    assert provenance.load is not None
    with pytest.raises(PpspeechError, match="there is no `ppspeech bench nothing`"):
        measured("ppspeech bench nothing", list)


def raw(path: Path, **first: object) -> Path:
    """What somebody measured by hand."""
    said = {"command": "ppspeech reproduce fsdd", "date": "2026-11-17", "seconds": 9, **first}
    path.write_text("\n".join([json.dumps(said), *(figure.to_json() for figure in FIGURES)]) + "\n")
    return path


@pytest.mark.parametrize("options", ["", " --json", " --folder /tmp/pictures --json"])
def test_what_was_measured_by_hand_is_completed(options: str, tmp_path: Path) -> None:
    path = add_file(raw(tmp_path / "raw", command=f"ppspeech reproduce fsdd{options}"), tmp_path / "results")
    found = read_result(path).provenance
    assert (path.name, found.command, found.date) == ("reproduce-fsdd.jsonl", "ppspeech reproduce fsdd", "2026-11-17")
    assert found.machine
    assert found.versions["torch"]
    assert found.load is None


def test_what_the_first_line_says_is_kept(tmp_path: Path) -> None:
    given = raw(tmp_path / "raw", command="ppspeech reproduce fsdd --json --quick", machine="8 cores", load=0.5)
    path = add_file(given, tmp_path / "results")
    found = read_result(path).provenance
    assert (path.name, found.machine, found.load) == ("reproduce-fsdd-quick.jsonl", "8 cores", 0.5)
    elsewhere = add_file(raw(tmp_path / "raw"), tmp_path / "results", where="4 cores, arm64, 8 GB")
    assert read_result(elsewhere).provenance.machine == "4 cores, arm64, 8 GB"


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ({"command": "ppspeech audit words"}, "results are of"),
        ({"command": "ppspeech reproduce fsdd; rm"}, "results are of"),
        ({"host": "ann"}, "the first line must be"),
        ({"date": "today"}, "written as 2026-11-18"),
    ],
)
def test_what_is_no_measurement_is_not_added(first: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(PpspeechError, match=words):
        add_file(raw(tmp_path / "raw", **first), tmp_path / "results")
    assert not (tmp_path / "results").exists()


# Forms


@pytest.mark.parametrize(
    ("figure", "asked", "text"),
    [
        (Figure("a", 0.9901), "percent", "99.0 %"),
        (Figure("a", 0.00066), "percent:2", "0.07 %"),
        (Figure("a", 0.0), "percent", "0 %"),
        (Figure("a", 0.9758), "fraction", "0.976"),
        (Figure("a", 0.9758), "", "0.976"),
        (Figure("a", 7.1e-8), "", "7.1e-8"),
        (Figure("a", 32561), "", "32,561"),
        (Figure("a", 120, "sentences"), "", "120 sentences"),
        (Figure("a", 0.0654, "s"), "", "65.4 ms"),
        (Figure("a", 172.3, "s"), "", "172 s"),
        (Figure("a", 35.2, "ms"), "", "35.2 ms"),
        (Figure("a", 1500.0, "ms"), "", "1.50 s"),
        (Figure("a", 2_990_000, "B"), "", "2.99 MB"),
        (Figure("a", 12, "B"), "", "12 B"),
        (Figure("a", 9513.2, "x"), "", "9,513x"),
        (Figure("a", 7.46, "x"), "", "7.46x"),
    ],
)
def test_numbers_are_written_for_people(figure: Figure, asked: str, text: str) -> None:
    assert form_of(figure, asked).text(figure.value) == text


def test_intervals_and_peers_are_written_in_the_same_form() -> None:
    assert interval_text(WORDS, form_of(WORDS, "percent")) == "97.1 to 99.8 %"
    assert peer_text(WORDS, "percent") == "hmmlearn 0.3: 98.0 %"
    assert (peer_text(FIGURES[2]), ratio_text(FIGURES[2])) == ("hmmlearn: 1.50 s", "38x")
    assert interval_text(FIGURES[1], form_of(FIGURES[1])) == ""
    assert interval_text(Figure("a", 1.0, low=1.0, high=1.0), form_of(FIGURES[1])) == ""


@pytest.mark.parametrize(
    ("figure", "asked"), [(FIGURES[0], "percents"), (FIGURES[0], "percent:9"), (FIGURES[2], "percent")]
)
def test_a_form_that_does_not_fit_is_refused(figure: Figure, asked: str) -> None:
    with pytest.raises(PpspeechError, match=r"a form is|is in s and no percent"):
        form_of(figure, asked)


# The page


def test_the_page_shows_what_is_stored(results: Path) -> None:
    text = page(results)
    assert "| words right | 99.0 % | 97.1 to 99.8 % | hmmlearn 0.3: 98.0 % |" in text
    assert "| training | 40 ms |  | hmmlearn: 1.50 s | 38x |" in text
    assert "`ppspeech reproduce fsdd`, 2026-11-18 in 2 min" in text
    assert "Measured on 2 cores, x86_64, 24 GB; python 3.11, torch 2.11.0." in text
    assert ":::{dropdown} All 3 figures\n| metric | figure |" in text
    assert "| `fsdd.loso.accuracy` | 0.901 |" in text
    assert "a &#124; b; 5 states; interval over 300 utterances" in text
    assert "Sentences" not in text  # nothing of it is stored
    assert "--quick" not in text


def test_other_machines_and_quick_runs_are_told(results: Path) -> None:
    other = Provenance("ppspeech bench hmm --quick", "2026-11-19", 2.0, "8 cores, arm64, 16 GB", load=3.0)
    write_result(other, [Figure("hmm.x", 1)], results)
    text = page(results)
    assert "Measured on" not in text
    assert "2026-11-18 in 2 min, on 2 cores, x86_64, 24 GB" in text
    assert "`ppspeech bench hmm --quick`, 2026-11-19 in 2 s, machine load 3.0 before, on 8 cores, arm64, 16 GB" in text
    assert "**The small version of the measurement (`--quick`).**" in text
    assert "## Other measurements" in text
    assert ":::{dropdown} The figure" in text


def test_rows_of_a_small_run_may_be_fewer(results: Path) -> None:
    (results / "reproduce-fsdd.jsonl").unlink()
    write_result(replace(FSDD, command="ppspeech reproduce fsdd --quick"), [WORDS], results)
    assert "words right" in page(results)
    assert "training" not in page(results)


def test_what_is_shown_must_be_stored(results: Path) -> None:
    (results / "shown.yaml").write_text(SHOWN.replace("fsdd.train_s", "fsdd.trained_s"))
    with pytest.raises(PpspeechError, match=r"not stored.*fsdd.trained_s \(`ppspeech reproduce fsdd`\)"):
        page(results)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("groups:", "groups", "shown.yaml"),
        ("what: training", "why: training", "a row has form, metric, what"),
        ("title: Models", "title: 3", "is no text"),
        ("command: ppspeech reproduce yesno", "command: ppspeech reproduce fsdd", "shown twice"),
        ("command: ppspeech reproduce yesno", "command: ppspeech reproduce maybe", "there is no"),
        ("form: percent}", "form: percents}", "a form is"),
        ("rows: [", "rows: {", "shown.yaml"),
    ],
)
def test_a_wrong_list_of_what_is_shown_is_refused(old: str, new: str, words: str, results: Path) -> None:
    assert old in SHOWN
    (results / "shown.yaml").write_text(SHOWN.replace(old, new))
    with pytest.raises(PpspeechError, match=words):
        page(results)


def test_the_list_of_what_is_shown_can_be_read() -> None:
    shown = read_shown(TOP / "docs" / "results" / "shown.yaml")
    assert len(shown.commands) > 50
    assert all(1 <= len(each.rows) <= 13 for each in shown.commands)
    for each in shown.commands:
        for row in each.rows:
            form_of(Figure(row.metric, 0.5), row.form)
    assert isinstance(shown, Shown)


# Quoted figures


QUOTED = "right: <!-- figure: fsdd.hmm.accuracy percent -->99.0 %<!-- end --> of all"


def store_of(results: Path) -> Store:
    return read_store(results)


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ("fsdd.hmm.accuracy percent", "99.0 %"),
        ("fsdd.hmm.accuracy", "0.990"),
        ("fsdd.hmm.accuracy interval percent", "97.1 to 99.8 %"),
        ("fsdd.hmm.accuracy low percent", "97.1 %"),
        ("fsdd.hmm.accuracy high percent:0", "100 %"),
        ("fsdd.hmm.accuracy peer percent", "98.0 %"),
        ("fsdd.train_s ratio", "38x"),
        ("reproduce-fsdd:fsdd.train_s", "40 ms"),
    ],
)
def test_a_mark_is_filled(mark: str, text: str, results: Path) -> None:
    document = f"a\n| b | <!-- figure: {mark} -->?<!-- end --> and <!-- figure: {mark} --><!-- end --> |\n"
    filled = rewritten(document, store_of(results))
    assert filled.count(f"-->{text}<!-- end -->") == 2
    assert problems_of(filled, store_of(results)) == []
    assert rewritten(filled, store_of(results)) == filled


def test_a_changed_number_is_noticed(results: Path) -> None:
    store = store_of(results)
    assert problems_of(f"# Title\n\n{QUOTED}", store) == []
    (said,) = problems_of(f"# Title\n\n{QUOTED.replace('99.0', '99.9')}", store)
    assert said.startswith("line 3: fsdd.hmm.accuracy percent is quoted as '99.9 %', the store has '99.0 %'")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("<!-- figure: fsdd.hmm.acuracy -->1<!-- end -->", "no figure called .*did you mean fsdd.hmm.accuracy"),
        ("<!-- figure: nothing -->1<!-- end -->", "ppspeech report --metrics"),
        ("<!-- figure: fsdd.hmm.accuracy -->1", "line 1: a mark .* ends with"),
        ("x\n<!-- figure: fsdd.hmm.accuracy -->1\n<!-- end -->", "line 2: a mark"),
        ("<!-- figure: fsdd.hmm.accuracy --><!-- figure: fsdd.train_s -->1<!-- end -->", "line 1: a mark"),
        ("<!-- figure: fsdd.hmm.accuracy percents -->1<!-- end -->", "a form is"),
        ("<!-- figure: fsdd.hmm.accuracy percent low -->1<!-- end -->", "a mark has a metric, one of"),
        ("<!-- figure: fsdd.loso.accuracy interval -->1<!-- end -->", "has no interval"),
        ("<!-- figure: fsdd.loso.accuracy ratio -->1<!-- end -->", "has no ratio"),
    ],
)
def test_a_wrong_mark_is_refused(document: str, words: str, results: Path) -> None:
    store = store_of(results)
    with pytest.raises(PpspeechError, match=words):
        rewritten(document, store)
    (said,) = problems_of(document, store)
    assert re.search(words, said)


def test_a_name_that_two_commands_print_needs_the_command(results: Path) -> None:
    write_result(replace(FSDD, command="ppspeech bench hmm"), [Figure("fsdd.hmm.accuracy", 0.5)], results)
    store = store_of(results)
    with pytest.raises(PpspeechError, match=r"write bench-hmm:fsdd.hmm.accuracy or reproduce-fsdd:fsdd.hmm.accuracy"):
        store.find("fsdd.hmm.accuracy")
    assert store.find("bench-hmm:fsdd.hmm.accuracy")[1].value == 0.5
    assert ("fsdd.hmm.accuracy", "", "ppspeech bench hmm") in store.metrics()


def test_examples_in_code_stay(results: Path) -> None:
    document = f"`{QUOTED.replace('99.0', '1')}`\n\n```md\n{QUOTED.replace('99.0', '2')}\n```\n"
    assert rewritten(document, store_of(results)) == document
    assert problems_of(document, store_of(results)) == []


COMPUTED = "<!-- figure: = {} -->{}<!-- end -->"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("2 * fsdd.hmm.accuracy", "1.98"),
        ("1e6 * fsdd.train_s / 3600; h", "11.1 h"),
        ("(1 + fsdd.train_s) / -2; s", "-0.520 s"),
        ("reproduce-fsdd:fsdd.train_s * 1e9; B", "40 MB"),
    ],
)
def test_what_follows_from_figures_is_computed(results: Path, expression: str, text: str) -> None:
    document = COMPUTED.format(expression, "?")
    assert rewritten(document, store_of(results)) == COMPUTED.format(expression, text)
    assert problems_of(document, store_of(results))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("fsdd.hmm.wer * 2", "no figure|not stored|did you mean"),
        ("1 / 0", "got '= 1 / 0'"),
        ("fsdd.train_s ** 2", "numbers, metrics"),
        ("open(1)", "numbers, metrics"),
        ("'a' * 2", "numbers, metrics"),
        ("", "numbers, metrics"),
        ("1e300 * 1e300", "numbers, metrics"),
    ],
)
def test_what_cannot_be_computed_is_told(results: Path, expression: str, words: str) -> None:
    (problem,) = problems_of(COMPUTED.format(expression, "1"), store_of(results))
    assert re.search(words, problem)


TABLE = """
| what | figure | command |
|---|---|---|
| words of 6 people | <!-- figure: a percent -->99.0 %<!-- end --> right | `ppspeech reproduce fsdd` |
| more | {} | `a | 3` |

| what | count |
|---|---|
| other tables | 5 |
"""


def test_a_number_that_is_not_quoted_is_noticed() -> None:
    assert unmarked(TABLE.format("<!-- figure: b -->2<!-- end --> a clip")) == []
    (line,) = unmarked(TABLE.format("2 a clip"))
    assert line.startswith("| more | 2 a clip")


# This project


def test_the_readme_quotes_all_figures_of_its_table() -> None:
    text = (TOP / "README.md").read_text()
    assert unmarked(text) == []
    assert len(quotes(text)) >= 10


def test_documents_say_what_the_store_gives() -> None:
    folder = TOP / "docs" / "results"
    documents = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").rglob("*.md"))]
    if not list(folder.glob("*.jsonl")):
        assert not (folder / "index.md").exists()
        assert not [path for path in documents if quotes(path.read_text())]
        return
    store = read_store(folder)
    assert (folder / "index.md").read_text() == page(folder), "run `ppspeech report`"
    assert {path: said for path in documents if (said := problems_of(path.read_text(), store))} == {}
