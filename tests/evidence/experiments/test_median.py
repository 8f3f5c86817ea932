"""The experiment of the median mechanism, on a small table."""

import pytest
import torch

from ppspeech.evidence.experiments.median import CELLS, Weights, compare, stream
from ppspeech.evidence.published.median import PublishedMedian
from ppspeech.privacy import MedianMechanism, Relation


def test_all_ways_answer_the_same_questions() -> None:
    """40,000 rows and 300 questions: the median within what it states but once in five million; the largest Laplace
    noise of 300 questions above twice its scale but with a probability of 1e-19.
    """
    cells = torch.repeat_interleave(torch.arange(CELLS), torch.tensor([24_000, 8_000, 6_000, 2_000]))
    found = compare(cells, 300, seed=0, grain=24, beta=1e-7)
    assert found["median"] <= found["stated"]
    assert found["median_answered"] == 300
    assert (
        found["median_hard"]
        <= MedianMechanism(epsilon=1.0, cells=CELLS, rows=40_000, grain=24, relation=Relation("record", "replace")).hard
    )
    assert found["laplace"] > 2 * 300 / 40_000
    assert found["histogram"] < 0.002
    assert 0 < found["weights_answered"] <= 300


def test_weights_lean_toward_answers() -> None:
    one = MedianMechanism(epsilon=1.0, cells=CELLS, rows=1000, grain=4, relation=Relation("record", "replace"))
    weights, about = Weights(one), stream(1, 0)[0].round()
    before = weights.guess(about)
    weights.learn(about, 1.0)
    assert before < weights.guess(about) < 1
    for _ in range(200):
        weights.learn(about, 0.0)
    assert weights.guess(about) < before / 2


def printed(rows: int) -> PublishedMedian:
    return PublishedMedian(alpha=1.0, accuracy=0.1, rows=rows, questions=2000, cells=CELLS, grain=10)


def test_the_printed_mechanism_answers_nothing_below_millions_of_rows() -> None:
    """Its first hard answer leaves no database: noise is ten times all rows, and kept is a fiftieth of a tenth."""
    one = printed(1_000)
    parts, asked = torch.tensor([0.7, 0.1, 0.1, 0.1]).double().numpy(), list(stream(40, 0))
    ended = sum(not one.run(parts, asked)[1] for _ in range(20))
    assert ended >= 15  # each ends with a probability of more than 0.99
    many = printed(100 * one.rows_needed())
    answers, alive = many.run(parts, asked)
    assert len(answers) >= 1
    assert alive or len(answers) < len(asked)
    assert one.rows_needed() > 10**7
    assert one.epsilon_at(one.rows) > 100
    assert one.epsilon_at(one.rows_needed()) == pytest.approx(20 / 720, rel=0.05)  # as the original has it


def test_it_is_not_booked() -> None:
    one = printed(1_000)
    assert one.guarantee.kind == "unproven"
    assert "not printed" in one.guarantee.caveat
    assert one.event.epsilon(1e-5) == float("inf")
    assert one.stated_grain > 2e8
