"""Sentences: the words and times of the clear decoder, to the client; sizes alone, to the server."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from ppspeech.channel import Channel
from ppspeech.crypto import Kind
from ppspeech.crypto.shares.engine import HEADER
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.network import Transcript, run_together
from ppspeech.protocols.meeting import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.scores.monomials import gaussian_weights, monomials_of
from ppspeech.protocols.scores.streamed import GivenModels, TakenModels
from ppspeech.protocols.sentences import (
    Engine,
    Heard,
    ListeningEar,
    SentenceArrays,
    SentenceShape,
    answer_garbled,
    answer_sentence,
    check_heard,
    encode_sentences,
    follow_speech,
    prepare,
    prepare_question,
    product_plan,
    shares_cost,
    streamed,
    total_bytes,
    transcribe,
    transcribe_garbled,
)
from tests.protocols.sentence_reference import hear, loop_arrays, say


def converse(arrays: SentenceArrays, *utterances: np.ndarray) -> tuple[list[object], list[Transcript]]:
    """What the client heard, or the error it met, and what was exchanged for each."""
    records: list[Transcript] = []

    def client(channel: Channel) -> list[object]:
        met, found = meet_as_client(channel), []
        with met.session():
            for utterance in utterances:
                engine = prepare(met, arrays.shape)
                records.append(Transcript(channel, keep_payloads=True))
                engine.channel = records[-1]
                counted = Meeting(records[-1], met.setup, met.lattice)
                try:
                    found.append(check_heard(arrays.shape, transcribe(counted, arrays.shape, utterance, engine)))
                except RangeError as error:
                    found.append(error)
        return found

    def server(channel: Channel) -> None:
        met, weights = meet_as_server(channel), None if arrays.network else encode_sentences(arrays)
        with met.session():
            for _ in utterances:
                answer_sentence(met, arrays, weights)

    found, _ = run_together(client, server)
    return found, records


@pytest.mark.parametrize("seed", range(4))
def test_words_and_times_are_those_in_the_clear(seed: int) -> None:
    arrays = loop_arrays(words=4, states=2 + seed % 2, seed=seed)
    generator = np.random.default_rng(seed)
    said = [say(arrays, *generator.integers(0, 4, 1 + n % 3), seed=n) for n in range(6)]
    said.append(generator.normal(scale=5.0, size=(24, 2)))
    found, _ = converse(arrays, *said)
    assert found == [hear(arrays, frames) for frames in said]
    assert found[0][0].start == 0  # type: ignore[index]


def grammar_arrays() -> SentenceArrays:
    """Either "a b" or "b a a": junctions apart, a word's copies sharing their columns."""
    loop = loop_arrays(words=2, states=2, frames=20)
    # Vertices 0-1 a, 2-3 b, 4-5 b, 6-7 a, 8-9 a; junctions 10 (after a), 11 (after b), 12 (after b a), 13 the end.
    columns = (0, 1, 2, 3, 2, 3, 0, 1, 0, 1, -1, -1, -1, -1)
    arcs = [(v, v, 0, -1) for v in range(10)] + [(v, v + 1, 0, -1) for v in range(0, 10, 2)]
    arcs += [(1, 10, 0, -1), (10, 2, 1, 1), (3, 13, 0, -1), (5, 11, 0, -1), (11, 6, 1, 0), (7, 12, 0, -1)]
    arcs += [(12, 8, 1, 0), (9, 13, 0, -1)]
    shape = SentenceShape(
        20, 2, "diagonal", columns, tuple(arcs), ((0, 0), (4, 1)), 13, ("a", "b"), 4, radius=12.0, bits=24
    )
    return SentenceArrays(shape, loop.weights, np.linspace(-2, 1, len(arcs)), np.array([-0.1, -2.0]))


def test_a_grammar_with_several_junctions() -> None:
    arrays = grammar_arrays()
    said = [say(arrays, 0, 1), say(arrays, 1, 0, 0), say(arrays, 1, 1, 1), say(arrays, 0, 0)]
    found, _ = converse(arrays, *said)
    assert found == [hear(arrays, frames) for frames in said]
    assert [[each.word for each in heard] for heard in found[:2]] == [["a", "b"], ["b", "a", "a"]]  # type: ignore[union-attr]


