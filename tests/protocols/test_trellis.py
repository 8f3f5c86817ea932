"""A trellis on shares is the trellis on integers, bit for bit; its schedule is valid and as short as it can be."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ppspeech.crypto import Ring
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import ShareEngine
from ppspeech.crypto.transfer import Side
from ppspeech.errors import RangeError
from ppspeech.protocols.trellis import (
    Arc,
    Rule,
    Schedule,
    Set,
    Start,
    Trellis,
    TrellisRun,
    most_apart,
    plan_trellis,
    walk,
)
from tests.crypto.pairs import together


@st.composite
def graphs(draw: st.DrawFn) -> Trellis:
    """States and junctions, in any order, with arcs of 0 to 2 frames, weights, starts and fields."""
    vertices = draw(st.integers(1, 12))
    states = draw(st.integers(1, vertices))
    columns = [draw(st.integers(0, 4)) for _ in range(states)] + [None] * (vertices - states)
    fields = draw(st.sampled_from([(), (6,), (5, 3)]))
    weight = st.none() | st.integers(0, 5)
    rule = st.builds(Rule, st.sampled_from(Set), st.integers(0, 9))
    rules = st.just(()) | st.tuples(*[rule] * len(fields))
    arcs = []
    for target in range(vertices):
        for _ in range(draw(st.integers(0, 4))):
            source = draw(st.integers(0, vertices - 1))
            junction = columns[target] is None and source < target
            delay = draw(st.integers(0 if junction else 1, 2))
            arcs.append(Arc(source, target, delay, draw(weight), draw(rules)))
    begun = draw(st.lists(st.integers(0, states - 1), min_size=1, max_size=3, unique=True))
    starts = tuple(Start(vertex, draw(weight), draw(rules)) for vertex in begun)
    operation = draw(st.sampled_from(["max", "min"]))
    return Trellis(tuple(columns), tuple(arcs), starts, 14, fields, operation)


def on_shares(
    plan: Schedule, weights: np.ndarray, emissions: np.ndarray, portions: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and fields of all vertices, `(frames, vertices, lanes)`, opened."""
    ring, trellis, lanes = Ring(plan.trellis.bits), plan.trellis, emissions.shape[-1]
    own = uniform_residues(emissions.shape, ring.bits)
    shares = ring.reduce(emissions.astype(np.int64).view(np.uint64) - own), own

    def program(engine: ShareEngine, side: Side) -> tuple[np.ndarray, np.ndarray]:
        given = ring.reduce(weights.view(np.uint64)) if side is Side.FIRST else None
        run, at = TrellisRun(engine, plan, given, lanes), 0
        with engine.in_flights():
            for frames in portions:
                run.advance(shares[side][at : at + frames])
                at += frames
            run.finish()
        scores = np.zeros((at, len(trellis.columns), lanes), np.uint64)
        for frame, vertex in zip(*np.nonzero(plan.reached[:at, : len(trellis.columns)]), strict=True):
            scores[frame, vertex] = run.scores(frame, vertex)
        return scores, run.fields(list(range(len(trellis.columns)))) if trellis.fields else scores & np.uint64(0)

    (left, left_field), (right, right_field), _, _ = together(program)
    return ring.to_signed(ring.join(left, right)), left_field ^ right_field


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(), st.data())
def test_any_graph_on_shares_is_the_graph_on_integers(trellis: Trellis, data: st.DataObject) -> None:
    frames, lanes = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 3))
    heard = data.draw(st.integers(1, frames))
    cut = data.draw(st.integers(0, heard))
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    weights = generator.integers(-40, 40, trellis.weights)
    emissions = generator.integers(-90, 1, (heard, trellis.emissions, lanes))
    plan = plan_trellis(trellis, frames)
    expected = walk(plan, weights, emissions)
    scores, fields = on_shares(plan, weights, emissions, (cut, heard - cut))
    where = plan.reached[:heard, : len(trellis.columns), None]
    assert (scores == np.where(where, expected.scores[:heard, : scores.shape[1]], 0)).all()
    if trellis.fields:
        assert (np.where(where, fields, 0) == np.where(where, expected.fields[:heard, : scores.shape[1]], 0)).all()


