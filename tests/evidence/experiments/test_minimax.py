"""The minimax experiments: their parts on made-up data, and whole ones where there is data and time."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ppspeech.audio.frames import Frames
from ppspeech.data import hold_out
from ppspeech.errors import CorpusError, ModelError
from ppspeech.evidence.experiments import minimax_audiomnist, minimax_emodb, minimax_genki, minimax_har
from ppspeech.evidence.experiments.minimax import Experiment, figures, run_trials
from ppspeech.evidence.experiments.minimax_audiomnist import segment_means, words_told
from ppspeech.evidence.experiments.minimax_clips import (
    Drawn,
    certified_figures,
    clip_figures,
    code_filters,
    run_clips,
)
from ppspeech.evidence.experiments.minimax_frames import (
    Speech,
    filtered,
    frame_figures,
    learn_frame_codes,
    learn_on_frames,
)
from ppspeech.filters import fit_without_means
from ppspeech.filters.learn import Learning, Model, opponent

HEADLINES = (
    "linear.task", "linear.private", "linear.private_worst", "no_filter.task", "no_filter.private", "best_baseline_gap",
)  # fmt: skip


def made_up(dimensions: tuple[int, ...] = (2,)) -> Experiment:
    """Three tasks told by two features and four people told by three others, among ten, all mixed."""
    generator = torch.Generator().manual_seed(0)
    task, people = torch.arange(480) % 3, torch.arange(480) // 3 % 4
    x = torch.randn(480, 10, generator=generator)
    x[:, :2] += 4 * torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[task]
    x[:, 2:5] += 3 * torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])[people]
    mix = torch.randn(10, 10, generator=generator)
    cells = 4 * task + people
    return Experiment(
        "made_up", "made up", x @ mix, people, task, lambda trial: hold_out(cells, torch.arange(480), 0.5, trial),
        dimensions, dimensions[-1],
    )  # fmt: skip


@given(st.integers(0, 50), st.floats(0.1, 0.9))
def test_a_split_divides_every_class_and_no_group(seed: int, share: float) -> None:
    groups = torch.arange(60) // 3
    classes = groups % 4
    is_test = hold_out(classes, groups, share, seed)
    for group in groups.unique():
        assert is_test[groups == group].unique().numel() == 1
    for value in classes.unique():
        assert 0 < int(is_test[classes == value].sum()) < int((classes == value).sum())


def test_a_class_of_one_group_cannot_be_divided() -> None:
    with pytest.raises(CorpusError, match="person 1 has 1 recording"):
        hold_out(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 2, 2]), 0.5, 0)


@pytest.mark.parametrize("against", ["logistic", "least squares"])
def test_people_are_lost_and_the_task_kept(against: Model, tmp_path: Path) -> None:
    experiment = replace(made_up(), learning=Learning(iterations=3, adversary=against, aggregator=against))
    made = {f.metric: f.value for f in figures(experiment, run_trials(experiment, 2), tmp_path, "nothing")}
    assert {f"minimax.made_up.{name}" for name in HEADLINES} <= set(made)
    assert made["minimax.made_up.no_filter.private"] > 0.8
    assert made["minimax.made_up.linear.task"] > 0.9
    assert made["minimax.made_up.linear.private"] < 0.35
    assert made["minimax.made_up.best_baseline_gap"] > 0
    assert made["minimax.made_up.linear.private_worst"] >= made["minimax.made_up.linear.private"]
    assert (tmp_path / "minimax_made_up.png").stat().st_size > 10_000


def test_codes_leave_less_to_ten_clips_than_what_they_replace(tmp_path: Path) -> None:
    """With attackers on samples that filters have not seen; noise keeps what it promises."""
    experiment = replace(made_up(), unseen=lambda trial: torch.arange(480) % 5 == trial)
    drawn = Drawn.of(experiment, 1)
    assert not bool((drawn.is_test & drawn.is_unseen).any())
    assert bool(drawn.is_unseen.any())
    found = run_clips(
        experiment,
        {**code_filters(3, (1,)), "means": lambda x, private, task, _: fit_without_means(x, private, task, 2)},
        (0, 1),
        ("plda", "codes"),
    )
    made = {f.metric.removeprefix("minimax.made_up."): f.value for f in clip_figures(experiment, found)}
    assert made["task"] > 0.85
    assert made["no_filter.worst_10"] > 0.95
    assert made["worst_1"] < 0.4
    assert made["worst_10"] < made["continuous.worst_10"] + 0.1
    assert made["means.worst_10"] < made["no_filter.worst_10"]
    noisy = {f.metric.removeprefix("minimax.made_up."): f.value for f in certified_figures(experiment, 0.5, 0)}
    assert 0.49 < noisy["certified_10"] <= 0.5
    assert 1 / 3 < noisy["certified_10.task"] < made["task"]


def test_guessing_costs_either_adversary_the_same() -> None:
    labels = torch.arange(40) % 4
    nothing = torch.zeros(40, 1, dtype=torch.float64)
    losses = []
    models: tuple[Model, ...] = ("logistic", "least squares")
    for model in models:
        task = opponent(labels, model, 1e-3)
        losses.append(task.importance * float(task.best_response(nothing).loss))
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_the_main_dimension_must_be_among_the_others() -> None:
    with pytest.raises(ModelError, match="main dimension"):
        replace(made_up(), main=7)


def test_segment_means_are_those_of_a_slow_loop() -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor([3, 8, 11, 20])
    x = torch.randn(4, 20, 2, generator=generator)
    x *= (torch.arange(20) < lengths.unsqueeze(-1)).unsqueeze(-1)
    found = segment_means(Frames(x, lengths), 4).view(4, 4, 2)
    for utterance, length in enumerate(lengths.tolist()):
        for part in range(4):
            first, end = length * part // 4, -(-length * (part + 1) // 4)
            torch.testing.assert_close(found[utterance, part], x[utterance, first:end].mean(0))


def speech() -> Speech:
    """Two words of two sounds each, said by three people who differ in another feature; a fourth is unknown."""
    generator = torch.Generator().manual_seed(0)
    people, words = torch.arange(160) % 4, torch.arange(160) // 4 % 2
    first = (torch.arange(12) < 6).expand(160, 12)
    sound = torch.where(first, words.unsqueeze(-1), 1 - words.unsqueeze(-1))
    x = torch.randn(160, 12, 5, generator=generator)
    x[..., 0] += 5 * sound
    x[..., 1] += 3 * people.unsqueeze(-1)
    lengths = torch.full((160,), 12)
    is_test = (torch.arange(160) // 8 % 2).bool() | (people == 3)
    return Speech(Frames(x, lengths), torch.where(people == 3, -1, people), words, sound, is_test)


def test_a_filter_on_frames_keeps_words_and_loses_people() -> None:
    said = speech()
    filter = learn_on_frames(said, 2, Learning(iterations=3), 500, seed=0)
    found = {
        f.metric: f.value
        for f in frame_figures("x", said, {"": filter, "codes": learn_frame_codes(said, 500, seed=0)}, "made up")
    }
    assert found["x.frames.no_filter.private"] > 0.9
    assert found["x.frames.private"] < 0.6
    assert found["x.frames.private_worst"] < found["x.frames.no_filter.private_worst"]
    assert found["x.frames.verification_eer"] > found["x.frames.no_filter.verification_eer"]
    assert found["x.frames.codes.worst_1"] < found["x.frames.no_filter.worst_1"]
    assert words_told(said, filter) > 0.9 * int(said.is_test.sum())


def test_frames_of_codes_are_speech_features_again() -> None:
    """At most one frame a target, the mean of the training frames that have the code; words are still told."""
    said = speech()
    coded = learn_frame_codes(said, 500, seed=0)
    out = coded(said.frames.features)
    assert out.shape == said.frames.features.shape
    assert len(out.flatten(0, 1).unique(dim=0)) == 2
    # Of who speaks nothing is left: the codes differ in the sound alone.
    assert (coded.book[0] - coded.book[1])[1].abs() < 1 < (coded.book[0] - coded.book[1])[0].abs()
    assert words_told(said, coded) > 0.9 * int(said.is_test.sum())


def test_filtered_padding_stays_0() -> None:
    said = speech()
    short = replace(said, frames=Frames(said.frames.features, torch.full((160,), 7)))
    shifted = nn.Linear(5, 2)
    train, _ = filtered(short, shifted)
    assert not train.features[:, 7:].any()
    assert train.features[:, :7].all()


@pytest.mark.slow
@pytest.mark.parametrize("module", [minimax_genki, minimax_har, minimax_emodb, minimax_audiomnist])
def test_quick_runs_lose_people(module: object, data: Path, tmp_path: Path) -> None:
    made = {f.metric.split(".", 2)[2]: f.value for f in module.run(True, tmp_path)}  # type: ignore[attr-defined]
    assert made["task"] > made["no_filter.task"] - 0.05
    assert made["linear.private"] < 0.65 * made["no_filter.private"]
    assert made["worst_1"] < 0.65 * made["no_filter.worst_1"]