def tree_arrays() -> SentenceArrays:
    """Two words that share their first state: which it is, their end tells."""
    loop = loop_arrays(words=3, states=1, frames=16)
    columns = (0, 1, 2, -1)
    arcs = [(0, 0, 0, -1), (1, 1, 0, -1), (2, 2, 0, -1), (0, 1, 0, -1), (0, 2, 0, -1)]
    arcs += [(1, 3, 0, 0), (2, 3, 0, 1), (3, 0, 1, -1)]
    shape = SentenceShape(16, 2, "diagonal", columns, tuple(arcs), ((0, -1),), 3, ("ab", "ac"), 6, radius=12.0)
    return SentenceArrays(shape, loop.weights, np.zeros(len(arcs)), np.zeros(1))


def test_words_that_are_known_at_their_end() -> None:
    arrays = tree_arrays()
    means = arrays.weights[2:4].T
    frames = means[[0, 1, 1, 0, 2, 0, 0, 1]]
    found, _ = converse(arrays, frames)
    assert found == [[Heard("ab", 0, 3), Heard("ac", 3, 5), Heard("ab", 5, 8)]] == [hear(arrays, frames)]


def test_the_shortest_the_longest_and_silence() -> None:
    arrays = loop_arrays()
    shape = arrays.shape
    assert shape.shortest == 2
    said = [say(arrays, 0, stay=1), np.tile(say(arrays, 1), (6, 1)), say(arrays, 2, stay=6)]
    assert [len(each) for each in said] == [2, 24, 12]
    found, _ = converse(arrays, *said)
    assert found == [hear(arrays, frames) for frames in said]
    assert [each.word for each in found[2]] == [""]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        (np.zeros((1, 2)), "2 to 24 frames here, got 1"),
        (np.zeros((25, 2)), "2 to 24 frames here, got 25"),
        (np.zeros((5, 3)), "frames must be"),
        (np.full((5, 2), np.nan), "not finite"),
        (np.zeros((0, 2)), "got 0"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_anything_is_sent(frames: np.ndarray, why: str) -> None:
    arrays = loop_arrays()
    with pytest.raises(RangeError, match=why):
        transcribe(None, arrays.shape, frames)  # type: ignore[arg-type]


def test_more_words_than_agreed_are_an_error_at_the_client_and_nothing_at_the_server() -> None:
    arrays = loop_arrays(most_words=2)
    found, records = converse(arrays, say(arrays, 0, 1, 0, 1, stay=1), say(arrays, 0))
    assert isinstance(found[0], RangeError)
    assert "more than 2 words" in str(found[0])
    assert [each.word for each in found[1]] == ["word 0"]  # type: ignore[union-attr]
    first, second = ([(e.direction, e.kind, e.size) for e in record.entries] for record in records)
    assert first == second


def test_the_server_sees_the_same_sizes_whatever_is_said_and_the_plan_says_them() -> None:
    arrays = loop_arrays()
    _, records = converse(arrays, say(arrays, 0, 0, 0, stay=1), say(arrays, 1), np.zeros((24, 2)))
    shapes = [[(e.direction, e.kind, e.size) for e in record.entries] for record in records]
    assert shapes[0] == shapes[1] == shapes[2]
    job, shares = product_plan(arrays.shape).job, shares_cost(arrays.shape)
    for record in records:
        assert record.bytes_up == job.query_bytes + shares.bytes_second
        assert record.bytes_down == job.reply_bytes + shares.bytes_first
        assert record.rounds == 1 + shares.rounds
    assert total_bytes(arrays.shape) == product_plan(arrays.shape).total_bytes + shares.total_bytes


def test_a_client_is_opened_one_record_a_word_and_nothing_else() -> None:
    arrays = loop_arrays()
    _, (record,) = converse(arrays, say(arrays, 0, 1))
    opened = []
    for entry in record.entries:
        data, at = entry.payload or b"", 0
        while entry.kind == Kind.FLIGHT and at < len(data):
            kind, size = HEADER.unpack_from(data, at)
            assert kind in {Kind.ASK, Kind.TABLES, Kind.PRODUCT, Kind.OPEN}
            if kind == Kind.OPEN:
                assert entry.direction == "received"
                opened.append(size)
            at += HEADER.size + size
    assert opened == [-(-sum(arrays.shape.fields) // 8)] * arrays.shape.most_words


def test_a_shape_survives_the_wire() -> None:
    for arrays in (loop_arrays(), grammar_arrays()):
        plain = json.loads(json.dumps(arrays.shape.to_params()))
        assert SentenceShape.from_params(plain) == arrays.shape


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"frames": 0}, "frames must lie"),
        ({"frames": 1}, "no way leads|as short"),
        ({"terms": "cubic"}, "terms are"),
        ({"bits": 40}, "4 to 32 bits"),
        ({"radius": 0.0}, "radius"),
        ({"words": ()}, "words"),
        ({"words": ("a" * 300,)}, "252 bytes"),
        ({"end": 0}, "ends in a junction"),
        ({"columns": (0, 0, 3, 3, 4, 5, -1)}, "some vertex"),
        ({"arcs": ((0, 1, 1, 0),)}, "words begin where junctions lead"),
        ({"arcs": ((0, 9, 0, 0),)}, "vertices have the numbers"),
        ({"arcs": ((0, 1, 0),)}, "an arc is"),
        ({"arcs": ((0, 1, 0, 7),)}, "words have the numbers"),
        ({"arcs": (("x", 1, 0, 0),)}, "whole numbers"),
        ({"starts": ((0, True),)}, "whole numbers"),
        ({"nonsense": 1}, "not the shape"),
        ({"frames": 3_000, "arcs": ((0, 0, 0, -1),) * 1_500}, "more than can be followed"),
    ],
)
def test_shapes_that_are_none_are_refused(change: dict[str, object], why: str) -> None:
    plain = loop_arrays().shape.to_params() | change
    with pytest.raises(RangeError, match=why):
        SentenceShape.from_params(plain)


