"""A garbled trellis is the trellis on integers, bit for bit, and its path the best one; costs are as said before."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Ring
from ppspeech.crypto.garbled import Garbler
from ppspeech.crypto.garbled.half_gates import run_circuit, table_buffer
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.transfer import BlockHash, PairSetup, Side
from ppspeech.errors import CheatError, RangeError
from ppspeech.network import Transcript, run_together
from ppspeech.protocols.trellis import Arc, Rule, Schedule, Set, Start, Trellis, plan_trellis, walk
from ppspeech.protocols.trellis.circuit import TrellisCircuit, plan_circuit
from ppspeech.protocols.trellis.garbled import (
    PathRead,
    StreamEvaluation,
    StreamGarbling,
    WholeEvaluation,
    WholeGarbling,
    _Walk,
    stream_cost,
    whole_cost,
)
from tests.crypto.garbled_pairs import bits_of, fresh_delta, number_of, run_alone
from tests.crypto.pairs import lasting_setup

from .test_trellis import graphs, loop

Parties = tuple[Callable[[Channel, PairSetup], Any], Callable[[Channel, PairSetup], Any]]


def run_parties(first: Callable[..., Any], second: Callable[..., Any]) -> tuple[Any, Transcript]:
    """What the client returned, and its transcript."""
    setup, records = lasting_setup(), {}

    def party(channel: Channel, side: Side) -> Any:
        with setup[side].session(channel):
            records[side] = Transcript(channel, keep_payloads=True)
            return (first, second)[side](records[side], setup[side])

    _, result = run_together(lambda c: party(c, Side.FIRST), lambda c: party(c, Side.SECOND))
    return result, records[Side.SECOND]


def shares_of(emissions: np.ndarray, frames: int, bits: int) -> tuple[Residues, Residues]:
    """Of both parties, zeros beyond the frames that are there."""
    padded = np.zeros((frames, emissions.shape[1]), np.int64)
    padded[: len(emissions)] = emissions
    own = uniform_residues(padded.shape, bits)
    return Ring(bits).reduce(padded.view(np.uint64) - own), own


def whole(circuit: TrellisCircuit, weights: np.ndarray, emissions: np.ndarray) -> tuple[PathRead, Transcript]:
    theirs, mine = shares_of(emissions, circuit.plan.frames, circuit.bits)
    residues = Ring(circuit.bits).reduce(weights.view(np.uint64))
    return run_parties(
        lambda c, s: WholeGarbling(c, s, circuit, residues, theirs).answer(),
        lambda c, s: WholeEvaluation(c, s, circuit).finish(mine, len(emissions)),
    )


def streamed(
    circuit: TrellisCircuit, weights: np.ndarray, emissions: np.ndarray, chunk: int
) -> tuple[PathRead, Transcript]:
    theirs, mine = shares_of(emissions, circuit.plan.frames, circuit.bits)
    residues, count = Ring(circuit.bits).reduce(weights.view(np.uint64)), len(emissions)

    def garble(channel: Channel, setup: PairSetup) -> None:
        garbling = StreamGarbling(channel, setup, circuit, residues)
        for at in range(0, count, chunk):
            garbling.send(theirs[at : min(at + chunk, count)])
        garbling.finish()

    def evaluate(channel: Channel, setup: PairSetup) -> PathRead:
        evaluation = StreamEvaluation(channel, setup, circuit, mine)
        for at in range(0, count, chunk):
            evaluation.advance(min(chunk, count - at))
        return evaluation.finish()

    return run_parties(garble, evaluate)


class Alone:
    """Either party of a circuit without a channel, for looking at scores inside."""

    def __init__(self, delta: Residues | None, hasher: Any, tables: list[Residues]) -> None:
        self._delta, self._hasher, self._tables, self._at = delta, hasher, tables, 0

    def known(self, bits: Residues | None, shape: tuple[int, ...]) -> Residues:
        return np.zeros((*shape, 2), np.uint64) if self._delta is None else bits[..., None] * self._delta

    def run(self, circuit: Any, wires: Residues) -> None:
        if self._delta is not None:
            self._tables.append(table_buffer(circuit.gates))
        run_circuit(circuit, wires, self._hasher, self._delta, self._tables[self._at], 1000 * self._at)
        self._at += 1


def inner_scores(circuit: TrellisCircuit, weights: np.ndarray, emissions: np.ndarray) -> np.ndarray:
    """Scores of all vertices at all frames, as the circuits have them, less the potentials."""
    ring, delta, tables = Ring(circuit.bits), fresh_delta(), []
    residues, hasher = ring.reduce(weights.view(np.uint64)), BlockHash(bytes(16))
    shares = shares_of(emissions, len(emissions), circuit.bits)
    garbler = _Walk(Alone(delta, hasher, tables), circuit, circuit.constants(residues))
    evaluator = _Walk(Alone(None, hasher, tables), circuit, None)
    found = np.zeros((len(emissions), len(circuit.plan.trellis.columns)), np.uint64)
    for frame in range(len(emissions)):
        columns = circuit.forward(frame).columns
        zero = [uniform_residues((circuit.bits, len(columns), 2)) for _ in range(2)]
        bits = [
            (share[frame, columns] >> np.arange(circuit.bits, dtype=np.uint64)[:, None]) & np.uint64(1)
            for share in shares
        ]
        garbler.forward(*zero)
        evaluator.forward(*(z ^ b[..., None] * delta for z, b in zip(zero, bits, strict=True)))
        vertices = circuit.forward(frame).vertices
        ones = (garbler.scores[-1] ^ evaluator.scores[-1])[:, 0] & np.uint64(1)
        found[frame, vertices] = number_of(ones.reshape(circuit.bits, -1))
    return ring.to_signed(ring.reduce(found - circuit.heights(residues)))


def best_path(plan: Schedule, weights: np.ndarray, emissions: np.ndarray, end: int) -> list[list[tuple[int, int]]]:
    """What the best path meets, of every field: walked back over the twin's scores, operation by operation."""
    heavy, scores, trellis = (
        np.append(weights, 0),
        walk(plan, weights, emissions[..., None]).scores[..., 0],
        plan.trellis,
    )
    met: list[list[tuple[int, int]]] = [[] for _ in trellis.fields]

    def note(rules: tuple[Rule, ...], frame: int) -> None:
        for field, rule in enumerate(rules):
            if rule.kind is not Set.KEEP:
                met[field].insert(0, (frame, rule.at(frame, trellis.fields[field])))

    frame, node = len(emissions) - 1, end
    while True:
        starts = [start for start in trellis.starts if start.vertex == node]
        if frame == 0 and starts:
            note(starts[0].rules, 0)
            return met
        there = [o for o in plan.nodes[node].operands if frame >= o.delay and plan.reached[frame - o.delay, o.node]]
        values = [scores[frame - o.delay, o.node] + heavy[-1 if o.weight is None else o.weight] for o in there]
        left = len(values) == 1 or (values[0] >= values[1] if trellis.operation == "max" else values[0] < values[1])
        taken = there[0 if left else 1]
        note(taken.rules, frame)
        frame, node = frame - taken.delay, taken.node


