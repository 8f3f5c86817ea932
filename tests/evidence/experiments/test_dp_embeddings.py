"""Heads with privacy on made-up vectors: what is learned, what is protected, and what has collapsed."""

import pytest
import torch

from ppspeech.evidence.experiments import dp_embeddings
from ppspeech.evidence.experiments.dp_embeddings import FOLDS, Task, answers, by_means, figures_of


@pytest.fixture(scope="module")
def task() -> Task:
    """Twenty people, three classes that lie apart, and public vectors with the same classes."""
    generator = torch.Generator().manual_seed(0)
    classes, people = torch.arange(600) % 3, torch.arange(20).repeat_interleave(30)
    centers = torch.randn(3, 12, generator=generator)
    vectors = 2 * centers[classes] + 0.5 * torch.randn(600, 12, generator=generator)
    scale = 2 * torch.randn(80, 12, generator=generator)
    units = ("utterance", "speaker")
    public = vectors[:30] + 0.1, classes[:30]
    return Task("made", vectors, classes, people, people % FOLDS, units, scale, public)  # type: ignore[arg-type]


def test_every_case_is_there_and_learns_what_its_noise_leaves(task: Task) -> None:
    figures = {each.metric.removeprefix("dp_embeddings.made."): each for each in figures_of(task, 1)}
    cases = {"public", "nonprivate", "utterance.eps1", "utterance.eps4", "speaker.eps1", "speaker.eps4"}
    cases |= {"utterance.means.eps1", "utterance.means.eps4"}
    assert set(figures) == {f"{case}.{what}" for case in cases for what in ("balanced_accuracy", "collapsed")}
    for case in ("public", "nonprivate", "utterance.eps4", "utterance.means.eps4"):
        assert figures[f"{case}.balanced_accuracy"].value > 0.9
        assert figures[f"{case}.collapsed"].value == 0
    assert "one speaker, add_remove" in str(figures["speaker.eps4.balanced_accuracy"].note)


def test_one_answer_has_collapsed_and_is_said_to_have(task: Task) -> None:
    nobody = Task(task.name, task.vectors, task.classes, task.people, task.folds, (), task.scale)
    heard = answers(nobody, None, None, public=True)
    accuracy, collapsed = dp_embeddings._figures(nobody, "public", heard[None], "untrained")
    assert accuracy.value == pytest.approx(1 / 3)
    assert "; collapsed" in str(accuracy.note)
    assert collapsed.value == 1


def test_whoever_is_tested_was_not_learned_from(task: Task) -> None:
    """Classes of the tested fold are wrong: who learned them would answer them."""
    wrong = torch.where(task.folds == 0, (task.classes + 1) % 3, task.classes)
    other = Task("wrong", task.vectors, wrong, task.people, task.folds, ("utterance",), task.scale)
    tested = task.folds == 0
    for heard in (answers(other, None, None), by_means(other, 1e3, "utterance")):
        assert float((heard[tested] == task.classes[tested]).double().mean()) > 0.9


def test_a_person_who_is_protected_gives_one_vector(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    grouped = Task("groups", task.vectors, task.people % 2, task.people, task.folds, ("speaker",), task.scale)
    seen: list[int] = []
    said_of = dp_embeddings.said_of
    monkeypatch.setattr(dp_embeddings, "said_of", lambda bank, x, *rest: seen.append(len(x)) or said_of(bank, x, *rest))
    by_means(grouped, 4.0, "speaker")
    assert seen == FOLDS * [16]
    assert dp_embeddings._one_class_each(grouped)
    assert not dp_embeddings._one_class_each(task)


def test_accuracy_is_balanced(task: Task) -> None:
    rare = Task("rare", task.vectors, (task.classes == 2).long(), task.people, task.folds, (), task.scale)
    common = torch.zeros_like(task.classes)
    assert dp_embeddings._figures(rare, "all", common[None], "")[0].value == pytest.approx(0.5)