@settings(max_examples=100, deadline=None)
@given(graphs(), st.integers(0, 99))
def test_integers_are_the_best_of_all_paths(trellis: Trellis, seed: int) -> None:
    """A dynamic program over arcs, frame by frame, with no schedule in it."""
    frames, generator = 7, np.random.default_rng(seed)
    weights = np.append(generator.integers(-40, 40, trellis.weights), 0)
    emissions = generator.integers(-90, 1, (frames, trellis.emissions))
    plan = plan_trellis(trellis, frames)
    found = walk(plan, weights[:-1], emissions[..., None]).scores[..., 0]
    best = max if trellis.operation == "max" else min
    order = [v for v in range(len(trellis.columns)) if v not in trellis.junction_order] + [*trellis.junction_order]
    scores: dict[tuple[int, int], int] = {}
    for frame in range(frames):
        for vertex in order:
            ways = [
                scores[frame - arc.delay, arc.source] + weights[-1 if arc.weight is None else arc.weight]
                for arc in trellis.arcs
                if arc.target == vertex and (frame - arc.delay, arc.source) in scores
            ]
            ways += [
                weights[-1 if start.weight is None else start.weight]
                for start in trellis.starts
                if start.vertex == vertex and frame == 0
            ]
            column = trellis.columns[vertex]
            if ways:
                scores[frame, vertex] = best(ways) + (0 if column is None else emissions[frame, column])
            assert plan.reached[frame, vertex] == bool(ways)
            assert not ways or found[frame, vertex] == scores[frame, vertex]


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_every_operand_is_there_before_it_is_needed(trellis: Trellis) -> None:
    plan = plan_trellis(trellis, 6)
    there = set(plan.starts.place.tolist())
    for slot in plan.slots:
        now = set()
        for batch in (slot.joined, *slot.passed):
            assert all(place in there for side in batch.sides for place in side.place.tolist())
            (now if batch is slot.joined else there).update(batch.place.tolist())
            if batch is slot.joined:
                there |= now
    frames, vertices = np.nonzero(plan.reached)
    assert there == set((frames * len(plan.nodes) + vertices).tolist())


@st.composite
def forward_graphs(draw: st.DrawFn) -> Trellis:
    """States that some paths stay in, in no circle; a junction at the end."""
    states, fields = draw(st.integers(1, 7)), draw(st.sampled_from([(), (6,)]))
    rule = st.just(()) | st.tuples(*[st.builds(Rule, st.sampled_from(Set), st.integers(0, 9))] * len(fields))
    weight = st.none() | st.integers(0, 5)
    arcs = [Arc(v, v) for v in range(states) if draw(st.integers(0, 3))]
    for target in range(1, states):
        sources = draw(st.lists(st.integers(0, target - 1), max_size=4))
        arcs += [Arc(source, target, draw(st.integers(1, 2)), draw(weight), draw(rule)) for source in sources]
    arcs += [Arc(v, states, 0, draw(weight)) for v in draw(st.lists(st.integers(0, states - 1), max_size=3))]
    begun = draw(st.lists(st.integers(0, states - 1), min_size=1, max_size=3, unique=True))
    starts = tuple(Start(vertex, draw(weight)) for vertex in begun)
    columns = (*(draw(st.integers(0, 3)) for _ in range(states)), None)
    return Trellis(columns, tuple(arcs), starts, 14, fields, draw(st.sampled_from(["max", "min"])))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(forward_graphs(), st.sampled_from([2, 4]), st.data())