def drawn(trellis: Trellis, data: st.DataObject, frames: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    return generator.integers(-40, 40, trellis.weights), generator.integers(-90, 1, (frames, trellis.emissions))


def circuit_of(trellis: Trellis, frames: int, end: int) -> TrellisCircuit:
    assume(trellis.fields)
    plan = plan_trellis(trellis, frames)
    assume(plan.reached[frames - 1, end])
    try:
        return plan_circuit(plan, end)
    except RangeError:
        assume(False)
        raise


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(graphs(), st.data())
def test_scores_of_any_graph_are_those_on_integers(trellis: Trellis, data: st.DataObject) -> None:
    frames = data.draw(st.integers(1, 9))
    circuit = circuit_of(
        trellis,
        frames,
        trellis.starts[0].vertex if frames == 1 else data.draw(st.integers(0, len(trellis.columns) - 1)),
    )
    weights, emissions = drawn(trellis, data, frames)
    expected = walk(circuit.plan, weights, emissions[..., None]).scores[:, : len(trellis.columns), 0]
    found = inner_scores(circuit, weights, emissions)
    where = circuit.plan.reached[:, : len(trellis.columns)]
    assert (np.where(where, found, 0) == np.where(where, expected, 0)).all()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(graphs(), st.data())
def test_what_is_read_of_any_graph_is_what_its_best_path_meets(trellis: Trellis, data: st.DataObject) -> None:
    """Whole and in chunks; and the last that is met is what the tokens of the twin carry."""
    frames = data.draw(st.integers(1, 9))
    heard = data.draw(st.integers(1, frames))
    end = data.draw(st.integers(0, len(trellis.columns) - 1))
    circuit = circuit_of(trellis, frames, end)
    assume(circuit.plan.reached[heard - 1, end])
    weights, emissions = drawn(trellis, data, heard)
    expected = tuple(map(tuple, best_path(circuit.plan, weights, emissions, end)))
    carried, shift = int(walk(circuit.plan, weights, emissions[..., None]).fields[heard - 1, end, 0]), 0
    for met, bits in zip(expected, trellis.fields, strict=True):
        assert (met[-1][1] if met else 0) == carried >> shift & ((1 << bits) - 1)
        shift += bits
    assert whole(circuit, weights, emissions)[0].records() == expected
    assert streamed(circuit, weights, emissions, data.draw(st.integers(1, heard)))[0].records() == expected


WORDS, STATES = 4, 3


def spoken(words: list[int], seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Weights, and emissions in which some words are said, a frame a state."""
    generator = np.random.default_rng(seed)
    emissions = -generator.integers(40, 90, (STATES * len(words), WORDS * STATES))
    for place, word in enumerate(words):
        for state in range(STATES):
            emissions[STATES * place + state, STATES * word + state] = 0
    return generator.integers(-9, 0, WORDS * STATES), emissions


def loop_circuit(frames: int, bits: int = 14) -> TrellisCircuit:
    return plan_circuit(plan_trellis(loop(WORDS, STATES, bits), frames), WORDS * STATES, (1,))


@pytest.mark.parametrize("words", [[2], [1, 1, 3], [0, 3, 2, 1, 0]])
def test_words_are_read_with_their_ends_and_the_last_frame_is_hidden(words: list[int]) -> None:
    weights, emissions = spoken(words)
    circuit = loop_circuit(16)
    read, transcript = whole(circuit, weights, emissions)
    expected = tuple((STATES * place + STATES - 1, word) for place, word in enumerate(words))
    assert read.records() == (expected,)
    other = whole(circuit, *spoken([3]))[1]
    assert transcript.shape() == other.shape()
    assert streamed(circuit, weights, emissions, 2)[0].records() == (expected,)


@pytest.mark.parametrize("most", [1, 2, 3, 4, 9])
def test_an_answer_tells_no_more_than_was_agreed_on(most: int) -> None:
    """The last words alone, and as many bits as there are such answers."""
    words = [2, 0, 3, 1, 2]
    weights, emissions = spoken(words)
    circuit = plan_circuit(plan_trellis(loop(WORDS, STATES, 14), 16), WORDS * STATES, (1,), most)
    expected = tuple((STATES * place + STATES - 1, word) for place, word in enumerate(words))[-most:]
    assert whole(circuit, weights, emissions)[0].records() == (expected,)
    assert streamed(circuit, weights, emissions, 4)[0].records() == (expected,)
    every = loop_circuit(16)
    assert circuit.answer_bits <= every.answer_bits == math.ceil(17 * math.log2(1 + WORDS))
    assert circuit.answer_bits == math.ceil(math.log2(sum(math.comb(17, n) * WORDS**n for n in range(most + 1))))
    assert circuit.back_gates() - every.back_gates() <= 16 * (2 * most.bit_length() + 3)


def test_bytes_and_rounds_are_known_before() -> None:
    circuit = loop_circuit(15)
    weights, emissions = spoken([1, 2, 3])
    _, mine = whole(circuit, weights, emissions)
    cost = whole_cost(circuit)
    online = [each for each in mine.entries if each.kind in {Kind.BLIND_CHOICES, Kind.LABELS, Kind.MEANING}]
    assert cost.online_up == sum(each.size for each in online if each.direction == "sent")
    assert cost.online_down == sum(each.size for each in online if each.direction == "received")
    assert (mine.bytes_up, mine.bytes_down) == (cost.offline_up + cost.online_up, cost.offline_down + cost.online_down)
    assert mine.rounds == 2  # one before, one after the features are there
    _, mine = streamed(circuit, weights, emissions, 2)
    cost = stream_cost(circuit, len(emissions))
    assert (mine.bytes_up, mine.bytes_down) == (cost.offline_up, cost.offline_down + cost.online_down)
    assert mine.rounds == 1
    assert cost.total == mine.bytes_up + mine.bytes_down


def test_gates_of_a_loop_are_those_of_its_formula() -> None:
    """2 (k - 1) S + (2 k - 1)(S + W - 1) + (k - 1) W forward and S + W - 1 back, once all is reached."""
    circuit, k = loop_circuit(30), 14
    states = WORDS * STATES
    assert circuit.forward(29).circuit.gates == (
        2 * (k - 1) * states + (2 * k - 1) * (states + WORDS - 1) + (k - 1) * WORDS
    )
    assert circuit.back_gates() - loop_circuit(29).back_gates() == states + WORDS - 1


def test_weights_that_happen_to_be_zero_do_not_show() -> None:
    circuit = loop_circuit(6)
    _, emissions = spoken([1, 2])
    shapes = [whole(circuit, weights, emissions)[1].shape() for weights in (np.zeros(12, np.int64), np.arange(12))]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("apart", [(1 << 13) - 1, 1 << 13])
def test_scores_wrap_around_where_they_are_further_apart_than_half_the_ring(apart: int) -> None:
    arcs = tuple(Arc(word, 2, 0, None, (Rule(Set.CONSTANT, word + 1),)) for word in (0, 1))
    plan = plan_trellis(Trellis((0, 1, None), arcs, (Start(0), Start(1)), 14, (2,)), 1)
    read, _ = whole(plan_circuit(plan, 2), np.zeros(0, np.int64), np.array([[0, -apart]]))
    assert read.records() == (((0, 1 if apart < 1 << 13 else 2),),)


def test_a_client_cannot_begin_in_two_frames() -> None:
    """Whatever number of a last frame it chooses, at most one frame is the last."""
    for frames in (3, 4, 5, 8, 13):
        circuit, number, found = loop_circuit(frames).last
        for chosen in range(1 << len(number)):
            ran = run_alone(circuit, number[:, None], bits_of(np.array([chosen]), len(number)))
            assert np.flatnonzero(ran.value(found)).tolist() == ([chosen] if chosen < frames else [])


def test_a_server_that_damages_labels_is_noticed_only_when_the_session_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = loop_circuit(9)
    weights, emissions = spoken([1, 2])
    honest = whole(circuit, weights, emissions)[1].shape()
    send = Garbler._send_labels
    monkeypatch.setattr(Garbler, "_send_labels", lambda self, labels: send(self, labels ^ np.uint64(1)))
    read, transcript = whole(circuit, weights, emissions)
    assert transcript.shape() == honest
    with pytest.raises(CheatError, match="means nothing"):
        read.records()


def test_labels_of_the_servers_share_are_new_every_time() -> None:
    """Of two utterances with the same shares no label is the same, and no two are Δ apart."""
    circuit, seen = loop_circuit(6), []
    weights, emissions = spoken([1, 2])
    for _ in range(2):
        _, transcript = streamed(circuit, weights, emissions, 1)
        data = b"".join(e.payload or b"" for e in transcript.entries if e.kind == Kind.LABELS)
        seen += [data[at : at + 16] for at in range(0, len(data), 16)]
    delta = int.from_bytes(lasting_setup()[0].labels.delta.tobytes(), "little")
    assert len(set(seen)) == len(seen)
    assert not {(int.from_bytes(each, "little") ^ delta).to_bytes(16, "little") for each in seen} & {*seen, bytes(16)}


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "an end nobody reaches": (lambda: plan_circuit(plan_trellis(loop(2, 3), 2), 6), "cannot end there"),
    "a field that is none": (lambda: plan_circuit(plan_trellis(loop(2, 2), 5), 4, (7,)), "can be read"),
    "no frames": (lambda: loop_circuit(6).back_gates(7), "1 to 6 frames"),
    "nothing to tell": (lambda: plan_circuit(plan_trellis(loop(2, 2), 5), 4, (1,), 0), "at least once"),
    "other weights": (lambda: loop_circuit(6).constants(np.zeros(3, np.uint64)), "12 weights"),
    "set twice": (
        lambda: plan_circuit(
            plan_trellis(
                Trellis(
                    (0, None, None),
                    (Arc(0, 1, 0, None, (Rule(Set.FRAME),)), Arc(1, 2, 0, None, (Rule(Set.FRAME),))),
                    (Start(0),),
                    8,
                    (3,),
                ),
                2,
            ),
            2,
        ),
        "set twice",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_circuits_that_cannot_be_are_refused(name: str) -> None:
    door, words = REFUSED[name]
    with pytest.raises(RangeError, match=words):
        door()


def test_shares_of_other_sizes_are_refused_before_anything_is_sent() -> None:
    circuit, empty = loop_circuit(6), np.zeros((3, 3), np.uint64)

    def garble(channel: Channel, setup: PairSetup) -> None:
        with pytest.raises(RangeError, match="has shape"):
            WholeGarbling(channel, setup, circuit, np.zeros(12, np.uint64), empty)

    def evaluate(channel: Channel, setup: PairSetup) -> None:
        with pytest.raises(RangeError, match="has shape"):
            StreamEvaluation(channel, setup, circuit, empty)

    assert not run_parties(garble, evaluate)[1].entries
