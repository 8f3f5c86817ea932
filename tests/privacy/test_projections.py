"""Releases by random projection: the exact account, its table, the law of what is released, and the doors."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from ppspeech.errors import PrivacyError
from ppspeech.evidence.published.projections import (
    PublishedGraphCuts,
    PublishedWishart,
    covariance_floor,
    graph_floor,
    sheffet_floor,
)
from ppspeech.privacy import Relation, UnsupportedAnalysisError
from ppspeech.privacy.mechanisms import GraphCuts, JohnsonLindenstrauss, ProjectionEvent, Wishart, projection_ratio
from ppspeech.privacy.mechanisms.wishart import WishartEvent, wishart_ratio

RECORD, SPEAKER = Relation("record", "add_remove"), Relation("speaker", "add_remove")
REPLACED = Relation("record", "replace")
DELTA = 1e-6
Q = projection_ratio(1.0, DELTA, 100, False, RECORD)

TABLE = [
    # rows, epsilon, w^2, Sheffet's, the survey's, w of graphs, the survey's
    (10, 1.0, 15.42, 397, 1.3e7, 30.8, 1193),
    (100, 1.0, 35.54, 705, 1.7e8, 71.08, 4268),
    (100, 0.1, 301.4, 7054, 1.7e10, 602.8, 42678),
]


@pytest.mark.parametrize(("rows", "epsilon", "exact", "sheffet", "survey", "graph", "printed"), TABLE)
def test_the_table_of_floors(
    rows: int, epsilon: float, exact: float, sheffet: float, survey: float, graph: float, printed: float
) -> None:
    q = projection_ratio(epsilon, DELTA, rows, False, RECORD)
    assert 1 / q == pytest.approx(exact, rel=5e-4)
    assert 2 / q == pytest.approx(graph, rel=2e-3)
    assert sheffet_floor(rows, epsilon, DELTA) == pytest.approx(sheffet, rel=1e-3)
    assert covariance_floor(rows, epsilon, DELTA) == pytest.approx(survey, rel=0.04)
    assert graph_floor(rows, epsilon, DELTA) == pytest.approx(printed, rel=1e-3)
    assert graph_floor(rows, epsilon, DELTA) > 30 * 2 / q


@pytest.mark.parametrize("rows", [5, 30])
def test_delta_is_that_of_the_two_laws_by_quadrature(rows: int) -> None:
    event = ProjectionEvent(rows, 0.4, False, RECORD)
    x = np.linspace(0, 800, 400_001)[1:]
    logs = stats.chi2.logpdf(x, rows), stats.chi2.logpdf(x / 1.4, rows) - math.log(1.4)
    pairs = [logs, logs[::-1]]
    for epsilon in (0.0, 0.3, 1.0):
        both = [np.maximum(np.exp(p) - math.exp(epsilon) * np.exp(q), 0).sum() * x[0] for p, q in pairs]
        assert event.delta(epsilon) == pytest.approx(max(both), rel=1e-3)
    for order in (1.5, 3.0):
        both = [np.log(np.exp(order * p + (1 - order) * q).sum() * x[0]) / (order - 1) for p, q in pairs]
        assert event.rdp(order) == pytest.approx(max(both), rel=2e-3)
    assert event.rdp(4.0) == math.inf


@pytest.mark.parametrize("order", [2.0, 8.0, 40.0])
def test_several_rows_of_a_unit_are_never_worse_than_what_is_booked(order: float) -> None:
    """However the squares of a unit are spread over directions, its divergences add to no more than the event's."""
    whole, generator = ProjectionEvent(10, 0.9, True, SPEAKER), np.random.default_rng(0)
    for count in (1, 2, 5, 40):
        parts = 0.9 * generator.dirichlet(np.ones(count) * 0.7)
        parts = parts[parts > 1e-12]
        one = [ProjectionEvent(10, float(q), False, SPEAKER) for q in parts]
        assert sum(e._rdp_leaves(order) for e in one) <= whole._rdp_leaves(order) * (1 + 1e-9)
        assert sum(e._rdp_comes(order) for e in one) <= whole._rdp_comes(order) * (1 + 1e-9)
    assert whole.delta(3.0) >= ProjectionEvent(10, 0.9, False, SPEAKER).delta(3.0)


def test_an_exchange_costs_more_than_one_step_and_less_than_two_of_the_same_epsilon() -> None:
    one, both = ProjectionEvent(20, 0.05, False, RECORD), ProjectionEvent(20, 0.05, False, REPLACED)
    single = one.epsilon(1e-6)
    assert single < both.epsilon(1e-6) < 2.1 * single
    assert one.rdp(3.0) < both.rdp(3.0) < math.inf
    with pytest.raises(UnsupportedAnalysisError):
        both.pld()


