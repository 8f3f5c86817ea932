"""The benchmark of texts: its figures exist, and it notices what is not found."""

from dataclasses import replace

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import search as bench
from ppspeech.evidence.bench.two_parties import measure

SMALL = tuple(replace(case, lines=60 if case.name != "garbled" else 4) for case in bench.CASES)


def test_small_texts_give_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    always = tuple(replace(case, pattern=pattern) for case, pattern in zip(SMALL, PATTERNS, strict=True))
    monkeypatch.setattr(bench, "CASES", always)
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    assert {"grep.q16.s", "grep.q64.s", "grep.literal.s", "grep.garbled.s"} <= set(figures)
    for case in always:
        assert figures[f"grep.{case.name}.s"].peer == "re"
        assert figures[f"grep.{case.name}.cpu_s"].value > 0
        assert figures[f"grep.{case.name}.bytes"].value == bench.job(case).bytes
        assert figures[f"grep.{case.name}.rounds"].value < {"literal": 5, "garbled": 4}.get(case.name, 84)


PATTERNS = (
    "(of|the) ?[a-h]+",
    "(of|the).{0,3} (not|a|in)",
    "[a-m]. .{3} [a-m]...",
    "(which|that|from|the|a).{2,6} [a-z]",
)


def test_what_is_not_found_stops_the_bench() -> None:
    job = bench.job(replace(SMALL[0], pattern="(of|the) ?[a-h]+", lines=5))
    with pytest.raises(PpspeechError, match="wrong"):
        measure([replace(job, right=lambda told: not job.right(told))], repeats=1, meet=bench.MEETING)


def test_the_cases_are_of_the_sizes_that_they_are_named_after() -> None:
    for case in bench.CASES:
        shape = bench.shape_of(case)
        sought = bench.Sought.of(case.pattern, bench.LETTERS, case.tells, shape.way)
        assert (
            case.size // 2 < (sought.automaton.states if sought.automaton else len(sought.classes or ())) <= case.size
        )
    assert [bench.shape_of(case).symbols for case in bench.CASES] == [100_000, 100_000, 100_000, 800]
