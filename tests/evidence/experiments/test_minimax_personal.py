"""The experiment on people who are made up, and on the real ones."""

from pathlib import Path

import pytest
import torch

from ppspeech.data.tables.table import Table
from ppspeech.evidence.experiments import minimax_personal
from ppspeech.evidence.experiments.minimax_personal import Found, figures, run_trial


def made_up(people: int = 6, recordings: int = 6, samples: int = 6) -> Table:
    """People whose inputs are shifted, in recordings of two activities."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.arange(people * recordings * samples)
    person, recording = rows // (recordings * samples), rows // samples
    activity = recording % 2
    shifts = torch.randn(people, 10, generator=generator)
    noise = torch.randn(len(rows), 10, generator=generator)
    features = noise + shifts[person] + 5 * activity.unsqueeze(-1) * torch.eye(10)[0]
    names = tuple(f"x{i}" for i in range(10))
    return Table("made_up", features, activity, names, ("rest", "walk"), person + 1, extra={"recording": recording})


def test_people_who_differ_become_alike_and_the_figures_are_there(tmp_path: Path) -> None:
    found = Found()
    for seed in range(2):
        run_trial(found, made_up(), seed, 3, ("logistic", "neighbors") if seed == 0 else (), features=3)
    told = {figure.metric.removeprefix("minimax.personal."): figure for figure in figures(found, 2, tmp_path)}
    wanted = {"task", "private", "private_worst", "no_filter.task", "no_filter.private", "best_baseline_gap"}
    assert wanted | {"common.task", "common.private", "common.private_worst", "affine.private_worst"} <= set(told)
    assert told["private"].value < told["no_filter.private"].value - 0.1
    assert told["private"].value < 0.65
    assert told["task"].value > 0.9
    assert told["best_baseline_gap"].value > -0.05
    assert (tmp_path / "minimax_personal.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_har_gives_what_the_seed_shows(data: Path, tmp_path: Path) -> None:
    told = {figure.metric: figure.value for figure in minimax_personal.run(False, tmp_path)}
    assert told["minimax.personal.private"] <= 0.56
    assert told["minimax.personal.task_gain"] >= 0
    assert told["minimax.personal.best_baseline_gap"] >= 0