def test_models_are_refused_whose_scores_the_shares_cannot_hold() -> None:
    with pytest.raises(RangeError, match="nats apart, and 10 bits"):
        loop_arrays(bits=10)
    arrays = loop_arrays()
    with pytest.raises(PpspeechError, match="finite"):
        SentenceArrays(arrays.shape, np.full_like(arrays.weights, np.nan), arrays.arcs, arrays.starts)
    with pytest.raises(PpspeechError, match="shape"):
        SentenceArrays(arrays.shape, arrays.weights, arrays.arcs[:-1], arrays.starts)


def test_loud_frames_count_as_the_loudest_that_the_range_was_proved_for() -> None:
    arrays = loop_arrays()
    loud = np.concatenate([say(arrays, 0), 1e6 * say(arrays, 1), say(arrays, 0)])
    found, _ = converse(arrays, loud)
    assert found == [hear(arrays, loud)]
    assert np.linalg.norm(arrays.shape.clipped(loud), axis=1).max() <= arrays.shape.radius + 1e-9


@pytest.mark.parametrize(
    ("engine", "portion"), [("shares", 1), ("shares", 2), ("shares", 7), ("garbled", 1), ("garbled", 3)]
)
def test_while_it_is_spoken_the_words_are_the_same(engine: Engine, portion: int) -> None:
    arrays = loop_arrays(words=4, seed=3)
    said = [say(arrays, 0, 2, 1), say(arrays, 1)[:3], say(arrays, 3, 0, 1, 2, 0, 1)[:24]]

    def client(channel: Channel) -> list[object]:
        met, found = meet_as_client(channel), []
        models = TakenModels(streamed(arrays.shape))
        with met.session():
            for frames in said:
                ear = ListeningEar(met, arrays.shape, models, engine)
                for at in range(0, len(frames), portion):
                    ear.hear(frames[at : at + portion])
                found.append(ear.finish())
                with pytest.raises(PpspeechError, match="is over"):
                    ear.hear(frames[:1])
        return found

    def server(channel: Channel) -> None:
        met, models = meet_as_server(channel), GivenModels(streamed(arrays.shape), arrays.weights)
        with met.session():
            for _ in said:
                follow_speech(met, arrays, models, engine)

    found, _ = run_together(client, server)
    assert found == [hear(arrays, frames) for frames in said]