def sketcher(unit: Relation = RECORD, **more: Any) -> JohnsonLindenstrauss:
    given: dict[str, Any] = {"rows": 400, "floor": 2.0, "radius": 1.0, "features": 3, "delta": 1e-6} | more
    return JohnsonLindenstrauss(relation=unit, **given)


def test_a_sketch_has_the_law_of_the_rows_and_the_floor() -> None:
    rows = torch.tensor([[30.0, 40.0, 0.0], [0.0, 0.5, 0.0]])
    chosen = sketcher(rows=4000)
    sketch = chosen.release(rows).value
    assert sketch.shape == (4000, 3)
    for direction, variance in ((0, 2 + 0.36), (1, 2 + 0.64 + 0.25), (2, 2.0)):
        assert stats.kstest(sketch[:, direction].numpy(), stats.norm(scale=math.sqrt(variance)).cdf).pvalue > 1e-6
    clipped = torch.tensor([[0.6, 0.8, 0.0], [0.0, 0.5, 0.0]], dtype=torch.double)
    assert torch.allclose(chosen.moments(sketch), clipped.mT @ clipped, atol=6 * 3 * math.sqrt(2 / 4000))
    along = chosen.variance_along(sketch, torch.eye(3))
    assert torch.allclose(along, chosen.moments(sketch).diagonal())


def test_two_sketches_are_independent() -> None:
    """A projection that is used twice shows the difference of two data sets without noise."""
    chosen, nobody = sketcher(rows=2000), torch.zeros(0, 3)
    first, second = (chosen.release(nobody).value / math.sqrt(2.0) for _ in range(2))
    assert abs(float((first * second).mean())) < 6 / math.sqrt(6000)
    graph = GraphCuts(nodes=3, rows=2000, floor=2.0, delta=1e-6)
    first, second = (graph.release(torch.ones(3, 3)).value for _ in range(2))
    assert abs(float((first * second).mean())) < 6 * float(first.var()) / math.sqrt(2000)


def test_centered_rows_are_about_their_mean_on_four_times_the_floor() -> None:
    terms: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "rows": 100, "radius": 1.0, "features": 2}
    plain, centered = (JohnsonLindenstrauss.calibrated(**terms, relation=RECORD, centered=c) for c in (False, True))
    assert centered.floor == pytest.approx(4 * plain.floor)
    assert centered.event == plain.event
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    scatter = centered.scatter(rows)
    assert float(scatter[0, 0]) == pytest.approx(8 / 3)
    without = centered.scatter(rows[:2])
    assert float((scatter - without).diagonal().sum()) <= 4.0


@pytest.mark.parametrize("people", [1, 4, 300])
def test_no_row_moves_a_centered_scatter_by_more_than_twice_the_radius(people: int) -> None:
    chosen = sketcher(centered=True, features=2)
    crowd = torch.tensor([[1.0, 0.0]]).expand(people, 2)
    one = torch.tensor([[-1.0, 0.0]])
    move = chosen.scatter(torch.cat([crowd, one])) - chosen.scatter(crowd)
    assert float(torch.linalg.eigvalsh(move)[-1]) <= chosen.event.ratio * chosen.floor


def test_all_rows_of_a_speaker_together_are_bounded() -> None:
    rows = torch.cat([torch.tensor([[3.0, 0.0, 0.0]]).expand(50, 3), torch.tensor([[0.0, 0.5, 0.0]])])
    ids = torch.tensor([7] * 50 + [9])
    scatter = sketcher(SPEAKER).scatter(rows, ids)
    assert float(scatter[0, 0]) == pytest.approx(1.0)
    assert float(scatter[1, 1]) == pytest.approx(0.25)
    assert sketcher(SPEAKER).event.several


def test_cuts_are_those_of_the_graph() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = (torch.rand(60, 60, generator=generator) < 0.4).double().triu(1)
    weights = weights + weights.mT
    members = torch.zeros(2, 60, dtype=torch.bool)
    members[0, :30] = members[1, :5] = True
    inside = members.double()
    truth = ((inside @ weights) * (1 - inside)).sum(1)
    chosen = GraphCuts.calibrated(epsilon=1.0, delta=DELTA, nodes=60, rows=100)
    assert chosen.event.ratio == pytest.approx(Q, rel=1e-6)
    drawn = torch.stack([chosen.cuts(chosen.release(weights).value, members) for _ in range(300)])
    size = inside.sum(1)
    spread = math.sqrt(2 / 100) * (truth + chosen.floor * size * (60 - size) / (60 - chosen.floor))
    assert bool(((drawn.mean(0) - truth).abs() < 6 * spread / math.sqrt(300)).all())
    assert bool(((drawn.std(0) / spread - 1).abs() < 6 / math.sqrt(600)).all())