def test_looking_ahead_finds_the_same(trellis: Trellis, ahead: int, data: st.DataObject) -> None:
    """Several frames a step, on integers and on shares, with fewer slots; scores are those of a frame a step."""
    frames = data.draw(st.integers(1, 13))
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    weights = generator.integers(-40, 40, trellis.weights)
    emissions = generator.integers(-90, 1, (frames, trellis.emissions, 2))
    plain, plan = plan_trellis(trellis, frames), plan_trellis(trellis, frames, ahead=ahead)
    vertices = len(trellis.columns)
    where = plain.reached[:, :vertices]
    assert (plan.reached[:, :vertices] == where).all()
    expected, found = walk(plain, weights, emissions), walk(plan, weights, emissions)
    assert (expected.scores[:, :vertices][where] == found.scores[:, :vertices][where]).all()
    cut = data.draw(st.integers(0, frames))
    scores, fields = on_shares(plan, weights, emissions, (cut, frames - cut))
    assert (scores[where] == found.scores[:, :vertices][where]).all()
    if trellis.fields:
        assert (fields[where] == found.fields[:, :vertices][where]).all()


def test_what_a_later_frame_is_read_for_comes_no_sooner_than_its_slot() -> None:
    """An arc over as many frames as a step takes, into a state where tokens set out, of which a junction tells."""
    trellis = Trellis((0, 0, None), (Arc(0, 1, 2), Arc(1, 2, 0)), (Start(0), Start(1)), 14)
    emissions = np.full((3, 1, 1), -3)
    plain, plan = (plan_trellis(trellis, 3, ahead=ahead) for ahead in (1, 2))
    expected, found = (walk(each, np.zeros(0, np.int64), emissions) for each in (plain, plan))
    assert plan.ready.min() >= 0
    where = plain.reached[:, :3]
    assert (expected.scores[:, :3][where] == found.scores[:, :3][where]).all()


def test_looking_ahead_takes_fewer_steps() -> None:
    """Five states in a row: a slot a frame, or one for every two, and some to fill and empty the row."""
    arcs = [Arc(v, v) for v in range(5)] + [Arc(v, v + 1) for v in range(4)]
    row = Trellis(tuple(range(5)), tuple(arcs), (Start(0),), 16)
    steps = [sum(len(s.joined) > 0 for s in plan_trellis(row, 98, ahead=ahead).slots) for ahead in (1, 2, 4)]
    assert steps[0] == 96
    assert steps[1] <= 57
    assert steps[2] <= 40


@pytest.mark.parametrize(
    ("arcs", "ahead", "why"),
    [
        ((Arc(0, 1), Arc(1, 0)), 2, "nothing leads back"),
        ((Arc(0, 0), Arc(0, 0), Arc(0, 1)), 2, "once"),
        ((Arc(0, 0, weight=0), Arc(0, 1)), 2, "nothing else"),
        ((Arc(0, 0, 2), Arc(0, 1)), 2, "nothing else"),
        ((Arc(0, 1),), 3, "power of two"),
    ],
)
def test_graphs_that_cannot_look_ahead_are_refused(arcs: tuple[Arc, ...], ahead: int, why: str) -> None:
    with pytest.raises(RangeError, match=why):
        plan_trellis(Trellis((0, 1), arcs, (Start(0),), 16), 5, ahead=ahead)


@pytest.mark.parametrize("ahead", [1, 2])
def test_tokens_that_are_added_up(ahead: int) -> None:
    """ln of the sum over all paths, to within an eighth of a nat an addition, beside floats."""
    states, frames, fraction, generator = 4, 12, 6, np.random.default_rng(5)
    arcs = [Arc(v, v) for v in range(states)] + [Arc(v, v + 1, weight=v) for v in range(states - 1)]
    trellis = Trellis(tuple(range(states)), tuple(arcs), (Start(0),), 20, (), "add", fraction)
    weights = generator.integers(-100, 0, states - 1)
    emissions = generator.integers(-300, 1, (frames, states, 2))
    scores, _ = on_shares(plan_trellis(trellis, frames, ahead=ahead), weights, emissions, (5, frames - 5))
    nats, moves = emissions / 2.0**fraction, weights / 2.0**fraction
    gamma = np.full((states, 2), -np.inf)
    gamma[0] = nats[0, 0]
    for row in nats[1:]:
        gamma[1:] = np.logaddexp(gamma[1:], gamma[:-1] + moves[:, None])
        gamma = gamma + row
    assert np.abs(scores[-1] / 2.0**fraction - gamma).max() < frames / 8
    best = walk(plan_trellis(trellis, frames, ahead=ahead), weights, emissions).scores[-1, :states] / 2.0**fraction
    assert (gamma - best).max() > 0.3, "here a sum is more than its greatest part"