@pytest.mark.parametrize("make", [loop_arrays, grammar_arrays, tree_arrays])
def test_a_circuit_hears_the_same_in_two_round_trips(make: Callable[[], SentenceArrays]) -> None:
    arrays = make()
    said = [say(arrays, 0, 1), say(arrays, 1, 0, 0), say(arrays, 1)]
    records: list[Transcript] = []

    def client(channel: Channel) -> list[list[Heard]]:
        met, found = meet_as_client(channel), []
        with met.session():
            for frames in said:
                prepared = prepare_question(met, arrays.shape)
                records.append(Transcript(channel))
                prepared._evaluator.channel = records[-1]
                counted = Meeting(records[-1], met.setup, met.lattice)
                found.append(transcribe_garbled(counted, arrays.shape, frames, prepared))
        return found

    def server(channel: Channel) -> None:
        met, weights = meet_as_server(channel), encode_sentences(arrays)
        with met.session():
            for _ in said:
                answer_garbled(met, arrays, weights)

    found, _ = run_together(client, server)
    assert found == [hear(arrays, frames) for frames in said]
    shapes = [[(e.direction, e.kind, e.size) for e in record.entries] for record in records]
    assert shapes[0] == shapes[1] == shapes[2]
    assert records[0].rounds == 2


def test_a_key_of_the_server_answers_no_more_than_it_can_lose() -> None:
    shape = loop_arrays().shape
    terms = streamed(shape)
    most = terms.plan.precision.parameters.leakable_bits
    assert terms.answers_a_key * shape.answer_bits <= most < (terms.answers_a_key + 1) * shape.answer_bits
    with pytest.raises(RangeError, match="more of the server's key"):
        streamed(loop_arrays(most_words=1000).shape)


def test_too_little_and_too_much_speech_is_refused_before_it_is_sent() -> None:
    arrays = loop_arrays()

    def client(channel: Channel) -> None:
        met = meet_as_client(channel)
        with met.session():
            ear = ListeningEar(met, arrays.shape, TakenModels(streamed(arrays.shape)))
            with pytest.raises(RangeError, match="at least 2 frames"):
                ear.finish()
            ear.hear(say(arrays, 0, 1))
            with pytest.raises(RangeError, match="at most 24"):
                ear.hear(np.zeros((20, 2)))
            with pytest.raises(RangeError, match="not finite"):
                ear.hear(np.full((1, 2), np.nan))
            assert [each.word for each in ear.finish()] == ["word 0", "word 1"]

    def server(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            follow_speech(met, arrays, GivenModels(streamed(arrays.shape), arrays.weights))

    run_together(client, server)


def test_a_service_that_told_scores_would_lose_its_model() -> None:
    """Why words alone are told: scores of 830 chosen frames, to an eighth of a nat, are 820 equations for as many
    weights of a state, and a copy names the same state of new frames.
    """
    generator = np.random.default_rng(0)
    states, dimensions = 6, 39
    spread = generator.normal(size=(states, dimensions, dimensions)) / 8
    covariances = np.eye(dimensions) / 2 + spread @ spread.transpose(0, 2, 1)
    weights = gaussian_weights(np.zeros(states), generator.normal(size=(states, dimensions)), covariances)
    chosen = np.clip(4 * generator.normal(size=(830, dimensions)), -8, 8)
    told = np.rint(8 * monomials_of(chosen, "full") @ weights) / 8
    copied = np.linalg.lstsq(monomials_of(chosen, "full"), told, rcond=None)[0]
    spoken = monomials_of(generator.normal(size=(2000, dimensions)), "full")
    same = (spoken @ copied).argmax(axis=1) == (spoken @ weights).argmax(axis=1)
    assert same.mean() > 0.99
    few = np.linalg.lstsq(monomials_of(chosen[:200], "full"), told[:200], rcond=None)[0]
    assert ((spoken @ few).argmax(axis=1) == (spoken @ weights).argmax(axis=1)).mean() < 0.9
