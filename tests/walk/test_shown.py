"""What documents show people to type is run by a test, or a table says why not."""

import json
from itertools import chain
from pathlib import Path

import pytest

from tests.fresh import start
from tests.test_docs import FENCE
from tests.walk.shown import (
    ROOMS,
    TEXTS,
    Line,
    is_measured,
    made_by_ci,
    python_blocks,
    read,
    run_by,
    shown,
    typed,
)
from tests.walk.step import Step
from tests.walk.steps import GIVEN, STAGES

PAGES = "goes on until Ctrl-C; tests/studio starts it, asks it by a browser, and ends it"
HEADS = "needs a head on an embedding; tests/service/test_heads.py and test_wake.py do it with heads of their own"
REGISTRY = "fetches packages; where there is a registry, "
CLUSTER = "starts a cluster, or joins one; tests/cluster does it with two nodes, of which one is killed"
SHARED = "needs a PostgreSQL; tests/service/test_fleet.py starts one, with servers that share it"
NOT_RUN = {
    "export RAY_AUTH_MODE=token": CLUSTER,
    "ray get-auth-token --generate": CLUSTER,
    "ray start --head --node-ip-address 10.0.0.2 --port 6379 --include-dashboard false": CLUSTER,
    "ray start --address 10.0.0.2:6379": CLUSTER,
    "make demo": "sets up what `make setup` does and runs `ppspeech demo`: CI does the one, the walk the other",
    "make docs": "the site of the checkout itself; tests/test_site.py builds it in another folder",
    "make web": REGISTRY + "tests/web compares what is built with what is packaged, where its packages are there",
    "make fuzz": "takes as long as one lets it; tests/fuzz/test_doors.py is a small part of it",
    "make lock": REGISTRY + "it changes the versions that everything is tested with",
    "make mutants": "runs tests for each of many mutants; tests/mutants checks that all of them still apply",
    "make test-slow": "hours; where it is run, it runs every slow step of the walk",
    "python -m tests.pages": "writes pages of this checkout; tests/test_formats.py checks that it would change nothing",
    "python -m tests.studio": "pictures of the pages, in some minutes; tests/studio drives the same pages",
    "python -m tests.vectors": "writes vectors of this checkout; tests/test_formats.py computes them again",
    "cat ann/certificate.pem bob/certificate.pem > /etc/ppspeech/clients.pem": "the walk writes that file with Python",
    "ppspeech recognize --corpus": "tests/cli/test_recognition.py does it with a model of its own",
    "export PGPASSFILE=secrets/pgpass": "changes nothing but the shell; tests/service/test_store.py reads such a file",
    "ppspeech login serve --state --store --store-key": SHARED,
    "ppspeech music serve --store --store-key": SHARED,
    "ppspeech serve --store": SHARED,
    "ppspeech serve words --budget --certificate --drain --key --listen --metrics --store --store-key": SHARED,
    "ppspeech serve words --metrics --store --store-key": SHARED,
    "ppspeech recognize --listen": HEADS,
    "ppspeech serve my_words": HEADS,
    "ppspeech serve my_words --state --words": HEADS,
    "ppspeech studio": PAGES,
    "ppspeech studio --corpus": PAGES,
    "ppspeech studio --work": PAGES,
    "ppspeech wake": HEADS,
    "ppspeech wake --pin --server": HEADS,
    "ppspeech wake --pin --server --wyoming": HEADS,
    "ppspeech wake --server": HEADS,
    "source .venv/bin/activate": "changes nothing but the shell that it is typed in",
    "uv venv .venv": "`make setup` makes one, where there is none",
    ".venv/bin/pre-commit install": "changes how this checkout commits",
    'uv pip install --python .venv/bin/python --torch-backend cpu --editable ".[full]"': REGISTRY
    + "builds for machines without a GPU",
    "pip install --no-deps Resemblyzer==0.1.4": REGISTRY + "`make setup` installs it from the lock",
    'pip install "ppspeech[client]"': REGISTRY + "tests/cli/test_wheel.py installs it from the wheel",
    'pip install "ppspeech[hub]"': REGISTRY + "an extra, which tests/test_docs.py knows",
    'pip install "ppspeech[notebooks]"': REGISTRY + "an extra, which tests/test_docs.py knows",
    'pip install "ppspeech[studio]"': REGISTRY + "an extra, which tests/test_docs.py knows",
    'pip install "ppspeech[peers]"': REGISTRY + "an extra, which tests/test_docs.py knows",
    'pip install "ppspeech[scale]"': REGISTRY + "an extra, which tests/test_docs.py knows",
    'pip install "ppspeech[webtransport]"': REGISTRY + "an extra, which tests/test_docs.py knows",
}
"""Why a line that a document shows is run by no test: as `Line` writes it, or as it is typed."""

EVERY = list(chain.from_iterable(STAGES.values()))


def nobody_runs(lines: set[Line], steps: list[Step]) -> set[str]:
    """Lines that no step runs; of a bench or an experiment it is enough that a step has the options."""
    run = run_by(steps)
    parts = {line: Line(line.command, "", line.options) if line.command in ROOMS else line for line in lines}
    return {str(line) for line, part in parts.items() if not any(part.is_run_by(each) for each in run)}


def told(missing: set[str], reasons: dict[str, str]) -> str:
    """What is wrong with a table of reasons, in words for whoever changed a document; nothing if it is right."""
    unsaid, stale = sorted(missing - set(reasons)), sorted(set(reasons) - missing)
    return "\n".join(
        [f"add a step to tests/walk/steps.py, or a reason to tests/walk/test_shown.py: {line}" for line in unsaid]
        + [f"no document shows this, or a test runs it: take out of tests/walk/test_shown.py: {line}" for line in stale]
    )