def circle(*operands: int) -> Trellis:
    """States in a circle, each with so many arcs from the one before it."""
    count = len(operands)
    arcs = [Arc(place - 1 if place else count - 1, place) for place, n in enumerate(operands) for _ in range(n)]
    return Trellis(tuple(range(count)), tuple(arcs), (Start(0),), 16)


@pytest.mark.parametrize("operands", sorted(set(permutations([1, 1, 2, 5, 4]))))
def test_the_interval_is_what_the_slowest_circle_takes(operands: tuple[int, ...]) -> None:
    """A circle of five frames with ⌈log2 n⌉ operations at each state of n arcs."""
    depth = sum((n - 1).bit_length() for n in operands)
    assert plan_trellis(circle(*operands), 9).interval == -(-depth // len(operands))


def test_words_that_meet_take_two_slots_a_frame() -> None:
    """Ten words: five levels of comparisons a frame if it waited for each; frames overlap instead."""
    plan = plan_trellis(loop(10, 5), 40)
    assert (plan.interval, plan.operations) == (2, 59)
    assert sum(len(slot.joined) > 0 for slot in plan.slots) < 2.2 * 40


def loop(words: int, states: int, bits: int = 16) -> Trellis:
    """Words of so many states around one junction, tokens that know where they began and what they are."""
    hub = words * states
    arcs = [Arc(v, v) for v in range(hub)]
    arcs += [Arc(v - 1, v, weight=v) for v in range(hub) if v % states]
    enter = (Rule(Set.FRAME), Rule())
    arcs += [Arc(hub, w * states, weight=w * states, rules=enter) for w in range(words)]
    arcs += [Arc(w * states + states - 1, hub, 0, None, (Rule(), Rule(Set.CONSTANT, w))) for w in range(words)]
    starts = tuple(Start(w * states, w * states) for w in range(words))
    return Trellis((*range(hub), None), tuple(arcs), starts, bits, (10, 5))


@pytest.mark.parametrize(("apart", "holds"), [((1 << 9) - 1, True), (1 << 9, False)])
def test_scores_wrap_around_where_they_are_further_apart_than_half_the_ring(apart: int, holds: bool) -> None:
    trellis = Trellis((0, 1, None), (Arc(0, 2, 0), Arc(1, 2, 0)), (Start(0), Start(1)), 10)
    emissions = np.array([[[0], [-apart]]])
    scores, _ = on_shares(plan_trellis(trellis, 1), np.zeros(0, np.int64), emissions, (1,))
    assert (scores[0, 2, 0] == 0) == holds


def test_what_is_said_tells_sizes_alone() -> None:
    plan = plan_trellis(loop(3, 2), 6)
    shapes = []
    for seed in range(2):
        generator = np.random.default_rng(seed)
        weights = generator.integers(-9, 9, 6).view(np.uint64) & np.uint64(0xFFFF)
        emissions = generator.integers(0, 1 << 16, (6, 6, 1)).astype(np.uint64)

        def program(engine: ShareEngine, side: Side, own=weights, heard=emissions) -> None:  # type: ignore[no-untyped-def]
            run = TrellisRun(engine, plan, own if side is Side.FIRST else None)
            with engine.in_flights():
                run.advance(heard)

        _, _, _, online = together(program)
        shapes.append([(entry.direction, entry.kind, entry.size) for entry in online.entries])
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"columns": ()}, "vertices"),
        ({"arcs": (Arc(0, 5),)}, "not an arc"),
        ({"arcs": (Arc(0, 1, 0),)}, "a state takes a frame"),
        ({"arcs": (Arc(2, 3, 0), Arc(3, 2, 0))}, "circle"),
        ({"arcs": (Arc(0, 1, rules=(Rule(), Rule())),)}, "a rule for each"),
        ({"starts": (Start(0), Start(0))}, "different vertices"),
        ({"starts": ()}, "a start"),
        ({"bits": 61}, "2 to 60 bits"),
        ({"bits": 40, "fields": (30,)}, "leave 23 for fields"),
        ({"operation": "sum"}, "max, min or add"),
        ({"operation": "add"}, "carry no fields"),
        ({"operation": "add", "fields": (), "fraction": 16}, "a point within"),
    ],
)
def test_graphs_that_are_none_are_refused(change: dict[str, object], why: str) -> None:
    good = {"columns": (0, 1, None, None), "arcs": (Arc(0, 1),), "starts": (Start(0),), "bits": 16, "fields": (4,)}
    Trellis(**good)  # type: ignore[arg-type]
    with pytest.raises(RangeError, match=why):
        Trellis(**good | change)  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 999))