def test_the_published_factor_is_wrong_by_half_the_rows() -> None:
    published = PublishedGraphCuts(epsilon=1.0, delta=1e-6, nodes=1200, rows=10)
    assert not published.guarantee.proven
    weights = torch.zeros(1200, 1200)
    members = torch.zeros(1, 1200, dtype=torch.bool)
    members[0, :600] = True
    sketch = published.release(weights).value
    right = published.cuts(sketch, members, factor=1 / 10)
    mixed = published.floor / 1200 * 600 * 600
    printed = published.cuts(sketch, members)
    share = 1 - published.floor / 1200
    assert float(printed * share + mixed) == pytest.approx(5 * float(right * share + mixed))
    with pytest.raises(PrivacyError, match="n > w"):
        PublishedGraphCuts(epsilon=1.0, delta=1e-6, nodes=1100, rows=10)


def test_wishart_noise_keeps_moments_positive_and_unbiased() -> None:
    chosen = Wishart.calibrated(epsilon=1.0, delta=DELTA, made_up=200, radius=1.0, features=3, relation=RECORD)
    assert chosen.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    rows = torch.eye(3, dtype=torch.double).repeat(400, 1)
    told = torch.stack([chosen.release(rows).value for _ in range(200)])
    assert bool((torch.linalg.eigvalsh(told) > 0).all())
    spread = math.sqrt(2 * 200) * chosen.scale**2 / math.sqrt(200)
    assert torch.allclose(chosen.moments(told.mean(0)), 400 * torch.eye(3, dtype=torch.double), atol=6 * spread)


def test_many_made_up_rows_come_near_the_gaussian() -> None:
    """sqrt(2 m) / s goes to sigma = 4.2247, and never below."""
    found = [math.sqrt(2 * m) / wishart_ratio(1.0, DELTA, m, RECORD) for m in (100, 10_000)]
    assert found[0] > found[1] > 4.2247
    assert found[1] < 4.45


def test_the_published_wishart_noise_rules_rows_out() -> None:
    one = PublishedWishart(epsilon=1.0, features=3)
    row = torch.eye(1, 3, dtype=torch.double)
    told = torch.stack([one.release(torch.zeros(1, 3)).value - row.mT @ row for _ in range(2000)])
    share = float((torch.linalg.eigvalsh(told)[:, 0] < 0).double().mean())
    assert share == pytest.approx(one.ruled_out, abs=6 * math.sqrt(0.25 / 2000))
    (report,) = PublishedWishart.audit(200)
    assert report.verdict == "violated"
    assert "no guarantee (broken" in str(one.guarantee)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sketcher(floor=0.0), "floor"),
        (lambda: sketcher(rows=0), "rows"),
        (lambda: sketcher(SPEAKER, centered=True), "public center"),
        (lambda: sketcher().release(torch.zeros(2, 4)), "3 features"),
        (lambda: sketcher().release(torch.full((2, 3), torch.nan)), "NaN"),
        (lambda: sketcher(SPEAKER).release(torch.zeros(2, 3)), "which speaker it is of"),
        (lambda: GraphCuts(nodes=10, rows=5, floor=10.0, delta=1e-6), "w < n"),
        (lambda: GraphCuts(nodes=10, rows=5, floor=1.0, delta=1e-6, relation=SPEAKER), "one pair of nodes"),
        (lambda: GraphCuts(nodes=3, rows=5, floor=1.0, delta=1e-6).release(torch.zeros(2, 2)), "3 nodes"),
        (lambda: GraphCuts(nodes=2, rows=5, floor=1.0, delta=1e-6).release(torch.eye(2)[[1, 1]]), "symmetric"),
        (lambda: WishartEvent(2, 1.0, RECORD), "degrees"),
        (lambda: WishartEvent(9, 1.0, REPLACED), "not replace"),
        (lambda: Wishart(made_up=3, scale=1.0, radius=1.0, features=3, delta=1e-6, relation=RECORD), "made_up"),
        (lambda: Wishart(made_up=9, scale=1.0, radius=1.0, features=3, delta=1e-6, relation=SPEAKER), "not a speaker"),
        (lambda: ProjectionEvent(5, 0.1, None, RECORD), "several"),
    ],
)  # fmt: skip
def test_doors(make: Any, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        make()