def unmeasured(steps: list[Step]) -> list[Line]:
    """Benches and experiments that documents name, of which no result is stored, and which no test and no step runs."""
    named = {Line(line.command, line.about) for line in shown() if line.command in ROOMS and line.about}
    run = {Line(line.command, line.about) for line in run_by(steps)}
    return sorted((line for line in named - run if not is_measured(line)), key=str)


def test_what_is_shown_is_run() -> None:
    missing = nobody_runs(shown(), EVERY) | (typed() - made_by_ci())
    assert not told(missing, NOT_RUN), told(missing, NOT_RUN)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", unmeasured(EVERY), ids=str)
def test_what_nobody_has_measured_runs(line: Line, tmp_path: Path) -> None:
    job = start(f"ppspeech {line.command} {line.about} --quick --json", tmp_path)
    assert job.end(800) == 0, job.stderr
    assert all({"metric", "value"} <= set(json.loads(printed)) for printed in job.stdout.splitlines())
    assert job.stdout


def test_python_is_shown_and_what_it_is_given_is_used() -> None:
    code = [each for _, each in python_blocks()]
    assert len(code) >= 2
    assert set(code) <= {step.run.removeprefix(given) for step in EVERY for given in ("", *GIVEN.values())}
    assert [start for start in GIVEN if sum(each.startswith(start) for each in code) != 1] == []


# The check can fail


STEPS = [
    Step("a model", "ppspeech serve words --listen 127.0.0.1:0 --budget 3"),
    Step("a recipe", "ppspeech train keyword_hmm --data.corpus mine"),
    Step("an index", "ppspeech index meetings -o meetings.archive"),
    Step("a filter", "ppspeech filter train --config configs/filter_speaker.yaml --out quiet"),
    Step("a refusal", "ppspeech inspect nowhere", code=2),
    Step("a refusal that is shown", "ppspeech simulate train_descent --kill party1", code=2, told=True),
    Step("a bench", "ppspeech bench hmm --quick"),
]


@pytest.mark.parametrize(
    "line",
    [
        "ppspeech serve words",
        "ppspeech serve BUNDLE --budget 7",
        "ppspeech train keyword_hmm",
        "ppspeech train fit keyword_hmm --data.corpus yours",
        "ppspeech index talks --output talks.archive",
        "ppspeech filter train --config filter_speaker --out other",
        "ppspeech filter train",
        "ppspeech simulate train_descent --kill party1",
        "ppspeech bench paillier --quick",
        ".venv/bin/ppspeech serve words",
        "pipelines",
    ],
)
def test_what_is_run_is_seen(line: str) -> None:
    assert nobody_runs(shown([f"`{line}`"]), STEPS) == set()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ppspeech info", "ppspeech info"),
        ("ppspeech serve voices", "ppspeech serve voices"),
        ("ppspeech serve words --state kept --budget 3", "ppspeech serve words --budget --state"),
        ("ppspeech serve words --pin … --budget", "ppspeech serve words --budget --pin"),
        ("ppspeech train sentences", "ppspeech train sentences"),
        ("ppspeech train keyword_hmm --audit x=1", "ppspeech train keyword_hmm --audit"),
        ("ppspeech filter train --config filter_codes", "ppspeech filter train filter_codes --config"),
        ("ppspeech inspect words", "ppspeech inspect"),
        ("ppspeech bench hmm --store", "ppspeech bench hmm --store"),
        ("ppspeech keys new ann", "ppspeech keys new"),
        ("ppspeech\ninfo", "ppspeech info"),
    ],
)
@pytest.mark.parametrize("way", ["`{}`", "```console\n{}\n```", "| a | `{}` |"])
def test_what_nobody_runs_is_seen(line: str, said: str, way: str) -> None:
    if "console" in way:
        line = line.replace("\n", " ")
    assert nobody_runs(shown([way.format(line)]), STEPS) == {said}


def test_lines_for_the_shell_are_seen() -> None:
    text = (
        "```console\nmake lint demo   # both\n\n   rm -r all\n.venv/bin/ppspeech info\n```\n`pip install x`, `python`"
    )
    assert typed([text]) == {"make lint", "make demo", "rm -r all", "pip install x"}
    assert {"make lint", "make test", "make setup"} <= made_by_ci()
    assert "make demo" not in made_by_ci()


def test_a_wrong_reason_is_seen() -> None:
    assert told({"make tea"}, {"make tea": "no kettle"}) == ""
    assert told({"make tea"}, {}).endswith("a reason to tests/walk/test_shown.py: make tea")
    assert told(set(), {"make tea": "no kettle"}).endswith("take out of tests/walk/test_shown.py: make tea")


def test_a_measurement_is_stored_or_tested(tmp_path: Path) -> None:
    assert is_measured(Line("bench", "hmm"), tmp_path)  # by `from … import run`
    assert is_measured(Line("bench", "paillier"), tmp_path) is False  # its test calls other parts
    assert is_measured(Line("bench", "keyword"), tmp_path)  # by `import keyword as bench`
    assert is_measured(Line("reproduce", "dtw"), tmp_path)  # by EXPERIMENTS["dtw"]
    (tmp_path / "bench-paillier.jsonl").touch()
    assert is_measured(Line("bench", "paillier"), tmp_path)


def test_documents_are_read() -> None:
    """Or else all of the above would hold for anything."""
    assert not {kind for text in TEXTS.values() for kind, _ in FENCE.findall(text)} & {"bash", "sh", "shell", "py"}
    assert len(shown()) > 100
    assert len(typed()) > 10
    assert read(["party", "walk", "--input", "x", "--param", "y=1"]) in {
        Line("party", "walk", frozenset({"--input", "--param"}))
    }
