"""A network that two parties train: as plain descent, to a stated error; nothing but the trained network to either."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.packing import packed_bytes
from ppspeech.crypto.shares import Shared
from ppspeech.errors import RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import NOBODY, Party
from ppspeech.protocols.networks import training
from ppspeech.protocols.networks.training import TrainingTerms, descend, predict, step_cost, take_step
from tests.crypto.pairs import together
from tests.protocols.test_networks import MEETING

TERMS: dict[str, Any] = {"rows": 16, "features": 3, "classes": 2, "hidden": 3, "steps": 6, "rate": 1.0}
ERROR = 0.01
"""Of a weight after a few steps: what Limit 3.9 in docs/theory/together.md states."""


def made_task(terms: TrainingTerms, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(terms.rows, terms.features))
    return table, (table[:, 0] + table[:, 1] > 0).astype(np.int64) % terms.classes


def train(plain: dict[str, Any], table: Any, labels: Any) -> tuple[dict[str, Any], Transcript]:
    """What both got, which must be the same, and the transcript of who has the features."""
    ends = memory_pair()
    record = Transcript(ends[0], keep_payloads=True)
    one, other = run_together(
        lambda _: training.bring(Party("features", {"labels": record}), np.asarray(table).tolist(), **plain),
        lambda c: training.teach(Party("labels", {"features": c}), np.asarray(labels).tolist(), **plain),
        ends,
    )
    assert one == other
    return one, record


@pytest.mark.parametrize(
    "changed", [{}, {"classes": 3, "hidden": 1, "rows": 5}, {"cap": 1.1, "rate": 8.0}, {"radius": 0.5}], ids=str
)
def test_training_is_that_of_plain_descent(changed: dict[str, Any]) -> None:
    plain = TERMS | changed
    terms = TrainingTerms(**plain)
    table, labels = made_task(terms)
    found, _ = train(plain, table, labels)
    for share, clear in zip((found["hidden"], found["outputs"]), descend(terms, table, labels), strict=True):
        assert np.abs(np.array(share) - clear).max() < ERROR
    assert np.abs(np.array(found["hidden"])).max() <= terms.cap + 2**-10


def test_it_learns() -> None:
    plain = TERMS | {"rows": 24, "steps": 25, "rate": 0.5, "hidden": 4, "seed": 1}
    terms = TrainingTerms(**plain)
    table, labels = made_task(terms)
    found, _ = train(plain, table, labels)
    weights = np.array(found["hidden"]), np.array(found["outputs"])
    assert (predict(weights, terms.clipped(table)) == labels).mean() >= 0.9
    assert (predict(terms.start(), terms.clipped(table)) == labels).mean() < 0.9


def test_plain_descent_follows_the_gradient_of_hubers_loss() -> None:
    """Against automatic differentiation."""
    import torch

    terms = TrainingTerms(**TERMS | {"steps": 1, "cap": 60.0})
    table, labels = made_task(terms)
    first, second = (torch.tensor(each, requires_grad=True) for each in terms.start())
    x = torch.tensor(np.concatenate((terms.clipped(table), np.ones((terms.rows, 1))), axis=1))
    hidden = torch.cat(((x @ first).relu(), torch.ones(terms.rows, 1, dtype=torch.float64)), 1)
    hot = torch.nn.functional.one_hot(torch.tensor(labels), terms.classes).double()
    loss = torch.nn.functional.huber_loss(hidden @ second, hot, reduction="sum", delta=1.0) / terms.rows
    loss.backward()
    for before, after in zip((first, second), descend(terms, table, labels), strict=True):
        assert before.grad is not None
        assert np.allclose(after, (before - terms.rate * before.grad).detach().numpy())


def test_messages_are_alike_for_all_data_and_cost_what_is_recorded() -> None:
    terms = TrainingTerms(**TERMS)
    shapes = []
    for seed in (0, 1):
        table, labels = made_task(terms, seed)
        shapes.append(train(TERMS, 9 * seed * table, labels)[1].shape())
    assert shapes[0] == shapes[1]
    total = sum(size for _, kind, size in shapes[0] if kind not in MEETING)
    opened = [2 * packed_bytes(each.size, terms.bits) for each in terms.start()]
    assert total == terms.steps * step_cost(terms).total_bytes + sum(opened)


def test_shares_of_trained_weights_are_uniform() -> None:
    """After a step each party's share says nothing of the weights, which are the same in every run."""
    terms = TrainingTerms(**TERMS | {"rows": 4, "features": 2, "hidden": 2})
    table, labels = made_task(terms)
    constant = np.full((terms.rows, 1), 1 << training.FEATURE_BITS, np.int64)
    rows = np.rint(terms.clipped(table) * 2**training.FEATURE_BITS).astype(np.int64)
    inputs = (
        (np.eye(terms.classes, dtype=np.uint64)[labels] << np.uint64(training.VALUE_BITS)),
        np.concatenate((rows, constant), axis=1).view(np.uint64),
    )
    start = [np.rint(each * 2**training.WEIGHT_BITS).astype(np.int64).view(np.uint64) for each in terms.start()]

    def step(engine: Any, party: int) -> np.ndarray:
        own = [each if engine.is_first else np.zeros_like(each) for each in start]
        found = take_step(terms, inputs[party], *(Shared(engine, each, terms.ring) for each in own))
        return np.concatenate([each.residues.ravel() for each in found])

    runs = [together(step)[:2] for _ in range(12)]
    for side in (0, 1):
        top = np.concatenate([run[side] for run in runs]) >> np.uint64(terms.bits - 3)
        assert stats.chisquare(np.bincount(top.astype(np.int64), minlength=8)).pvalue > 1e-8
        assert len({run[side].tobytes() for run in runs}) == len(runs)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rows": 0}, "rows must lie"),
        ({"classes": 1}, "two classes or more"),
        ({"steps": True}, "steps must lie"),
        ({"rate": 0.0}, "the rate must lie"),
        ({"rate": 1e-6}, "raise it"),
        ({"cap": 0.5}, "the cap must lie"),
        ({"radius": float("nan")}, "the radius must lie"),
        ({"seed": -1}, "a seed is"),
        ({"rows": 4096, "features": 512, "hidden": 256}, "fewer rows"),
        ({"rows": 4000, "features": 100, "classes": 5, "hidden": 5, "cap": 64.0, "radius": 64.0, "rate": 64.0}, "bits"),
    ],
    ids=str,
)
def test_terms_that_nobody_agrees_to_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(RangeError, match=said):
        TrainingTerms(**TERMS | changed)


def test_data_of_other_sizes_are_refused_before_anything_is_sent() -> None:
    brings, teaches = Party("features", {"labels": NOBODY}), Party("labels", {"features": NOBODY})
    for table in ([[0.0] * 3] * 15, [[0.0] * 2] * 16, [[float("nan")] * 3] * 16):
        with pytest.raises(RangeError, match="finite numbers"):
            training.bring(brings, table, **TERMS)
    for labels, said in (([0] * 15, "16 labels"), ([0.5] * 16, "whole numbers"), ([2] * 16, "lie in 0..1")):
        with pytest.raises(RangeError, match=said):
            training.teach(teaches, labels, **TERMS)