def test_no_emission_brings_scores_further_apart_than_proved(trellis: Trellis, seed: int) -> None:
    """Emissions of all kinds within their depths, most of them at the ends: many lanes at once."""
    frames, generator = 12, np.random.default_rng(seed)
    weights = generator.integers(-30, 30, trellis.weights)
    depths = generator.integers(0, 200, trellis.emissions)
    share = generator.choice([0.0, 0.5, 1.0], (frames, trellis.emissions, 60))
    share[..., 40:] = generator.random((frames, trellis.emissions, 20))
    emissions = -np.rint(share * depths[:, None]).astype(np.int64)
    if trellis.operation == "min":
        emissions = -emissions
    bound = most_apart(trellis, weights.astype(float), depths.astype(float), frames)
    assert walk(plan_trellis(trellis, frames), weights, emissions).apart <= bound


def test_large_graphs_have_a_bound_through_one_junction(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no less than the exact one, little more, and holds."""
    for words, states, seed in ((2, 2, 0), (5, 3, 1), (9, 2, 2)):
        generator = np.random.default_rng(seed)
        trellis = loop(words, states)
        weights, depths = generator.integers(-9, 9, trellis.weights), generator.integers(50, 200, words * states)
        exact = most_apart(trellis, weights.astype(float), depths.astype(float), 40)
        monkeypatch.setattr("ppspeech.protocols.trellis.range.ROWS", 0)
        rough = most_apart(trellis, weights.astype(float), depths.astype(float), 40)
        monkeypatch.undo()
        assert exact <= rough <= 2 * exact
        ends = -depths[:, None] * generator.integers(0, 2, (40, words * states, 300))
        assert walk(plan_trellis(trellis, 40), weights, ends).apart <= rough


def test_in_a_loop_the_bound_does_not_grow_with_what_is_said() -> None:
    """Two words of two states: a token of one word can be in any state three frames later."""
    trellis = loop(2, 2)
    depths, weights = np.full(4, 100.0), np.zeros(trellis.weights)
    bounds = [most_apart(trellis, weights, depths, frames) for frames in (1, 2, 3, 4, 20, 1000)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == bounds[-2] == 300
    plan = plan_trellis(trellis, 20)
    worst = 0
    for seed in range(40):
        ends = np.random.default_rng(seed).integers(0, 2, (20, 4, 200)) * -100
        worst = max(worst, walk(plan, weights.astype(np.int64), ends).apart)
    assert worst == 300  # and is reached


def test_without_a_way_back_the_bound_is_that_of_all_frames() -> None:
    chain = Trellis((0, 1), (Arc(0, 0), Arc(0, 1), Arc(1, 1)), (Start(0),), 16)
    depths = np.array([100.0, 100.0])
    assert most_apart(chain, np.zeros(0), depths, 30) >= 2900
